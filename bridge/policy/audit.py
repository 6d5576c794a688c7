"""Outermost layer: counts every call and records one event of it, however it ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from ...runtime.errors import BridgeClosed, ToolError, ToolFailed
from ...stubs.tool import Effect
from ..audit import AuditEvent, Outcome
from ..call import CallNext, Layer, ToolCall, ToolResult


def layer() -> Layer:
    """Make the layer."""

    def wrap(call_next: CallNext) -> CallNext:
        async def audited(call: ToolCall) -> ToolResult:
            _start(call)
            try:
                result = await call_next(call)
            except ToolError as error:
                _record(call, _outcome(call, error), code=error.code)
                raise
            except asyncio.CancelledError:
                _record(call, _cut(call), code=BridgeClosed.code)
                raise
            except Exception as error:
                # A fault in a layer of ours; nothing of it may cross the bridge.
                _record(call, Outcome.FAILED, code="internal", note=repr(error)[:500])
                raise ToolFailed("internal", "the bridge failed to make this call") from error
            if result.rows is None:
                _record(call, Outcome.OK, result_bytes=len(result.payload))
            else:
                result.rows = _audited_rows(call, result.rows)
            return result

        return audited

    return wrap


async def _audited_rows(
    call: ToolCall, rows: AsyncGenerator[list[bytes]]
) -> AsyncGenerator[list[bytes]]:
    count = size = 0
    ended: ToolError | None = BridgeClosed()
    try:
        async with aclosing(rows):
            async for batch in rows:
                count += len(batch)
                size += sum(map(len, batch))
                yield batch
        ended = None
    except ToolError as error:
        ended = error
        raise
    finally:
        outcome, code = Outcome.OK, ""
        if ended is not None:
            outcome, code = _outcome(call, ended), ended.code
        _record(call, outcome, code=code, result_bytes=size, rows=count)


def _start(call: ToolCall) -> None:
    counts = call.execution.counts
    counts.started += 1
    known = call.execution.session.catalog.get(call.name) is not None
    counts.by_tool[call.name if known else "?"] += 1


def _outcome(call: ToolCall, error: ToolError) -> Outcome:
    its_own = error.code == ToolFailed.code and call.start.begun and not call.ran
    return Outcome.FAILED if its_own else _cut(call)


def _cut(call: ToolCall) -> Outcome:
    """A call that was cut: when its tool ran, a read failed and a write may have happened."""
    if not call.start.begun:
        return Outcome.DENIED
    if call.target is None or call.target.spec.effect is Effect.READ:
        return Outcome.FAILED
    return Outcome.UNKNOWN


def _record(
    call: ToolCall,
    outcome: Outcome,
    *,
    code: str = "",
    note: str = "",
    result_bytes: int = 0,
    rows: int | None = None,
) -> None:
    effect = call.target.spec.effect if call.target is not None else None
    counts = call.execution.counts
    if outcome is Outcome.OK:
        counts.succeeded += 1
        counts.writes_applied += effect is not None and effect is not Effect.READ
    elif outcome is Outcome.DENIED:
        counts.denied += 1
    else:
        counts.failed += 1
        counts.unknown_outcome += outcome is Outcome.UNKNOWN
    seconds = time.monotonic() - call.started
    call.execution.session.audit.record(
        AuditEvent(
            time=time.time() - seconds,
            execution_id=call.execution.id,
            call_id=call.id,
            tool=call.name[:200],
            effect=effect.value if effect is not None else "",
            outcome=outcome,
            code=code,
            note=note or call.note,
            seconds=seconds,
            request_bytes=len(call.raw),
            result_bytes=result_bytes,
            rows=rows,
        )
    )
