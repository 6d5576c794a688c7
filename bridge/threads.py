"""A bounded pool of daemon threads for plain handlers.

Of our own, because concurrent.futures and asyncio.to_thread join their threads when the process
ends: one stuck handler would hang it. A thread cannot be stopped: a handler that is late keeps its
thread until it returns, and its result is dropped.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

MAX_THREADS = 64


class DaemonPool:
    """Runs functions in daemon threads and gives their results to the loop that asked."""

    def __init__(self, name: str, max_threads: int = MAX_THREADS) -> None:
        self._name = name
        self._max_threads = max_threads
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._idle = 0
        self._waiting = 0

    async def run(self, function: Callable[[], Any]) -> Any:
        """Run a function in a thread: its value, or its exception."""
        loop = asyncio.get_running_loop()
        job = _Job(function, loop, loop.create_future())
        with self._lock:
            self._waiting += 1
            if self._waiting > self._idle and self._threads < self._max_threads:
                self._threads += 1
                threading.Thread(target=self._serve, name=self._name, daemon=True).start()
        self._jobs.put(job)
        return await job.future

    def close(self) -> None:
        """Let idle threads end, and busy ones when they return."""
        with self._lock:
            for _ in range(self._threads):
                self._jobs.put(None)

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            job = self._jobs.get()
            with self._lock:
                self._idle -= 1
                if job is None:
                    self._threads -= 1
                    return
                self._waiting -= 1
            job.run()


class _Job:
    __slots__ = ("function", "future", "loop")

    def __init__(
        self,
        function: Callable[[], Any],
        loop: asyncio.AbstractEventLoop,
        future: asyncio.Future[Any],
    ) -> None:
        self.function = function
        self.loop = loop
        self.future = future

    def run(self) -> None:
        if self.future.cancelled():
            return  # Timed out in the queue: it must not start any more.
        try:
            value, error = self.function(), None
        except BaseException as raised:
            value, error = None, raised
        try:
            self.loop.call_soon_threadsafe(self._settle, value, error)
        except RuntimeError:
            return  # The loop is closed: nobody waits any more.

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
