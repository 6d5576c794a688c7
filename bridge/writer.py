"""Sends results one message at a time; what waits meanwhile travels together.

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

_Waiting = tuple[ToolResult, int, asyncio.Future[None]]


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
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        size = result.ByteSize()
        self.unwritten += size
        self._queue.append((result, size, waiter))
        if self._task is None:
            self._task = loop.create_task(self._drain())
        await waiter

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
                try:
                    await self._write(FromHost(results=[result for result, _, _ in batch]))
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
        for _, size, _ in self._queue:
            if count and total + size > _BATCH_BYTES:
                break
            count += 1
            total += size
        batch, self._queue = self._queue[:count], self._queue[count:]
        return batch

    def _settle(self, batch: list[_Waiting]) -> None:
        for _, size, waiter in batch:
            self.unwritten -= size
            if not waiter.done():
                waiter.set_result(None)
