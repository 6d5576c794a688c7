"""The calls of one execution on its stream: served side by side, answered in any order.

When the execution ends, and the sandbox goes on with another, each call that has no answer yet is
told BridgeClosed, and so is each that comes later under the old token.

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
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

from ..runtime.errors import BridgeClosed, ProtocolError, ToolError, ToolFailed, to_wire
from ..runtime.wire import MAX_INFLIGHT, STREAM_PART_BYTES, STREAM_PARTS
from ..runtime.wire_pb2 import FromSandbox, ToolResult
from ..runtime.wire_pb2 import ToolCall as WireCall
from .call import CallNext, ToolCall
from .session import Execution
from .writer import Writer

log = logging.getLogger("limbeck.bridge")

MAX_UNWRITTEN = 32 * 1024 * 1024
"""Bytes of results that may wait for the sandbox to read before no new call is heard."""

_CLOSED = json.dumps(to_wire(BridgeClosed())).encode()

CALLS_A_TURN = 32
"""Calls of one execution that begin before the loop goes round to the others."""


class Conversation:
    """Hears calls, serves each through the pipeline, sends the answers."""

    def __init__(
        self,
        execution: Execution,
        pipeline: CallNext,
        writer: Writer,
    ) -> None:
        """`writer` is the stream's: it outlives the conversation."""
        self.execution = execution
        self._pipeline = pipeline
        self._writer = writer
        self._unanswered: set[int] = set()
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
        refusing = None
        for number, call in enumerate(message.calls, 1):
            if number % CALLS_A_TURN == 0:
                await asyncio.sleep(0)
            while not self._has_room() and not self._closed:
                self._room.clear()
                await self._room.wait()
            if self._closed:
                refusing = self._refuse(call.id)
            else:
                self._start(call)
        if refusing is not None:
            await refusing  # No more is heard than is read.

    def refuse_more(self) -> None:
        """The script has ended: no call begins any more."""
        self._closed = True
        self._room.set()

    async def close(self) -> None:
        """Cancel what is under way and wait for it; nothing is served afterwards."""
        self.refuse_more()
        self._unanswered |= self._writer.drop()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        try:
            if tasks:
                await asyncio.wait(tasks)
        finally:
            unanswered, self._unanswered = self._unanswered, set()
            for call_id in unanswered:
                self._refuse(call_id)

    def _refuse(self, call_id: int) -> asyncio.Future[None]:
        """The execution is over: nothing is served, and nobody waits for ever."""
        return self._writer.put(ToolResult(id=call_id, error=_CLOSED))

    def _has_room(self) -> bool:
        under_way = len(self._tasks) - len(self._credits)
        return under_way < MAX_INFLIGHT and self._writer.unwritten < MAX_UNWRITTEN

    def _start(self, call: WireCall) -> None:
        if call.id in self._tasks:
            raise ProtocolError(f"call {call.id} is under way already")
        self._unanswered.add(call.id)
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
            execution=self.execution,
            started=time.monotonic(),
        )
        try:
            self.execution.check_open(call.name)
            result = await self._pipeline(call)
            if result.rows is None:
                answer = ToolResult(id=wire.id, value=result.payload)
                del result  # Not held a second time until the sandbox reads.
                await self._answer(answer)
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
            if self._closed:
                raise  # `close` answers.
            self._unanswered.discard(wire.id)  # The script wants no answer any more.

    async def _fail(self, call_id: int, error: ToolError) -> None:
        data = json.dumps(to_wire(error), default=str).encode()
        await self._answer(ToolResult(id=call_id, error=data))

    async def _answer(self, result: ToolResult) -> None:
        """Send a call's last word, unless it has had it already."""
        if result.id in self._unanswered:
            self._unanswered.discard(result.id)
            await self._writer.send(result)

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
        await self._answer(ToolResult(id=wire.id, stream=True, last=True))


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
