"""Innermost layer: the tool's own time, cut to what is left of the execution's."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from ...runtime.errors import ToolTimeout
from ..call import CallNext, Layer, ToolCall, ToolResult


def layer(default_seconds: float) -> Layer:
    """Make the layer; `default_seconds` holds for tools that name no timeout."""

    def wrap(call_next: CallNext) -> CallNext:
        async def timed(call: ToolCall) -> ToolResult:
            seconds = call.tool.spec.timeout or default_seconds
            seconds = min(seconds, max(call.execution.deadline - time.monotonic(), 0.0))
            try:
                async with asyncio.timeout(seconds):
                    result = await call_next(call)
            except TimeoutError:
                raise ToolTimeout(call.name, seconds, begun=call.start.begun) from None
            if result.rows is not None:
                result.rows = _timed_rows(call, result.rows, seconds)
            return result

        return timed

    return wrap


async def _timed_rows(
    call: ToolCall, batches: AsyncGenerator[list[Any]], seconds: float
) -> AsyncGenerator[list[Any]]:
    """Each batch has the tool's whole time; a slow consumer costs it nothing."""
    async with aclosing(batches):
        while True:
            try:
                async with asyncio.timeout(seconds):
                    batch = await anext(batches)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise ToolTimeout(call.name, seconds, begun=call.start.begun) from None
            yield batch
