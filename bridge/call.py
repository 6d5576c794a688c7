"""The seam of the policy: a call, its result, and the layer that wraps the next one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..stubs.tool import Tool
from .start import Start

if TYPE_CHECKING:
    from .session import Execution


@dataclass(slots=True, kw_only=True)
class ToolCall:
    """One call on its way in. Layers fill in what they find out."""

    id: int
    """Unique in its execution."""
    name: str
    """As the script sent it: may be anything."""
    raw: bytes
    """The arguments as the script sent them."""
    execution: Execution
    started: float
    """Seconds of the monotonic clock."""
    target: Tool | None = None
    """Set by the scopes layer."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """The handler's keyword arguments; set by the validation layer."""
    rows_ahead: int = 1
    """How many rows of a streamed result may wait; set from the size of those that passed."""
    start: Start = field(default_factory=Start)
    """Whether the handler began; what did not had no effect."""
    ran: bool = False
    """The handler has come to its end: whatever fails afterwards, its effect is there."""
    note: str = ""
    """What only the audit may know, such as the true reason of an UnknownTool."""

    @property
    def tool(self) -> Tool:
        """The tool, for the layers behind scopes."""
        assert self.target is not None, "the scopes layer comes first"
        return self.target


@dataclass(slots=True, kw_only=True)
class ToolResult:
    """What a call gave: `value` on its way out of the tool, then `payload`; or rows."""

    value: Any = None
    """The handler's return value; validation turns it into `payload`."""
    payload: bytes = b""
    """JSON, checked and bounded."""
    rows: AsyncGenerator[list[Any]] | None = None
    """A streamed tool's rows in batches: the handler's values, after validation bytes of JSON."""


CallNext = Callable[[ToolCall], Awaitable[ToolResult]]
"""The rest of the pipeline. Raises ToolError for every call that gives no result."""

Layer = Callable[[CallNext], CallNext]
"""A layer wraps the next one; the pipeline is a reversed loop over them."""
