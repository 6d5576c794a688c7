"""Finds the tool in what the session may see. What is out of scope looks unknown."""

from __future__ import annotations

from ...runtime.errors import UnknownTool
from ..call import CallNext, Layer, ToolCall, ToolResult


def layer() -> Layer:
    """Make the layer."""

    def wrap(call_next: CallNext) -> CallNext:
        async def scoped(call: ToolCall) -> ToolResult:
            session = call.execution.session
            call.target = session.catalog.get(call.name)
            if call.target is None:
                if session.whole.get(call.name) is not None:
                    call.note = "out of scope"
                name = call.name[:200]
                raise UnknownTool(name, session.catalog.near(name))
            return await call_next(call)

        return scoped

    return wrap
