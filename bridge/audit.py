"""What happened at the bridge: one event a call, in a bounded ring in memory."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

RING = 10_000
"""Events kept."""


class Outcome(StrEnum):
    """How a call ended."""

    OK = "ok"
    DENIED = "denied"
    """It never began: a layer refused it, or its turn did not come."""
    FAILED = "failed"
    """The tool ran and gave no valid result."""
    UNKNOWN = "unknown"
    """A write or destructive tool was cut while it ran: it may have happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One call, as the bridge saw it."""

    time: float
    """Seconds since the epoch, at the start of the call."""
    execution_id: str
    call_id: int
    tool: str
    effect: str
    """Empty for an unknown tool."""
    outcome: Outcome
    code: str = ""
    """The error's code; empty when ok."""
    note: str = ""
    """The true reason, where the script was told less."""
    seconds: float = 0.0
    request_bytes: int = 0
    result_bytes: int = 0
    rows: int | None = None
    """Of a streamed result."""


class AuditLog:
    """A ring of the latest events, oldest first."""

    def __init__(self, size: int = RING) -> None:
        self._events: deque[AuditEvent] = deque(maxlen=size)
        self.dropped = 0
        """Events that made room for later ones."""

    def record(self, event: AuditEvent) -> None:
        """Keep an event, at the cost of the oldest when the ring is full."""
        if len(self._events) == self._events.maxlen:
            self.dropped += 1
        self._events.append(event)

    def events(self) -> list[AuditEvent]:
        """A copy of what is kept."""
        return list(self._events)
