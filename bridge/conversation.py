"""The calls of one execution on its stream: served side by side, answered in any order.

Bounds, all in one place: calls under way (more wait unread in the stream, so that HTTP/2 pushes
back), calls that begin in one turn of the loop, bytes of results not yet written, and messages of
rows without credit.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing

from ..runtime.errors import ProtocolError, ToolError, ToolFailed, to_wire
from ..runtime.wire import MAX_INFLIGHT, STREAM_PART_BYTES, STREAM_PARTS
from ..runtime.wire_pb2 import FromHost, FromSandbox, ToolResult
from ..runtime.wire_pb2 import ToolCall as WireCall
from .call import CallNext, ToolCall
from .session import Execution
from .writer import Writer

log = logging.getLogger("limbeck.bridge")

MAX_UNWRITTEN = 32 * 1024 * 1024
"""Bytes of results that may wait for the sandbox to read before no new call is heard."""

CALLS_A_TURN = 32
"""Calls of one execution that begin before the loop goes round to the others."""


class Conversation:
    """Hears calls, serves each through the pipeline, sends the answers."""

    def __init__(
        self,
        execution: Execution,
        pipeline: CallNext,
        write: Callable[[FromHost], Awaitable[None]],
    ) -> None:
        self._execution = execution
        self._pipeline = pipeline
        self._writer = Writer(write)
        self._indexes = itertools.count(1)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._credits: dict[int, _Credits] = {}
        self._room = asyncio.Event()
        self._closed = False

    async def hear(self, message: FromSandbox) -> None:
        """Take one message; returns when there is room for the next. Raises ProtocolError."""
        for credit in message.credits:
            if credit.id in self._credits:
                self._credits[credit.id].add(credit.parts)
        for call_id in message.cancels:
            if call_id in self._tasks:
                self._tasks[call_id].cancel()
        for number, call in enumerate(message.calls, 1):
            if number % CALLS_A_TURN == 0:
                await asyncio.sleep(0)
            while not self._has_room() and not self._closed:
                self._room.clear()
                await self._room.wait()
            self._start(call)

    async def close(self) -> None:
        """Cancel what is under way and wait for it; nothing is heard afterwards."""
        self._closed = True
        self._room.set()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._writer.close()

    def _has_room(self) -> bool:
        under_way = len(self._tasks) - len(self._credits)
        return under_way < MAX_INFLIGHT and self._writer.unwritten < MAX_UNWRITTEN

    def _start(self, call: WireCall) -> None:
        if self._closed:
            return
        if call.id in self._tasks:
            raise ProtocolError(f"call {call.id} is under way already")
        task = asyncio.create_task(self._serve(call))
        self._tasks[call.id] = task
        task.add_done_callback(lambda _: self._forget(call.id))

    def _forget(self, call_id: int) -> None:
        self._tasks.pop(call_id, None)
        self._room.set()

    async def _serve(self, wire: WireCall) -> None:
        call = ToolCall(
            id=next(self._indexes),
            name=wire.tool,
            raw=wire.arguments,
            execution=self._execution,
            started=time.monotonic(),
        )
        try:
            self._execution.check_open(call.name)
            result = await self._pipeline(call)
            if result.rows is None:
                answer = ToolResult(id=wire.id, value=result.payload)
                del result  # Not held a second time until the sandbox reads.
                await self._writer.send(answer)
            else:
                await self._send_rows(wire, result.rows)
        except ToolError as error:
            await self._fail(wire.id, error)
        except Exception:
            # A fault of ours: the script is answered all the same, and told nothing of it.
            log.exception("call %s of %s failed", call.id, call.name[:200])
            failed = ToolFailed("internal", "the bridge failed to make this call")
            failed.tool = call.name[:200]
            await self._fail(wire.id, failed)
        except asyncio.CancelledError:
            # The script wants no answer any more, or the execution is over: nobody waits.
            if self._closed:
                raise

    async def _fail(self, call_id: int, error: ToolError) -> None:
        data = json.dumps(to_wire(error), default=str).encode()
        await self._writer.send(ToolResult(id=call_id, error=data))

    async def _send_rows(self, wire: WireCall, batches: AsyncGenerator[list[bytes]]) -> None:
        async with aclosing(batches):
            credits = self._credits[wire.id] = _Credits(STREAM_PARTS)
            self._room.set()
            try:
                async for batch in batches:
                    for rows in _parts(batch):
                        await credits.take()
                        await self._writer.send(ToolResult(id=wire.id, stream=True, rows=rows))
            finally:
                del self._credits[wire.id]
        await self._writer.send(ToolResult(id=wire.id, stream=True, last=True))


def _parts(rows: list[bytes]) -> Iterator[list[bytes]]:
    """Cut rows into messages of about STREAM_PART_BYTES; one larger row travels alone."""
    part: list[bytes] = []
    size = 0
    for row in rows:
        if part and size + len(row) > STREAM_PART_BYTES:
            yield part
            part, size = [], 0
        part.append(row)
        size += len(row)
    if part:
        yield part


class _Credits:
    """How many more messages the script is ready to take; never more than it began with."""

    def __init__(self, initial: int) -> None:
        self._initial = self._left = initial
        self._some = asyncio.Event()

    def add(self, parts: int) -> None:
        self._left = min(self._left + parts, self._initial)
        self._some.set()

    async def take(self) -> None:
        while not self._left:
            self._some.clear()
            await self._some.wait()
        self._left -= 1
