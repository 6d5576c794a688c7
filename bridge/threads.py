"""A bounded pool of daemon threads for plain handlers, shared fairly by the executions.

Of our own, because concurrent.futures and asyncio.to_thread join their threads when the process
ends: one stuck handler would hang it. A thread cannot be stopped: a handler that is late keeps its
thread until it returns, and its result is dropped. Another thread takes its place meanwhile, up to
a bound, so that late handlers of one tool do not stop all others.

What finds no thread waits. Whoever holds the fewest threads is next, and nobody holds all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter, deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from .crossing import LoopClosed, post_to
from .start import Start

MAX_THREADS = 64
"""Handlers that run at a time, the late ones left aside."""

MAX_LATE = 192
"""Late handlers whose threads are replaced; each one more takes a place of MAX_THREADS."""

MOST_OF_ONE = 48
"""Threads that one owner may hold, its late handlers counted."""


class DaemonPool:
    """Runs functions in daemon threads and gives their results to the loop that asked."""

    def __init__(
        self,
        name: str,
        max_threads: int = MAX_THREADS,
        *,
        max_late: int = MAX_LATE,
        most_of_one: int = MOST_OF_ONE,
    ) -> None:
        self._name = name
        self._max_threads = max_threads
        self._max_all = max_threads + max_late
        self._most_of_one = most_of_one
        self._ready: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[_Job]] = {}
        self._held: Counter[str] = Counter()
        self._running = 0
        self._late = 0
        self._idle = 0
        self._closed = False

    async def run(
        self, function: Callable[[], Any], *, owner: str = "", start: Start | None = None
    ) -> Any:
        """Run a function in a thread: its value, or its exception.

        `start` says afterwards whether it began: when this is cancelled while the function waits
        for a thread, it never does.
        """
        loop = asyncio.get_running_loop()
        job = _Job(function, loop, owner, start or Start())
        with self._lock:
            if not (self._may_run(owner) and self._launch(job)):
                self._waiting.setdefault(owner, deque()).append(job)
        try:
            return await job.future
        except asyncio.CancelledError:
            self._give_up(job)
            raise

    def close(self) -> None:
        """Let idle threads end, and busy ones when they return."""
        with self._lock:
            self._closed = True
            for _ in range(self._idle):
                self._ready.put(None)
            self._idle = 0

    # -- under the lock -----------------------------------------------------------------------

    def _may_run(self, owner: str) -> bool:
        return (
            self._running < self._max_threads
            and self._running + self._late < self._max_all
            and self._held[owner] < self._most_of_one
        )

    def _launch(self, job: _Job) -> bool:
        """Give a job its thread; False when the system has none and one of ours will come free."""
        if self._idle:
            self._idle -= 1
            self._ready.put(job)
        else:
            thread = threading.Thread(target=self._serve, args=(job,), name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                if not self._running:
                    raise
                return False
        self._hold(job)
        return True

    def _hold(self, job: _Job) -> None:
        self._running += 1
        self._held[job.owner] += 1

    def _next(self) -> _Job | None:
        """What waits and may run now, of the owner that holds the fewest threads."""
        owners = [owner for owner in self._waiting if self._may_run(owner)]
        if not owners:
            return None
        owner = min(owners, key=self._held.__getitem__)
        queue = self._waiting.pop(owner)
        job = queue.popleft()
        if queue:
            self._waiting[owner] = queue  # Behind the others that hold as few.
        return job

    def _release(self, job: _Job) -> None:
        if job.late:
            self._late -= 1
        else:
            self._running -= 1
        self._held[job.owner] -= 1
        if not self._held[job.owner]:
            del self._held[job.owner]

    # -- in any thread ------------------------------------------------------------------------

    def _give_up(self, job: _Job) -> None:
        """Nobody waits for a job any more."""
        never = job.start.give_up()
        with self._lock:
            queue = self._waiting.get(job.owner)
            if queue is not None and job in queue:
                queue.remove(job)
                if not queue:
                    del self._waiting[job.owner]
            elif not never and not job.over:
                job.late = True
                self._running -= 1
                self._late += 1
                following = self._next()
                if following is not None and not self._launch(following):
                    self._waiting.setdefault(following.owner, deque()).appendleft(following)

    def _serve(self, job: _Job | None) -> None:
        while job is not None:
            if job.start.begin():
                job.run()
            with self._lock:
                job.over = True
                self._release(job)
                job = self._next()
                if job is not None:
                    self._hold(job)
                elif self._closed:
                    return
                else:
                    self._idle += 1
            if job is None:
                job = self._ready.get()


class _Job:
    __slots__ = ("function", "future", "late", "loop", "over", "owner", "start")

    def __init__(
        self,
        function: Callable[[], Any],
        loop: asyncio.AbstractEventLoop,
        owner: str,
        start: Start,
    ) -> None:
        self.function = function
        self.loop = loop
        self.owner = owner
        self.start = start
        self.future: asyncio.Future[Any] = loop.create_future()
        self.late = False
        self.over = False

    def run(self) -> None:
        try:
            value, error = self.function(), None
        except BaseException as raised:
            value, error = None, raised
        with contextlib.suppress(LoopClosed):  # nobody waits any more
            post_to(self.loop).send(self._settle, value, error)

    def _settle(self, value: Any, error: BaseException | None) -> None:
        if self.future.cancelled():
            return
        if error is None:
            self.future.set_result(value)
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            self.future.set_exception(error)
        else:
            # These would end the loop, or cannot be set on a future.
            failure = RuntimeError(f"the function raised {type(error).__name__}")
            failure.__cause__ = error
            self.future.set_exception(failure)
