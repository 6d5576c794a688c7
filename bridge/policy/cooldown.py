"""A tool rests between two calls of a principal, for as long as its contract says.

The rest begins when the handler does, whatever becomes of it; a call that never began takes
nothing. It holds over executions, within one process: a new script does not shorten it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ...runtime.errors import RateLimited
from ..call import CallNext, Layer, ToolCall, ToolResult

_Key = tuple[str | None, str | None, str]

_SWEEP_AT = 1_000
"""Entries at which the first sweep comes."""


class Cooldowns:
    """Until when each principal's tools rest. Pure but for the clock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[_Key, float] = {}
        self._sweep_at = _SWEEP_AT

    def claim(self, key: _Key, seconds: float) -> float:
        """Begin to rest and give 0, or give the seconds that are left."""
        now = self._clock()
        until = self._until.get(key, now)
        if until > now:
            return until - now
        if len(self._until) >= self._sweep_at:
            self._sweep(now)
        self._until[key] = now + seconds
        return 0.0

    def give_back(self, key: _Key) -> None:
        """The call that claimed never began."""
        self._until.pop(key, None)

    def _sweep(self, now: float) -> None:
        """Drop what is over, so that principals who do not come back are not kept."""
        self._until = {key: until for key, until in self._until.items() if until > now}
        self._sweep_at = max(_SWEEP_AT, 2 * len(self._until))


def layer(clock: Callable[[], float] = time.monotonic) -> Layer:
    """Make the layer."""
    cooldowns = Cooldowns(clock)

    def wrap(call_next: CallNext) -> CallNext:
        async def rested(call: ToolCall) -> ToolResult:
            seconds = call.tool.spec.cooldown_seconds
            if seconds is None:
                return await call_next(call)
            principal = call.execution.session.principal
            key = (principal.tenant, principal.user, call.name)
            left = cooldowns.claim(key, seconds)
            if left:
                raise RateLimited(call.name, left, resting=seconds)
            try:
                return await call_next(call)
            except BaseException:
                if not call.start.begun:
                    cooldowns.give_back(key)
                raise

        return rested

    return wrap
