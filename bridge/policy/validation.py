"""Arguments against the schema on the way in, the result against its own on the way out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from ...runtime.errors import InvalidArguments, ResultTooLarge
from ...runtime.wire import MAX_ARGUMENTS
from ..call import CallNext, Layer, ToolCall, ToolResult


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
    call: ToolCall, batches: AsyncIterator[list[Any]]
) -> AsyncIterator[list[bytes]]:
    write_row = call.tool.write_row
    async for batch in batches:
        rows = [write_row(row) for row in batch]
        for row in rows:
            _check_size(call, row)
        yield rows


def _check_size(call: ToolCall, data: bytes) -> None:
    limit = call.execution.session.budget.one_result
    if len(data) > limit:
        raise ResultTooLarge(call.name, len(data), limit)
    call.execution.spending.spend_result(call.name, len(data))
