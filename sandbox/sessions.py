"""Sessions on limbeck's loop: each a principal with its view, its budget, and its kept sandbox.

    NONE -> RUNNING -> KEPT -> RUNNING -> ...
              |          |
              v          v
             NONE       NONE     the state is gone: the next result says so, and begins anew

A kept sandbox stands still and takes none of the places for those that run. It ends when nobody has
used it for a while, when its life is over, or when more are kept than may be: the longest idle one
goes first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..bridge.session import Session
from .backend import Limits
from .earlier import EarlierPrintouts
from .printout import Printout
from .result import Status, Warning
from .verdict import Verdict
from .warm import WarmSandbox

IDLE_SECONDS = 600.0
"""How long a session may stand still before its state is lost."""

LIFE_SECONDS = 3600.0
"""How long a session's sandbox lives at most, unless its script is running."""


class LiveSession:
    """What all executions of one session share. One of them at a time has its `turn`."""

    def __init__(
        self,
        session: Session,
        stubs: Mapping[str, str],
        limits: Limits,
        *,
        idle: float,
        life: float,
    ) -> None:
        """`idle` and `life` in seconds, of its sandbox."""
        self.session = session
        self.stubs = stubs
        self.limits = limits
        self.idle = idle
        self.life = life
        self.turn = asyncio.Lock()
        self.cancels: set[asyncio.Event] = set()
        """Of executions that run or wait for their turn."""
        self.closed = False
        self.sandbox: WarmSandbox | None = None
        """What is kept between two executions."""
        self.born = 0.0
        self.used = 0.0
        """When the sandbox was taken, and when it was last used, by the clock of `Sessions`."""
        self.number = 0
        """Executions that got a sandbox."""
        self.printouts = EarlierPrintouts()
        self._lost = ""

    def lose(self, why: str) -> None:
        """The state is gone, and no result has said so yet."""
        self._lost = why

    def ended(self, verdict: Verdict, one: WarmSandbox, number: int, printout: Printout) -> Verdict:
        """Remember an execution; its verdict with what is to be said of the state."""
        self.number = number
        self.printouts.add(number, printout)
        warnings = self._told()
        if not one.kept:
            why = f"the sandbox ended with the script ({verdict.status})"
            warnings = (*warnings, state_gone(why))
            if verdict.status is Status.CANCELLED:
                self.lose("the execution before was cancelled")  # Nobody may see its result.
        elif one.threads_left:
            warnings = (*warnings, threads_left(one.threads_left))
        return replace(verdict, warnings=(*verdict.warnings, *warnings))

    def _told(self) -> tuple[Warning, ...]:
        """What the next result has to say of the state."""
        why, self._lost = self._lost, ""
        return (state_gone(why),) if why else ()

    def ends_at(self) -> float:
        """When its kept sandbox is to end."""
        return min(self.used + self.idle, self.born + self.life)


def state_gone(why: str) -> Warning:
    """The warning of a result after which a session has no state."""
    text = f"the session's state (variables, imports, files in /workspace) is gone: {why}"
    return Warning(code="state_gone", message=text)


def threads_left(count: int) -> Warning:
    """The warning of a result after which something of the script stands still."""
    some = "1 thread or process" if count == 1 else f"{count:,} threads or processes"
    text = f"the script left {some}, stopped until the session's next script"
    return Warning(code="threads_left", message=text)


class Sessions:
    """The kept sandboxes of an executor. Belongs to limbeck's loop."""

    def __init__(
        self,
        discard: Callable[[WarmSandbox], None],
        most: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`discard` kills a sandbox in the background; at most `most` are kept."""
        self._discard = discard
        self._most = most
        self.clock = clock
        self._idle: dict[LiveSession, None] = {}
        """The longest idle one first."""
        self._timer: asyncio.TimerHandle | None = None

    @property
    def kept(self) -> int:
        """Sandboxes that stand still."""
        return len(self._idle)

    def take(self, live: LiveSession) -> WarmSandbox | None:
        """The session's kept sandbox, to run in; None when there is none."""
        self.sweep()
        self._idle.pop(live, None)
        one, live.sandbox = live.sandbox, None
        return one

    def keep(self, live: LiveSession, one: WarmSandbox) -> None:
        """Keep a sandbox that stands still, until it is taken or its time has come."""
        live.sandbox = one
        live.used = self.clock()
        self._idle[live] = None
        if live.closed:
            self.end(live, "the session was closed")
        while len(self._idle) > self._most:
            self.end(next(iter(self._idle)), "its sandbox made room for other sessions")
        self._set_timer()

    def sweep(self) -> None:
        """End what died while it stood still, and what has come to its time."""
        now = self.clock()
        for live in list(self._idle):
            if live.sandbox is None or not live.sandbox.is_alive:
                self.end(live, "its sandbox was lost while it stood still")
            elif live.born + live.life <= now:
                self.end(live, f"its sandbox had lived for {_time(live.life)}")
            elif live.used + live.idle <= now:
                self.end(live, f"it was not used for {_time(live.idle)}")
        self._set_timer()

    def end(self, live: LiveSession, why: str) -> None:
        """Kill a session's kept sandbox, if it has one."""
        self._idle.pop(live, None)
        one, live.sandbox = live.sandbox, None
        if one is not None:
            live.lose(why)
            self._discard(one)

    async def close(self, live: LiveSession) -> None:
        """Cancel what runs or waits in a session, and kill what is kept."""
        live.closed = True
        for cancel in live.cancels:
            cancel.set()
        async with live.turn:
            self.end(live, "the session was closed")

    def drop(self, live: LiveSession) -> None:
        """Nobody has the session any more."""
        live.closed = True
        self.end(live, "the session was closed")
        self._set_timer()

    def close_all(self) -> None:
        """Kill all that is kept; nothing runs any more."""
        for live in list(self._idle):
            live.closed = True
            self.end(live, "the executor was closed")
        self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._idle:
            wait = min(live.ends_at() for live in self._idle) - self.clock()
            self._timer = asyncio.get_running_loop().call_later(max(wait, 0.01), self.sweep)


def _time(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"
