"""Process 1 of a sandbox: starts the worker, reaps, keeps the host's clock, reports the end.

It imports next to nothing and runs nothing of the script's. It alone holds the pipe on its standard
output, and nobody inside can look into it, so that the lines it writes there cannot be forged:

    frozen <threads>    everything inside but process 1 is stopped
    thawed
    exit <code or -> <signal or -> <exited | deadline | ended | unstoppable> <CPU milliseconds>

Arguments are `key=value`: data, nproc, fsize, cpu (limits of the worker, 0: none), bridge, tools.
"""

from __future__ import annotations

import _ctypes
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Sequence

from . import clock

PR_SET_DUMPABLE = 4

DEADLINE_GRACE = 1.0
"""Seconds after the job's wall limit: the host should have killed the sandbox before."""

FREEZE_SECONDS = 5.0
"""How long everything inside may take to stop; what does not is killed."""

OPEN_FILES = 256
PENDING_SIGNALS = 1_024

_DEFAULTS = {"bridge": "/bridge", "tools": "/tools"}


def main(arguments: Sequence[str] = ()) -> None:
    """Be process 1; never returns."""
    settings = {**_DEFAULTS, **dict(item.split("=", 1) for item in arguments or sys.argv[1:])}
    # SAFETY: before the first untrusted byte. Nobody inside may read our memory, environment or
    # descriptors, nor open our standard output through /proc.
    _set_dumpable(False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _nothing)
    worker = os.fork()
    if worker == 0:
        _be_worker(settings, (wake_read, wake_write))
    _Watch(worker, wake_read).run()


def _nothing(_number: int, _frame: object) -> None:
    """A handler, so that SIGCHLD writes to the wakeup descriptor."""


def _be_worker(settings: dict[str, str], inherited: Sequence[int]) -> None:
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for descriptor in inherited:
            os.close(descriptor)
        os.setsid()
        _close_standard_streams()
        _limit(settings)
        _set_dumpable(True)
        # The heavy imports are the worker's alone: process 1 stays small.
        from .worker import main as serve

        serve(settings["bridge"], settings["tools"])
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)


def _close_standard_streams() -> None:
    """Empty input; output to stderr, until the worker has its own: stdout is process 1's alone."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)


def _limit(settings: dict[str, str]) -> None:
    """SAFETY: set in the worker's process before it compiles anything; hard limits, all of them."""
    _cap(resource.RLIMIT_DATA, int(settings.get("data", 0)))
    _cap(resource.RLIMIT_NPROC, int(settings.get("nproc", 0)))
    _cap(resource.RLIMIT_FSIZE, int(settings.get("fsize", 0)))
    _cap(resource.RLIMIT_CPU, int(settings.get("cpu", 0)))
    _cap(resource.RLIMIT_NOFILE, OPEN_FILES)
    _cap(resource.RLIMIT_MEMLOCK, -1)
    # Not 0: that would still start a core handler of the host's that reads from a pipe.
    _cap(resource.RLIMIT_CORE, 1)
    _cap(resource.RLIMIT_MSGQUEUE, -1)
    # Signals that wait are kernel memory; the host's user may have more of all these than a script.
    _cap(resource.RLIMIT_SIGPENDING, PENDING_SIGNALS)
    _cap(resource.RLIMIT_RTPRIO, -1)
    _cap(resource.RLIMIT_NICE, -1)
    # C threads took their stack size from the soft limit at the start; the main thread may grow.
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    wanted = 8 * 1024 * 1024
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (soft, soft))


def _cap(which: int, value: int) -> None:
    """Set both limits to a value: 0 leaves them as they are, -1 means none at all."""
    if value == 0:
        return
    value = max(value, 0)
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))


def _set_dumpable(dumpable: bool) -> None:
    # `_ctypes` alone: the ctypes package costs more to import than the rest of this file.
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
    if _ctypes.call_function(prctl, (PR_SET_DUMPABLE, int(dumpable), 0, 0, 0)) != 0:
        raise OSError("prctl(PR_SET_DUMPABLE) failed")


