"""One container: created, attached, started, watched, killed, removed.

The attached stream carries process 1's clock in and its report out; the printout and the bridge
have sockets of their own. SAFETY: the stream is closed before the kill: with an attached, unread
stream the daemon can hang for a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Protocol

from ..runtime.errors import SandboxUnavailable
from . import seccomp, uids
from .backend import LONGEST_LIFE, ExitCause, ExitReport, Limits, Usage
from .bwrap_arguments import (
    MASKED_FILES,
    MASKED_FOLDERS,
    MEMORY_SHARE,
    SHM_BYTES,
    most_cpu,
    threads,
)
from .owner import this_process
from .process_one import ProcessOneReport
from .reserved import ReservedSandbox

OWNER_LABEL = "io.limbeck.owner"
SANDBOX_LABEL = "io.limbeck.sandbox"
DEADLINE_LABEL = "io.limbeck.deadline"
"""Seconds since the epoch; whoever finds a container later may remove it, whoever owns it."""

LONGEST_WAIT = LONGEST_LIFE + 3_600.0
"""Seconds beside the wall limit that a container may live: in a session, in the pool, and while
people are asked."""

CPU_INTERVAL = 0.25
KEPT_BYTES = 8 * 1024
END_SECONDS = 10.0
"""How long the engine may take to see the container's end."""

_MASKED = (
    *(f"/proc/{name}" for name in (*MASKED_FILES, *MASKED_FOLDERS, "timer_stats")),
    "/sys/block", "/sys/class/dmi", "/sys/devices", "/sys/firmware", "/sys/fs", "/sys/kernel",
    "/sys/module",
)  # fmt: skip


class Asks(Protocol):
    """What a sandbox needs of the daemon."""

    def ask(self, method: str, *arguments: Any, **options: Any) -> Awaitable[Any]:
        """One call of the SDK's low-level client."""


