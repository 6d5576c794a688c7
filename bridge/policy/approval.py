"""Decides who must approve a call. Nobody is there to ask, so that "ask" means denial."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from ...runtime.errors import ApprovalDenied, ApprovalRequired
from ...stubs.tool import Effect, Tool
from ..call import CallNext, Layer, ToolCall, ToolResult


class Decision(StrEnum):
    """What the rules say of a call before anybody is asked."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


def decide(tool: Tool, unconfirmed_destructive: Collection[str]) -> Decision:
    """The decision of effect, tool and operator: a tool only tightens what its effect asks for."""
    spec = tool.spec
    if spec.approval == Decision.DENY:
        return Decision.DENY
    if spec.effect is Effect.DESTRUCTIVE and spec.qualified not in unconfirmed_destructive:
        return Decision.ASK
    return Decision.ASK if spec.approval == Decision.ASK else Decision.ALLOW


def layer(unconfirmed_destructive: Collection[str]) -> Layer:
    """Make the layer from the operator's list of destructive tools that need no approval."""

    def wrap(call_next: CallNext) -> CallNext:
        async def approved(call: ToolCall) -> ToolResult:
            decision = decide(call.tool, unconfirmed_destructive)
            if decision is Decision.DENY:
                raise ApprovalDenied(call.name, "this tool is switched off here")
            if decision is Decision.ASK:
                raise ApprovalRequired(call.name)
            return await call_next(call)

        return approved

    return wrap
