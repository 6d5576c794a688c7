"""Reserves the call in the execution's budget, and gives it back when it is denied."""

from __future__ import annotations

from ...runtime.errors import ApprovalDenied, ApprovalExpired, ApprovalRequired, ProposalRecorded
from ..call import CallNext, Layer, ToolCall, ToolResult

DENIALS = (ApprovalDenied, ApprovalExpired, ApprovalRequired, ProposalRecorded)


def layer() -> Layer:
    """Make the layer."""

    def wrap(call_next: CallNext) -> CallNext:
        async def budgeted(call: ToolCall) -> ToolResult:
            spending, effect = call.execution.spending, call.tool.spec.effect
            spending.reserve(call.name, effect, call.tool.spec.max_calls)
            try:
                return await call_next(call)
            except DENIALS:
                spending.give_back(call.name, effect)
                raise

        return budgeted

    return wrap
