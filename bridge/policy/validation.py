"""Arguments against the schema on the way in, the result against its own on the way out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from ...runtime.errors import InvalidArguments, ResultTooLarge
from ...runtime.wire import MAX_ARGUMENTS, STREAM_PART_BYTES
from ..call import CallNext, Layer, ToolCall, ToolResult

MAX_ROWS_AHEAD = 2_000
"""However small its rows are, a producer is never further ahead of the script."""


def layer() -> Layer:
    """Make the layer."""

    def wrap(call_next: CallNext) -> CallNext:
        async def validated(call: ToolCall) -> ToolResult:
            if len(call.raw) > MAX_ARGUMENTS:
                problem = f"{len(call.raw):,} bytes in all, the limit is {MAX_ARGUMENTS:,}"
                raise InvalidArguments(call.name, [problem])
            call.arguments = call.tool.read_arguments(call.raw)
            result = await call_next(call)
            if result.rows is not None:
                result.rows = _checked_rows(call, result.rows)
                return result
            result.payload = call.tool.write_result(result.value)
            result.value = None
            _check_size(call, result.payload)
            return result

        return validated

    return wrap


async def _checked_rows(
    call: ToolCall, batches: AsyncGenerator[list[Any]]
) -> AsyncGenerator[list[bytes]]:
    write_row = call.tool.write_row
    async with aclosing(batches):
        async for batch in batches:
            rows = [write_row(row) for row in batch]
            for row in rows:
                _check_size(call, row)
            call.rows_ahead = _rows_ahead(rows)
            yield rows


def _rows_ahead(rows: list[bytes]) -> int:
    """How many rows of this size make two messages: what the producer may be ahead."""
    average = sum(map(len, rows)) // len(rows) + 1
    return max(1, min(MAX_ROWS_AHEAD, 2 * STREAM_PART_BYTES // average))


def _check_size(call: ToolCall, data: bytes) -> None:
    limit = call.execution.session.budget.one_result
    if len(data) > limit:
        raise ResultTooLarge(call.name, len(data), limit)
    call.execution.spending.spend_result(call.name, len(data))
