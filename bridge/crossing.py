"""From one event loop to another and back, many calls for one wake-up.

`call_soon_threadsafe` writes to a socket each time, which costs more than most handlers of a
pipeline, and hands the interpreter to the other thread, which then finds one thing to do. Here what
a loop posts in one of its turns travels together, behind that turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

CANCEL_SECONDS = 2.0
"""How long a cancelled coroutine may take to end before nobody waits for it any more."""

_lock = threading.Lock()
_posts: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Post] = weakref.WeakKeyDictionary()


class LoopClosed(RuntimeError):
    """The loop that something was to run on is closed."""


class Post:
    """What other threads ask of one loop; `post_to` gives the one of a loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._ready: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._woken = False
        self._wakers: set[asyncio.AbstractEventLoop] = set()
        """Loops that will wake this one at the end of their turn."""

    def send(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function on the loop, in the order of sending. Raises LoopClosed."""
        loop = self._loop()
        if loop is None or loop.is_closed():
            raise LoopClosed
        self._ready.append((function, arguments))
        if self._woken:
            return
        sender = asyncio._get_running_loop()
        if sender is None:
            self._wake(loop)
        elif sender not in self._wakers:
            # Others do not rely on it: a loop may end before its turn does.
            self._wakers.add(sender)
            sender.call_soon(self._wake_after_turn, sender)

    def _wake_after_turn(self, sender: asyncio.AbstractEventLoop) -> None:
        self._wakers.discard(sender)
        loop = self._loop()
        if loop is not None and self._ready:
            # Closed meanwhile, it is as if it had closed before it came round.
            with contextlib.suppress(LoopClosed):
                self._wake(loop)

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._woken:
            return
        self._woken = True
        try:
            loop.call_soon_threadsafe(self._run)
        except RuntimeError:
            raise LoopClosed from None

    def _run(self) -> None:
        # Before anything is taken: who sends from now on wakes the loop again.
        self._woken = False
        for _ in range(len(self._ready)):
            function, arguments = self._ready.popleft()
            try:
                function(*arguments)
            except Exception as error:
                loop = asyncio.get_running_loop()
                loop.call_exception_handler({"message": "a posted call failed", "exception": error})


def post_to(loop: asyncio.AbstractEventLoop) -> Post:
    """The one post of a loop."""
    post = _posts.get(loop)
    if post is None:
        with _lock:
            post = _posts.setdefault(loop, Post(loop))
    return post


async def run_on(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine on another loop: its value, or its exception.

    Cancelling this cancels it there. LoopClosed: and so was the coroutine.
    """
    crossing = _Crossing(loop, coroutine)
    try:
        post_to(loop).send(crossing.start)
    except LoopClosed:
        coroutine.close()
        raise
    try:
        return await crossing.result
    except asyncio.CancelledError:
        if not crossing.over:
            crossing.cancel()
            await crossing.until_ended()
        raise


class _Crossing:
    """One coroutine on the other loop, and the future that waits for it on this one."""

    def __init__(
        self, there: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any]
    ) -> None:
        here = asyncio.get_running_loop()
        self.result: asyncio.Future[Any] = here.create_future()
        self.ended: asyncio.Future[None] = here.create_future()
        self.over = False
        """The coroutine has ended."""
        self._coroutine = coroutine
        self._here, self._there = post_to(here), post_to(there)
        self._task: asyncio.Task[Any] | None = None

    def start(self) -> None:
        """On the other loop."""
        self._task = asyncio.get_running_loop().create_task(self._coroutine)
        self._task.add_done_callback(self._ended)

    def cancel(self) -> None:
        """From this loop; behind `start` in the other's post."""
        try:
            self._there.send(self._cancel)
        except LoopClosed:
            self._coroutine.close()  # Its loop has gone: nothing runs there any more.
            self.ended.set_result(None)

    async def until_ended(self) -> None:
        """Wait, also when cancelled again: nothing of it is to run when whoever cancelled goes on.

        A handler that swallows its cancelling is left alone after CANCEL_SECONDS.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + CANCEL_SECONDS
        while not self.ended.done() and (left := until - clock()) > 0:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([self.ended], timeout=left)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        try:
            self._here.send(self._settle, task, error)
        except LoopClosed:
            return  # This loop has gone: nobody waits.

    def _settle(self, task: asyncio.Task[Any], error: BaseException | None) -> None:
        self.over = True
        if not self.ended.done():
            self.ended.set_result(None)
        if self.result.done():
            return
        if task.cancelled():
            self.result.cancel()
        elif error is not None:
            self.result.set_exception(error)
        else:
            self.result.set_result(task.result())