class DockerSandbox(ReservedSandbox):
    """A sandbox of the docker backend; see `Sandbox` for the contract."""

    def __init__(
        self,
        *,
        daemon: Asks,
        image: str,
        oci_runtime: str | None,
        limits: Limits,
        uid_base: int = uids.BASE,
    ) -> None:
        """Reserve uid and folder."""
        super().__init__("docker", limits, uid_base)
        self._daemon = daemon
        self._image = image
        self._oci_runtime = oci_runtime
        self._container = ""
        self._stream: Any = None
        self._socket: socket.socket | None = None
        self._usage = Usage()
        self._limit_hit: ExitCause | None = None

    @property
    def image(self) -> str:
        """Name and tag of the image."""
        return self._image

    @property
    def memory_limit(self) -> str:
        """The engine limits memory by a cgroup of its own."""
        return "cgroup v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "cgroup v1"

    async def start(self) -> None:
        """Create, attach, start."""
        created = await self._daemon.ask("create_container_from_config", self._config())
        self._container = created["Id"]
        self._stream = await self._daemon.ask(
            "attach_socket",
            self._container,
            params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1},
        )
        self._socket = getattr(self._stream, "_sock", self._stream)
        assert self._socket is not None
        self._socket.settimeout(0)
        await self._daemon.ask("start", self._container)
        self._supervising = asyncio.create_task(self._supervise())

    def usage(self) -> Usage:
        """CPU and memory as the engine's cgroup counts them, where the host shows it."""
        cpu = _first_number(1e9, f"/sys/fs/cgroup/cpuacct/docker/{self._container}/cpuacct.usage")
        memory = f"/sys/fs/cgroup/memory/docker/{self._container}/memory.max_usage_in_bytes"
        peak = _first_number(1, memory)
        if cpu is not None:
            self._usage = Usage(
                cpu_seconds=cpu, memory_peak=int(peak) if peak is not None else None
            )
        return self._usage

    async def kill(self) -> ExitReport:
        """Close the stream, SIGKILL process 1, wait."""
        if self._supervising is None:
            return ExitReport(cause=ExitCause.KILLED)
        if not self._supervising.done():
            self._killed = True
            await self._strike()
        return await self.wait()

    async def close(self) -> None:
        """Kill, remove the container, release uid and folder."""
        if self._closed:
            return
        self._closed = True
        try:
            await self.kill()
            if self._container:
                await self._daemon.ask("remove_container", self._container, force=True, v=True)
        except SandboxUnavailable:
            pass  # The daemon hangs or has lost it: the reaper finds its label at the next start.
        finally:
            self._release_stream()
            self._release()

    def _config(self) -> dict[str, Any]:
        limits = self._limits
        return {
            "Image": self._image,
            "Cmd": self._settings(),
            "Env": [f"{name}={value}" for name, value in threads(limits).items()],
            "User": f"{self.uid}:{self.uid}",
            "Hostname": "sandbox",
            "WorkingDir": "/workspace",
            "OpenStdin": True,
            "StdinOnce": True,
            "AttachStdin": True,
            "AttachStdout": True,
            "AttachStderr": True,
            "Tty": False,
            "NetworkDisabled": True,
            "Labels": {
                OWNER_LABEL: this_process(),
                SANDBOX_LABEL: self._id,
                DEADLINE_LABEL: str(int(time.time() + LONGEST_WAIT + limits.wall)),
            },
            "HostConfig": self._host_config(limits),
        }

    def _settings(self) -> list[str]:
        limits = self._limits
        # No nproc: it would count over all containers of this uid; the cgroup counts here.
        return [
            f"data={int(limits.memory * MEMORY_SHARE)}",
            f"fsize={max(limits.tmp, limits.workspace)}",
            f"cpu={most_cpu(limits)}",
        ]

    def _host_config(self, limits: Limits) -> dict[str, Any]:
        """SAFETY: the wall of the docker backend: what is shared, what is limited."""
        tmpfs = "rw,noexec,nosuid,nodev"
        return {
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges:true", f"seccomp={seccomp.docker_profile()}"],
            "IpcMode": "none",
            "CgroupnsMode": "private",
            "Init": False,
            "AutoRemove": False,
            "PidsLimit": limits.pids,
            "Memory": limits.memory,
            "MemorySwap": limits.memory,
            "NanoCpus": int(limits.cpu * 1e9),
            "OomScoreAdj": 900,
            "LogConfig": {"Type": "none"},
            "Binds": [
                f"{self._folder.bridge}:/bridge:ro",
                f"{self._folder.tools}:/tools:ro",
                f"{self._folder.data}:/data:ro",
            ],
            "Tmpfs": {
                "/tmp": f"{tmpfs},size={limits.tmp},nr_inodes=4096,mode=1777",
                "/workspace": (
                    f"{tmpfs},size={limits.workspace},nr_inodes=8192,mode=0700,"
                    f"uid={self.uid},gid={self.uid}"
                ),
                "/dev/shm": f"{tmpfs},size={SHM_BYTES},nr_inodes=256,mode=1777",
            },
            "Ulimits": [
                {"Name": "nofile", "Soft": 256, "Hard": 256},
                {"Name": "core", "Soft": 1, "Hard": 1},
                {"Name": "stack", "Soft": 2 << 20, "Hard": 8 << 20},
            ],
            "MaskedPaths": list(_MASKED),
            "ReadonlyPaths": ["/proc"],
            **({"Runtime": self._oci_runtime} if self._oci_runtime else {}),
        }

    async def _supervise(self) -> ExitReport:
        watching = asyncio.create_task(self._watch())
        try:
            errors = await self._read_stream()
        finally:
            self._process_one.feed(b"")
            watching.cancel()
            self._release_stream()
        state = await self._final_state()
        said = self._process_one.report
        if said.cpu_seconds is not None:
            self._usage = Usage(
                cpu_seconds=max(said.cpu_seconds, self._usage.cpu_seconds),
                memory_peak=self._usage.memory_peak,
            )
        return ExitReport(
            cause=self._cause(said, state),
            exit_code=said.exit_code,
            signal=said.signal,
            usage=self._usage,
            diagnosis=errors or str(state.get("Error", "")),
        )

    async def _read_stream(self) -> str:
        """Give process 1 its output until the stream ends; its errors, bounded."""
        errors = bytearray()
        loop = asyncio.get_running_loop()
        data = bytearray()
        while self._socket is not None:
            try:
                more = await loop.sock_recv(self._socket, 65_536)
            except OSError:
                break
            if not more:
                break
            data += more
            while len(data) >= 8:
                size = int.from_bytes(data[4:8], "big")
                if len(data) < 8 + size:
                    break
                frame = bytes(data[8 : 8 + size])
                if data[0] == 1 and frame:
                    self._process_one.feed(frame)
                else:
                    errors += frame[: max(KEPT_BYTES - len(errors), 0)]
                del data[: 8 + size]
        return errors.decode("utf-8", "replace")

    def _send(self, message: bytes) -> None:
        if self._socket is None:
            raise BrokenPipeError
        self._socket.send(message)

    async def _final_state(self) -> dict[str, Any]:
        """The engine's word on the dead container; asked until it has seen the end."""
        state: dict[str, Any] = {}
        with contextlib.suppress(SandboxUnavailable, TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                while True:
                    found = await self._daemon.ask("inspect_container", self._container)
                    state = found["State"]
                    if not state.get("Running"):
                        return state
                    await asyncio.sleep(0.02)
        return state

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(CPU_INTERVAL)
            await self._going.wait()
            if self._over_cpu():
                self._limit_hit = ExitCause.CPU
                await self._strike()
                return

    async def _strike(self) -> None:
        self._close_stream()
        with contextlib.suppress(SandboxUnavailable):  # it is dead already, or the daemon hangs
            await self._daemon.ask("kill", self._container, signal="SIGKILL")

    def _close_stream(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _release_stream(self) -> None:
        """Close the attached stream: the SDK's wrapper, the socket below it, the response."""
        for part in (getattr(self._stream, "_response", None), self._stream, self._socket):
            if part is not None:
                with contextlib.suppress(OSError, ValueError):  # one closes the other
                    part.close()
        self._stream = self._socket = None

    def _cause(self, said: ProcessOneReport, state: dict[str, Any]) -> ExitCause:
        if self._limit_hit is not None:
            return self._limit_hit
        # A script may lose a child to the limit, and go on to an end of its own.
        own_end = said.word == "exited" and said.exit_code is not None
        if state.get("OOMKilled") and not own_end:
            return ExitCause.MEMORY
        if said.signal == signal.SIGXCPU:
            return ExitCause.CPU
        if said.word == "deadline":
            return ExitCause.DEADLINE
        if said.word == "exited":
            return ExitCause.EXITED
        return ExitCause.KILLED if self._killed else ExitCause.LOST


def _first_number(scale: float, *paths: str) -> float | None:
    for path in paths:
        try:
            return int(Path(path).read_text()) / scale
        except (OSError, ValueError):
            continue
    return None
