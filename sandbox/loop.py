"""Loops in threads of limbeck's own.

Servers, deadlines and kills run on ONE loop, so that a user's blocking coroutine can never stall a
deadline. A second loop runs the coroutine tools of the plain `Executor`, which has no loop of its
caller to send them to. Both threads are daemons and live as long as the process.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any

from ..runtime.errors import ConfigurationError


class LoopThread:
    """An event loop that runs in a daemon thread."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Run a coroutine on the loop, from any other thread."""
        try:
            self.check_process()
        except ConfigurationError:
            coroutine.close()
            raise
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def check_process(self) -> None:
        """Raise when this process is a fork of the one that has the thread."""
        if os.getpid() != self._pid:
            raise ConfigurationError(
                "executor",
                "this process was forked from the one that made the executor",
                "make the executor in the process that uses it.",
            )

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


_threads: dict[str, LoopThread] = {}
_lock = threading.Lock()


def own_loop() -> LoopThread:
    """limbeck's one loop: servers, sandboxes, deadlines, kills."""
    return _thread("limbeck-loop")


def tool_loop() -> LoopThread:
    """The loop that runs nothing but the coroutine tools of plain executors."""
    return _thread("limbeck-tools")


def _thread(name: str) -> LoopThread:
    with _lock:
        if name not in _threads:
            _threads[name] = LoopThread(name)
        return _threads[name]


def _forget() -> None:
    global _lock
    _threads.clear()
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget)
