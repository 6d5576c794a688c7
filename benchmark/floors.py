"""Floors: what cannot be beaten on this machine, timed beside what is measured."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from types import TracebackType
from typing import Self

from ..sandbox.docker import DockerBackend
from .rows import Sample

MESSAGE = 120
"""Bytes of a ping: about the size of a small call."""


class PingPong:
    """A child process that answers on a raw unix socket: the floor of every call."""

    def __enter__(self) -> Self:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        program = (
            "import socket\n"
            f"s = socket.socket(fileno={theirs.fileno()})\n"
            f"while data := s.recv({MESSAGE}): s.sendall(data)\n"
        )
        self._child = subprocess.Popen(
            [sys.executable, "-S", "-c", program], pass_fds=(theirs.fileno(),)
        )
        theirs.close()
        self._socket = ours
        self.sample(200)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()
        self._child.wait()

    def sample(self, rounds: int) -> Sample:
        """One ping and its answer: median wall and mean CPU of many."""
        data = b"x" * MESSAGE
        walls, cpu = [], time.process_time()
        for _ in range(rounds):
            began = time.perf_counter()
            self._socket.sendall(data)
            self._socket.recv(MESSAGE)
            walls.append(time.perf_counter() - began)
        return Sample(median(walls), (time.process_time() - cpu) / rounds)


def plain_python(python: str) -> Sample:
    """Starting an interpreter that does nothing."""
    wall, cpu = time.perf_counter(), _cpu()
    subprocess.run([python, "-c", "pass"], check=True, env={})
    return Sample(time.perf_counter() - wall, _cpu() - cpu)


def load_worker(python: str, lib: str) -> Sample:
    """Starting an interpreter that imports what a sandbox's worker imports, and no more."""
    began = time.perf_counter()
    with subprocess.Popen(
        [python, "-s", "-S", "-P", "-c", "import limbeck.runtime.worker"], env={"PYTHONPATH": lib}
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Sample(time.perf_counter() - began, used.ru_utime + used.ru_stime)


def proportional_bytes(python: str, count: int) -> float:
    """Memory of an interpreter that waits, one's share of so many."""
    program = "print(1, flush=True); input()"
    waiting = [
        subprocess.Popen(
            [python, "-s", "-S", "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(count)
    ]
    try:
        for one in waiting:
            assert one.stdout is not None
            one.stdout.readline()
        return sum(map(own_share, (one.pid for one in waiting))) / count
    finally:
        for one in waiting:
            one.communicate(b"\n")


def own_share(pid: int) -> int:
    """Bytes of a process: its part of what it shares with others. 0 where that is hidden."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


class BareContainer:
    """A container of the sandboxes' image that does nothing, by the same API: docker's own cost."""

    def __init__(self, backend: DockerBackend) -> None:
        self._backend = backend

    def sample(self) -> Sample:
        """Create, start, wait, remove."""
        wall, cpu = time.perf_counter(), time.process_time()
        asyncio.run(self._run())
        return Sample(time.perf_counter() - wall, time.process_time() - cpu)

    async def _run(self) -> None:
        ask = self._backend.daemon.ask
        created = await ask(
            "create_container_from_config",
            {
                "Image": self._backend.image,
                "Entrypoint": ["/usr/bin/python3", "-S", "-c", "pass"],
                "NetworkDisabled": True,
                "HostConfig": {"NetworkMode": "none", "LogConfig": {"Type": "none"}},
            },
        )
        await ask("start", created["Id"])
        await ask("wait", created["Id"])
        await ask("remove_container", created["Id"], force=True, v=True)


def _cpu() -> float:
    """Of this process and the children that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def load() -> float:
    """The load average of the last minute."""
    return os.getloadavg()[0]