def _cpu_milliseconds() -> int:
    """Of all that was reaped, and of this process."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return int(sum(one.ru_utime + one.ru_stime for one in used) * 1000)


class _Watch:
    """Waits for the worker's end, the host's clock and the deadline, whichever comes first."""

    def __init__(self, worker: int, wake: int) -> None:
        self._worker = worker
        self._wake = wake
        self._poll = select.poll()
        self._poll.register(0, select.POLLIN)
        self._poll.register(wake, select.POLLIN)
        self._left: float | None = None
        """Seconds until the deadline; None without a job."""
        self._since: float | None = None
        """When `_left` was true; None while the clock stands still."""
        self._input = b""

    def run(self) -> None:
        while True:
            timeout = self._timeout()
            if timeout == 0:
                self._end("-", "-", "deadline")
            ready = dict(self._poll.poll(timeout))
            if self._wake in ready:
                os.read(self._wake, 4096)
            self._reap()
            if 0 in ready:
                self._hear()

    def _timeout(self) -> int | None:
        """Milliseconds until the deadline, 0 when it has come, None when there is none."""
        if self._left is None or self._since is None:
            return None
        left = self._left - (time.monotonic() - self._since)
        return max(int(left * 1000), 1) if left > 0 else 0

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._end("-", "-", "exited")
            if pid == 0:
                return
            if pid == self._worker:
                code = os.waitstatus_to_exitcode(status)
                number = str(-code) if code < 0 else "-"
                self._end("-" if code < 0 else str(code), number, "exited")

    def _hear(self) -> None:
        data = os.read(0, clock.SIZE - len(self._input))
        if not data:
            self._end("-", "-", "ended")
        self._input += data
        if len(self._input) < clock.SIZE:
            return
        op, milliseconds = clock.read(self._input)
        self._input = b""
        now = time.monotonic()
        if op == clock.START:
            self._left, self._since = milliseconds / 1000 + DEADLINE_GRACE, now
        elif op in (clock.PAUSE, clock.FREEZE, clock.RESUME, clock.THAW):
            self._hold(op in (clock.PAUSE, clock.FREEZE), now)
        elif op == clock.END:
            self._end("-", "-", "ended")
        if op == clock.FREEZE:
            self._freeze()
        elif op == clock.THAW:
            self._signal(signal.SIGCONT)
            self._say("thawed")

    def _hold(self, still: bool, now: float) -> None:
        """Let the deadline's clock stand still, or go on."""
        if self._left is None:
            return
        if still and self._since is not None:
            self._left, self._since = self._left - (now - self._since), None
        elif not still and self._since is None:
            self._since = now

    def _freeze(self) -> None:
        """Stop everything else inside. SAFETY: whoever forks faster than we stop is killed."""
        until = time.monotonic() + FREEZE_SECONDS
        before: set[str] | None = None
        while time.monotonic() < until and not self._is_host_gone():
            self._signal(signal.SIGSTOP)
            stopped = _stopped_threads(None if os.getpid() == 1 else self._worker)
            # Twice the same: nothing came to be behind our back while the list was read.
            if stopped is not None and stopped == before:
                self._say(f"frozen {len(stopped)}")
                return
            before = stopped
            time.sleep(0.001)
        self._end("-", "-", "unstoppable")

    def _is_host_gone(self) -> bool:
        return any(events & select.POLLHUP for _, events in self._poll.poll(0))

    def _signal(self, number: int) -> None:
        """Send a signal to all that is inside but us."""
        # SAFETY: -1 means "all but me" only where we are process 1 of a namespace of our own.
        target = -1 if os.getpid() == 1 else -self._worker
        try:  # noqa: SIM105 - contextlib is more to import than this file
            os.kill(target, number)
        except ProcessLookupError:
            pass  # Nobody is left.

    def _say(self, line: str) -> None:
        try:
            os.write(1, f"{line}\n".encode())
        except OSError:
            os._exit(1)  # The host is gone: nobody reads it.

    def _end(self, code: str, number: str, cause: str) -> None:
        """Kill everything that is left, report, exit."""
        self._signal(signal.SIGKILL)
        self._say(f"exit {code} {number} {cause} {_cpu_milliseconds()}")
        os._exit(0)


def _stopped_threads(group: int | None) -> set[str] | None:
    """Threads of all other processes (of one process group), or None while one of them runs."""
    found: set[str] = set()
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                state, _, its_group = _stat(f"/proc/{pid}/task/{thread}/stat")[:3]
                if group is not None and int(its_group) != group:
                    break
                if state in "Tt":
                    found.add(thread)
                elif state not in "ZX":
                    return None
        except OSError:
            continue  # It has just ended.
    return found


def _stat(path: str) -> list[str]:
    """The fields of a stat file behind the program's name, which may hold anything."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 4096).rpartition(b")")[2].decode().split()
    finally:
        os.close(descriptor)
