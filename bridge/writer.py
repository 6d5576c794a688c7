"""Sends messages one at a time; results that wait meanwhile travel together.

The writing is a task of its own: a call that is cancelled must not cut a message that carries the
answers of others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ..runtime.wire_pb2 import FromHost, ToolResult

_BATCH_BYTES = 1024 * 1024

log = logging.getLogger("limbeck.bridge")

_Waiting = tuple[ToolResult | FromHost, int, asyncio.Future[None]]
"""A result, or a whole message that travels alone."""


class Writer:
    """The one writer of a stream."""

    def __init__(self, write: Callable[[FromHost], Awaitable[None]]) -> None:
        self._write = write
        self._queue: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self.unwritten = 0
        """Bytes of results that wait to be written."""

    async def send(self, result: ToolResult) -> None:
        """Send one result; returns when it is written, or when the stream is over."""
        if not self._closed:
            await self.put(result)

    def put(self, item: ToolResult | FromHost) -> asyncio.Future[None]:
        """Send a result, or a message of its own; nobody has to wait for what is given back."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        if self._closed:
            waiter.set_result(None)
            return waiter
        size = item.ByteSize()
        self.unwritten += size
        self._queue.append((item, size, waiter))
        if self._task is None:
            self._task = loop.create_task(self._drain())
        return waiter

    def drop(self) -> set[int]:
        """Send none of the results that wait; the calls that they were for."""
        dropped = [one for one in self._queue if isinstance(one[0], ToolResult)]
        self._queue = [one for one in self._queue if not isinstance(one[0], ToolResult)]
        self._settle(dropped)
        return {one[0].id for one in dropped if isinstance(one[0], ToolResult)}

    async def close(self) -> None:
        """Write no more."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._settle(self._queue)
        self._queue = []

    async def _drain(self) -> None:
        try:
            while self._queue:
                batch = self._take()
                first = batch[0][0]
                try:
                    if isinstance(first, FromHost):
                        await self._write(first)
                    else:
                        results = [one for one, _, _ in batch if isinstance(one, ToolResult)]
                        await self._write(FromHost(results=results))
                finally:
                    self._settle(batch)
        except Exception as error:
            # The peer is gone; whoever waits for its end learns it from the stream itself.
            log.debug("the stream is over: %r", error)
            self._closed = True
            self._settle(self._queue)
            self._queue = []
        finally:
            self._task = None

    def _take(self) -> list[_Waiting]:
        count = total = 0
        for item, size, _ in self._queue:
            if count and (isinstance(item, FromHost) or total + size > _BATCH_BYTES):
                break
            count += 1
            total += size
            if isinstance(item, FromHost):
                break
        batch, self._queue = self._queue[:count], self._queue[count:]
        return batch

    def _settle(self, batch: list[_Waiting]) -> None:
        for _, size, waiter in batch:
            self.unwritten -= size
            if not waiter.done():
                waiter.set_result(None)
