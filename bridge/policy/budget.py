"""Reserves the call in the execution's budget, and gives it back when it never began."""

from __future__ import annotations

from ..call import CallNext, Layer, ToolCall, ToolResult


def layer() -> Layer:
    """Make the layer."""

    def wrap(call_next: CallNext) -> CallNext:
        async def budgeted(call: ToolCall) -> ToolResult:
            spending, effect = call.execution.spending, call.tool.spec.effect
            spending.reserve(call.name, effect, call.tool.spec.max_calls)
            try:
                return await call_next(call)
            except BaseException:
                if not call.start.begun:
                    spending.give_back(call.name, effect)
                raise

        return budgeted

    return wrap
