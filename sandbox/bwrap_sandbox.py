"""One embedded sandbox: reserved, started, watched, killed, released.

bwrap's outer process ends before the sandbox does, so that its end means nothing: the sandbox is
dead when the pidfd of the namespace's process 1 says so, since the kernel has then killed the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import signal
import subprocess

from . import bwrap_arguments, seccomp, uids
from .backend import ExitCause, ExitReport, Limits, Usage
from .cgroup import REMOVE_PAUSE, REMOVE_TRIES, Cgroup, Hierarchies
from .exhaustion import unavailable
from .packages import PackagesFolder
from .pipes import PipeReader, until_readable
from .process_one import ProcessOneReport
from .provision import Interpreter, RuntimeFolder
from .reserved import ReservedSandbox
from .watcher import INTERVAL, ProcessTree, pinned

log = logging.getLogger("limbeck.sandbox")

CPU_INTERVAL = 0.25
"""Seconds between two looks at the CPU time where the kernel holds the memory limit."""

REAP_SECONDS = 5.0
"""How long the outer process may outlive process 1 before it is killed too."""

_LAUNCH = (
    'while [ "$1" != -- ]; do echo $$ >"$1" || exit 125; shift; done; shift; '
    "echo 900 >/proc/self/oom_score_adj; ulimit -S -s 2048; "
    'exec "$@"'
)
"""Joins each cgroup, offers itself to the OOM killer first, gives C threads small stacks."""


class BubblewrapSandbox(ReservedSandbox):
    """A sandbox of the embedded backend; see `Sandbox` for the contract."""

    image = None

    def __init__(
        self,
        *,
        limits: Limits,
        runtime: RuntimeFolder,
        interpreter: Interpreter,
        bwrap: str,
        hierarchies: Hierarchies | None,
        packages: PackagesFolder | None = None,
        program: list[str] | None = None,
        uid_base: int = uids.BASE,
    ) -> None:
        """Reserve uid, folder and cgroup. `program` replaces process 1, to try a Python out."""
        super().__init__("bubblewrap", limits, uid_base)
        self._runtime = runtime
        self._interpreter = interpreter
        self._bwrap = bwrap
        self._packages = packages
        self._program = program or bwrap_arguments.program(interpreter, limits)
        self._cgroup: Cgroup | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._inner = -1
        self._tree: ProcessTree | None = None
        self._limit_hit: ExitCause | None = None
        self._oom_before = 0
        if hierarchies is not None:
            try:
                self._cgroup = Cgroup(hierarchies, self._id)
                self._cgroup.create(limits)
            except (OSError, ValueError) as error:
                if self._cgroup is not None:
                    self._cgroup.remove()
                self._release()
                raise unavailable("bubblewrap", error) from None

    @property
    def memory_limit(self) -> str:
        """Who holds the memory limit."""
        return self._cgroup.kind if self._cgroup is not None else "watcher"

    async def start(self) -> None:
        """Start the chain; process 1 follows."""
        status_read, status_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            outer = self._launch(status_write)
        except OSError as error:
            os.close(status_read)
            raise unavailable("bubblewrap", error) from None
        finally:
            os.close(status_write)
        self._supervising = asyncio.create_task(self._supervise(status_read, outer))

    def _launch(self, status_write: int) -> int:
        """Start the chain: its pidfd."""
        with contextlib.ExitStack() as stack:
            filtering = _memory_file(seccomp.filter_path().read_bytes(), stack)
            options = bwrap_arguments.options(
                uid=self.uid,
                limits=self._limits,
                folder=self._folder,
                runtime=self._runtime,
                interpreter=self._interpreter,
                packages=self._packages,
                status_descriptor=status_write,
                filter_descriptor=filtering,
            )
            listed = _memory_file("\0".join([*options, ""]).encode(), stack)
            # Here, not in a thread: see --die-with-parent. It takes a few milliseconds.
            with self._cores():
                process = subprocess.Popen(
                    self._chain(listed),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=(listed, status_write, filtering),
                    start_new_session=True,
                    env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                    cwd="/",
                )
        try:
            outer = os.pidfd_open(process.pid)
        except OSError:
            # SAFETY: what cannot be watched does not live.
            with process:
                os.killpg(process.pid, signal.SIGKILL)
            raise
        self._process = process
        return outer

    def usage(self) -> Usage:
        """CPU and memory so far."""
        if self._cgroup is not None:
            return self._cgroup.usage()
        return self._tree.usage() if self._tree is not None else Usage()

    def so_far(self) -> ExitReport:
        """How it stands between two jobs."""
        kills = self._oom_kills()
        before, self._oom_before = self._oom_before, kills
        cause = ExitCause.MEMORY if kills > before else ExitCause.EXITED
        return ExitReport(cause=cause, usage=self.usage())

    async def kill(self) -> ExitReport:
        """SIGKILL all of it and wait."""
        if self._supervising is None:
            return ExitReport(cause=ExitCause.KILLED)
        if not self._supervising.done():
            self._killed = True
            self._strike()
        return await self.wait()

    async def close(self) -> None:
        """Kill and release."""
        if self._closed:
            return
        self._closed = True
        try:
            await self.kill()
        except asyncio.CancelledError:
            # SAFETY: it lives: nobody else may get its uid before it is dead.
            if self._supervising is not None:
                self._supervising.add_done_callback(lambda _: self._release())
            raise
        await self._remove_cgroup()
        self._release()

    def _chain(self, listed: int) -> list[str]:
        joins = self._cgroup.procs_files() if self._cgroup is not None else []
        drop = []
        if os.geteuid() == 0:
            # SAFETY: dropped before bwrap: inside a namespace root is only renamed.
            drop = [
                "setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups",
                "--inh-caps=-all", "--no-new-privs",
            ]  # fmt: skip
        return [
            "/bin/sh", "-c", _LAUNCH, "limbeck-launch", *joins, "--",
            *drop, self._bwrap, "--args", str(listed), "--", *self._program,
        ]  # fmt: skip

    def _cores(self) -> contextlib.AbstractContextManager[None]:
        """What a process started inside may run on: without a cgroup only so many cores."""
        if self._cgroup is not None:
            return contextlib.nullcontext()
        return pinned(math.ceil(self._limits.cpu), int(self._id, 16))

    async def _supervise(self, status_read: int, outer: int) -> ExitReport:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        assert process.stderr is not None
        status = PipeReader(status_read)
        report = PipeReader(process.stdout.fileno(), self._process_one.feed)
        errors = PipeReader(process.stderr.fileno())
        watching = asyncio.create_task(self._watch())
        watching.add_done_callback(self._watched)
        try:
            inner = await self._find_inner(status, outer)
            if inner >= 0:
                await until_readable(inner)
            else:
                # bwrap died before it named its child, which may wait for it for ever; it is in
                # the group of the dead one, whose number nobody else gets before it is reaped.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            if not await until_readable(outer, REAP_SECONDS):
                process.kill()
                await until_readable(outer)
            process.wait()
            report.text()  # What still waits in the pipe.
            return self._report(self._process_one.report, errors.text())
        finally:
            watching.cancel()
            if self._inner >= 0:
                os.close(self._inner)
                self._inner = -1
            os.close(outer)
            for reader in (status, report, errors):
                reader.close()
            os.close(status_read)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    async def _find_inner(self, status: PipeReader, outer: int) -> int:
        """The pidfd of the namespace's process 1; -1 when it never was."""
        pid = await status.find(b'"child-pid": ')
        if pid is None:
            return -1
        try:
            self._inner = os.pidfd_open(pid)
        except ProcessLookupError:
            return -1
        except OSError:
            log.exception("sandbox %s cannot be watched", self._id)
            self._strike()  # SAFETY: what cannot be watched does not live.
            return -1
        self._tree = ProcessTree(pid)
        if self._killed:
            self._strike()
        return self._inner

    async def _watch(self) -> None:
        """Hold the limits that the kernel does not."""
        interval = INTERVAL if self._cgroup is None else CPU_INTERVAL
        while True:
            await asyncio.sleep(interval)
            await self._going.wait()
            if self._cgroup is None and self._over_memory():
                return self._hit(ExitCause.MEMORY)
            if self._over_cpu():
                return self._hit(ExitCause.CPU)

    def _watched(self, watching: asyncio.Task[None]) -> None:
        """SAFETY: a watch that broke watches nothing, so that its sandbox must not go on."""
        if not watching.cancelled() and watching.exception() is not None:
            log.error("the watch of a sandbox broke", exc_info=watching.exception())
            self._strike()

    def _over_memory(self) -> bool:
        limit = self._limits.memory
        return self._tree is not None and self._tree.memory(limit) > limit

    def _hit(self, cause: ExitCause) -> None:
        self._limit_hit = cause
        self._strike()

    def _strike(self) -> None:
        """SIGKILL process 1, and the chain that leads to it."""
        if self._inner >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._inner, signal.SIGKILL)
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def _send(self, message: bytes) -> None:
        if self._process is None or self._process.stdin is None or self._process.stdin.closed:
            raise BrokenPipeError
        os.write(self._process.stdin.fileno(), message)

    def _report(self, said: ProcessOneReport, errors: str) -> ExitReport:
        usage = self.usage()
        return ExitReport(
            cause=self._cause(said, usage),
            exit_code=said.exit_code,
            signal=said.signal,
            usage=usage,
            diagnosis=errors,
        )

    def _cause(self, said: ProcessOneReport, usage: Usage) -> ExitCause:
        if self._limit_hit is not None:
            return self._limit_hit
        # A script may lose a child to the limit, and go on to an end of its own.
        own_end = said.word == "exited" and said.exit_code is not None
        if not own_end and self._oom_kills() > self._oom_before:
            return ExitCause.MEMORY
        if said.signal == signal.SIGXCPU or (said.signal == signal.SIGKILL and self._over_cpu()):
            return ExitCause.CPU
        if said.word == "deadline":
            return ExitCause.DEADLINE
        if said.word == "exited":
            return ExitCause.EXITED
        return ExitCause.KILLED if self._killed else ExitCause.LOST

    def _oom_kills(self) -> int:
        return int(self._cgroup.oom_kills()) if self._cgroup is not None else 0

    async def _remove_cgroup(self) -> None:
        if self._cgroup is None:
            return
        for _ in range(REMOVE_TRIES):
            self._cgroup.kill()
            if self._cgroup.remove():
                return
            await asyncio.sleep(REMOVE_PAUSE)
        log.error("the cgroup of sandbox %s is left to the reaper", self._id)


def _memory_file(data: bytes, stack: contextlib.ExitStack) -> int:
    """A file of memory, from its beginning; closed with the stack."""
    descriptor = os.memfd_create("limbeck-arguments")
    stack.callback(os.close, descriptor)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
