"""Tool calls from coroutines: on the same stream, read by the loop itself when no thread reads.

Calls of one turn of the loop travel in one message, so that `asyncio.gather` is as good as
`call_many`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any
from weakref import WeakKeyDictionary

from . import payload
from .channel import Channel
from .codec import Result
from .errors import BridgeClosed, from_wire

_STUCK_SECONDS = 0.05
"""After which a loop tries again to send what the host did not take."""


class AsyncCalls:
    """Calls for the coroutines of any loop."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _OnLoop] = WeakKeyDictionary()

    async def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Call one tool: its value, or its error raised by its class."""
        loop = self._here()
        async with loop.room:
            future: asyncio.Future[Result | None] = loop.loop.create_future()
            number = loop.post(tool, arguments, lambda answer: _settle(future, answer))
            try:
                answer = await future
            except asyncio.CancelledError:
                self._channel.cancel(number)
                raise
            finally:
                loop.forget(number)
        return self._channel.value(tool, answer)

    async def stream(self, tool: str, arguments: dict[str, Any]) -> AsyncIterator[Any]:
        """Call a streamed tool: its rows, never more than a few messages ahead."""
        loop = self._here()
        answers: asyncio.Queue[Result | None] = asyncio.Queue()
        number = loop.post(tool, arguments, answers.put_nowait)
        finished = False
        try:
            while not finished:
                answer = await answers.get()
                if answer is None:
                    finished = True
                    raise BridgeClosed(tool)
                finished = answer.last or bool(answer.error)
                for row in answer.rows:
                    yield payload.decode(row)
                if answer.error:
                    raise from_wire(json.loads(answer.error))
                if not finished:
                    self._channel.credit(number)
        finally:
            loop.forget(number)
            if not finished:
                self._channel.cancel(number)

    def _here(self) -> _OnLoop:
        loop = asyncio.get_running_loop()
        found = self._loops.get(loop)
        if found is None:
            found = self._loops[loop] = _OnLoop(loop, self._channel)
        return found


class _OnLoop:
    """What one loop waits for; it reads the stream as long as that is something."""

    def __init__(self, loop: asyncio.AbstractEventLoop, channel: Channel) -> None:
        # Weak: the table of loops must not keep them.
        self._loop = weakref.ref(loop)
        self.room = asyncio.Semaphore(channel.max_inflight)
        self._channel = channel
        self._numbers: set[int] = set()
        self._flushing = False

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, as long as something runs on it."""
        loop = self._loop()
        assert loop is not None, "a call of this loop is under way"
        return loop

    def post(
        self, tool: str, arguments: dict[str, Any], settle: Callable[[Result | None], None]
    ) -> int:
        """Ask for a call; it is sent at the end of the loop's turn."""
        number = self._channel.post(tool, arguments, _Inbox(self.loop, settle))
        if not self._numbers:
            self.loop.add_reader(self._channel.descriptor, self._channel.read_some)
        self._numbers.add(number)
        if not self._flushing:
            self._flushing = True
            self.loop.call_soon(self._flush)
        return number

    def forget(self, number: int) -> None:
        """A call is over."""
        self._channel.forget(number)
        self._numbers.discard(number)
        if not self._numbers:
            self.loop.remove_reader(self._channel.descriptor)

    def _flush(self, *, again: bool = False) -> None:
        self._flushing = False
        self._channel.flush(again=again)
        if self._channel.is_stuck:
            self._flushing = True
            self.loop.call_later(_STUCK_SECONDS, lambda: self._flush(again=True))


class _Inbox:
    """Takes answers for a coroutine: at once on its loop's thread, else by a message to it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, settle: Callable[[Result | None], None]
    ) -> None:
        self._loop = loop
        self._settle = settle
        self._thread = threading.get_ident()

    def put(self, answer: Result | None) -> None:
        if threading.get_ident() == self._thread:
            self._settle(answer)
        elif not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):  # it was closed meanwhile
                self._loop.call_soon_threadsafe(self._settle, answer)


def _settle(future: asyncio.Future[Result | None], answer: Result | None) -> None:
    if not future.done():
        future.set_result(answer)
