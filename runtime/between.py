"""What lies between two scripts of a session in one process: ends, waits, and putting right.

The state of a script stays, as in a notebook. What is put right is what the next one could not run
without: its streams, its folder, an alarm that nobody waits for any more.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

from . import printout
from .errors import BridgeClosed

CPU_GRACE = 5
"""Seconds beside the budget: the host's accounting comes first."""

PATIENCE = 0.005
"""Seconds between two looks at a pool that is at work."""

TRIES = 1_000
"""However often a script interrupts what reports its end."""

LEAST_RECURSION = 1_000

_T = TypeVar("_T")
_folder = os.getcwd()


def limit_cpu(seconds: int, *, hard: bool) -> None:
    """RLIMIT_CPU of this process: what it has used and so many seconds more; 0 leaves it.

    The host's accounting is the limit; this is for a host that does not come to look. `hard` when
    no other script follows. Process 1 cannot do it: the filter lets nobody set another's limits.
    """
    if not seconds:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(used.ru_utime + used.ru_stime) + seconds + CPU_GRACE
    if most != resource.RLIM_INFINITY:
        soft = min(soft, most)
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, soft if hard else most))
    except (OSError, ValueError):
        return  # An earlier script lowered it.


def run_interruptible(step: Callable[[], object]) -> None:
    """Take a step of the script's: only here an interrupt is a KeyboardInterrupt.

    A thread may interrupt the main thread at any time; what reports the end is not the script's.
    """
    try:
        if signal.getsignal(signal.SIGINT) is _not_now:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        step()
    finally:
        surely(_hold_interrupts)


def _hold_interrupts() -> None:
    # A handler of the script's own stays.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _not_now)


def _not_now(_number: int, _frame: object) -> None:
    """An interrupt outside the script."""


def surely(step: Callable[[], _T]) -> _T:
    """Take a step that may be taken again, whatever interrupts it; only BridgeClosed is raised.

    A thread or an alarm that a script left behind may raise anything in the main thread.
    """
    for _ in range(TRIES):
        try:
            return step()
        except BridgeClosed:
            raise
        except BaseException:  # noqa: S112 - it is nobody's: the script has ended
            continue
    raise BridgeClosed


def end_as_python_does() -> None:
    """Wait for the script's own threads and run its exit handlers, as Python does at its end."""
    # First what Python runs before it joins: idle pools are told to end.
    for ending in reversed(threading._threading_atexits):  # type: ignore[attr-defined]
        ending()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()


def wait_for_threads() -> None:
    """Wait for the script's own threads, as Python does at its end; idle ones of pools may stay.

    No exit handler runs: concurrent.futures would take no work in this process ever after.
    """
    while (thread := _busy_thread()) is not None:
        if thread in _pool_threads() or thread in _managers():
            time.sleep(PATIENCE)
        else:
            thread.join()


def silence_alarms() -> None:
    """No alarm of the script's rings after its end: one that raises could cut a message."""
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0)


def put_right(module: ModuleType) -> None:
    """Make the process fit for the next script; `module` is `__main__`."""
    if sys.getrecursionlimit() < LEAST_RECURSION:
        sys.setrecursionlimit(LEAST_RECURSION)
    printout.restore()
    with contextlib.suppress(OSError):  # the script made it unreachable for itself
        os.chdir(_folder)
    sys.argv = ["script.py"]
    sys.modules["__main__"] = module
    module.__dict__["__name__"] = "__main__"


def _busy_thread() -> threading.Thread | None:
    """A thread that the end of the script waits for."""
    for thread in threading.enumerate():
        if thread is threading.current_thread() or thread.daemon:
            continue
        if not _is_idle(thread):
            return thread
    return None


def _pool_threads() -> Any:
    """Thread to its queue of work, of every ThreadPoolExecutor; empty without the module."""
    module = sys.modules.get("concurrent.futures.thread")
    return getattr(module, "_threads_queues", {})


def _managers() -> Any:
    """The thread of every ProcessPoolExecutor; empty without the module."""
    module = sys.modules.get("concurrent.futures.process")
    return getattr(module, "_threads_wakeups", {})


def _is_idle(thread: threading.Thread) -> bool:
    """Whether it is a pool's and waits for work: below it there is no frame, in it no work."""
    if thread in _managers():
        return not getattr(thread, "pending_work_items", None)
    queue = _pool_threads().get(thread)
    if queue is None or not queue.empty():
        return False
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return not thread.is_alive()
    return frame.f_code.co_name == "_worker" and frame.f_locals.get("work_item") is None
