"""Rows on their way from a generator in another thread or loop, with back-pressure.

The producer puts rows while fewer than the call's `rows_ahead` wait; the consumer, on limbeck's
loop, takes all that wait at once. So a slow producer's row is delivered at once, a fast one's
travel together, and neither side holds more than a few messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any

from .call import ToolCall

MAX_BATCH = 1_024
"""Rows that are taken at once: they are checked without a pause, in which the loop serves nobody.
"""


class RowQueue:
    """The rows of one streamed call between its producer and limbeck's loop."""

    def __init__(self, call: ToolCall) -> None:
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._changed = threading.Condition()
        self._rows: deque[Any] = deque()
        self._some = asyncio.Event()
        self._ended = False
        self._error: BaseException | None = None
        self._closed = False
        self._on_room: Callable[[], object] | None = None

    # -- the producer's side, in any thread ---------------------------------------------------

    def fill_from(self, iterator: Iterator[Any]) -> None:
        """Drain a plain generator in this thread; closes it when the consumer has gone."""
        try:
            for row in iterator:
                with self._changed:
                    self._changed.wait_for(self._has_room)
                if not self._put(row):
                    break
        except BaseException as error:
            self.fail(error)
        else:
            self._end(None)
        finally:
            _close_quietly(iterator)

    async def fill_from_async(self, iterator: AsyncIterator[Any]) -> None:
        """Drain an async generator on its own loop; closes it when the consumer has gone."""
        room, loop = asyncio.Event(), asyncio.get_running_loop()
        self._on_room = lambda: loop.call_soon_threadsafe(room.set)
        try:
            async for row in iterator:
                while not self._has_room():
                    room.clear()
                    if not self._has_room():
                        await room.wait()
                if not self._put(row):
                    break
        except BaseException as error:
            self.fail(error)
            if isinstance(error, asyncio.CancelledError):
                raise
        else:
            self._end(None)
        finally:
            await iterator.aclose()  # type: ignore[attr-defined]

    def fail(self, error: BaseException) -> None:
        """End the rows with the producer's exception; none may end a loop."""
        if not isinstance(error, Exception):
            failure = RuntimeError(f"the generator raised {type(error).__name__}")
            failure.__cause__ = error
            error = failure
        self._end(error)

    def _has_room(self) -> bool:
        return self._closed or len(self._rows) < self._call.rows_ahead

    def _put(self, row: Any) -> bool:
        with self._changed:
            if self._closed:
                return False
            self._rows.append(row)
            first = len(self._rows) == 1
        if first:
            self._wake()
        return True

    def _end(self, error: BaseException | None) -> None:
        with self._changed:
            self._ended = True
            self._error = error
        self._wake()

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._some.set)
        except RuntimeError:
            self._closed = True  # limbeck's loop has ended: nobody consumes any more.

    # -- the consumer's side, on limbeck's loop -----------------------------------------------

    async def batches(self) -> AsyncGenerator[list[Any]]:
        """All rows, as many at a time as wait, up to MAX_BATCH. Raises what the producer raised."""
        try:
            while True:
                await self._some.wait()
                self._some.clear()
                rows, ended = self._take()
                if rows:
                    yield rows
                if ended:
                    if self._error is not None:
                        raise self._error
                    return
        finally:
            self.close()

    def close(self) -> None:
        """Tell the producer that nobody wants more."""
        with self._changed:
            self._closed = True
        self._tell_room()

    def _take(self) -> tuple[list[Any], bool]:
        with self._changed:
            rows = [self._rows.popleft() for _ in range(min(len(self._rows), MAX_BATCH))]
            if self._rows:
                self._some.set()
            ended = self._ended and not self._rows
        self._tell_room()
        return rows, ended

    def _tell_room(self) -> None:
        with self._changed:
            self._changed.notify_all()
        if self._on_room is not None:
            try:
                self._on_room()
            except RuntimeError:
                return  # The producer's loop is closed, and its generator with it.


def _close_quietly(iterator: Iterator[Any]) -> None:
    close = getattr(iterator, "close", None)
    if close is not None:
        with contextlib.suppress(Exception):  # the stream has ended; its answer is given
            close()
