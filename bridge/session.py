"""The seam of a session: who calls, what it may see, what it has spent."""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ..runtime.errors import BridgeClosed
from ..stubs.catalog import Catalog
from .audit import AuditLog
from .budget import Budget, Spending


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """On whose behalf the script runs. Handlers see it and authorise by it."""

    user: str | None = None
    tenant: str | None = None


@dataclass(slots=True)
class CallCounts:
    """Tool calls of one execution, as the bridge counted them."""

    started: int = 0
    succeeded: int = 0
    failed: int = 0
    denied: int = 0
    writes_applied: int = 0
    """Calls of effect write or destructive that succeeded."""
    unknown_outcome: int = 0
    """Writes that were cut while the tool ran."""
    by_tool: Counter[str] = field(default_factory=Counter)
    """Started calls, by the tool's name; names that do not exist are counted under "?"."""


class Execution:
    """One script's life at the bridge. `revoke` ends it: no call is served afterwards."""

    def __init__(
        self,
        session: Session,
        *,
        wall: float,
        tool_loop: asyncio.AbstractEventLoop,
        on_progress: Callable[[str], None] | None = None,
    ) -> None:
        self.id = uuid.uuid4().hex
        self.token = secrets.token_bytes(32)
        self.session = session
        self.tool_loop = tool_loop
        """Where coroutine handlers run: the caller's loop."""
        self.on_progress = on_progress
        self.spending = Spending(session.budget, session.spending)
        self.counts = CallCounts()
        self.wall = wall
        self._deadline: float | None = None
        self._revoked = False

    @property
    def deadline(self) -> float:
        """Seconds of the monotonic clock when the script is killed."""
        return self._deadline if self._deadline is not None else time.monotonic() + self.wall

    def begin(self) -> None:
        """The job is with the sandbox: the wall clock runs."""
        self._deadline = time.monotonic() + self.wall

    def is_token(self, token: bytes) -> bool:
        """Whether a message carries this execution's token; compared in constant time."""
        return secrets.compare_digest(token, self.token)

    def check_open(self, tool: str) -> None:
        """Raise BridgeClosed once the execution is over."""
        if self._revoked:
            raise BridgeClosed(tool)

    def revoke(self) -> None:
        """End it. SAFETY: called before the sandbox is killed, so that no tool starts after."""
        self._revoked = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A principal with its view of the tools; never shared by two principals."""

    catalog: Catalog
    """What the session sees: a snapshot, filtered by its scopes."""
    whole: Catalog
    """What exists: only the audit may know of the difference."""
    audit: AuditLog
    principal: Principal = field(default_factory=Principal)
    budget: Budget = field(default_factory=Budget)
    """Of each execution."""
    spending: Spending | None = None
    """What all its executions together have spent; None: of one execution alone."""
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
