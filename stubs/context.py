"""What a handler is told of the call besides its arguments: never in the schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Annotate a handler's parameter with it; the model neither sees nor sends it."""

    user: str | None
    """On whose behalf. Whether they may touch this very subject is the handler's to decide."""
    tenant: str | None
    session_id: str
    execution_id: str
    call_id: str
    """The call's number in its execution, counted by the host."""
    idempotency_key: str
    """The same for a repeated delivery of the same call, different for every other call."""
    deadline: float
    """Seconds of the monotonic clock when the script is killed."""
    report_progress: Callable[[str], None]
    """Tell whoever watches the execution; any thread may call it."""
