"""Budgets: counters that are reserved before a call and given back when it is denied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from ..runtime.errors import BudgetExceeded, ConfigurationError
from ..runtime.wire import MAX_ANSWER
from ..stubs.tool import Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one execution, or all executions of a session together, may spend at the bridge."""

    calls: int = 100_000
    writes: int = 1_000
    """Successful or attempted calls of effect write or destructive."""
    destructive: int = 20
    result_bytes: int = 1024**3
    one_result: int = 16 * 1024**2
    """Bytes of one result, or of one row of a streamed one."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise ConfigurationError(
                    f"budget.{item.name}", f"{value!r} must be a whole number, 0 or more"
                )
        if self.one_result > MAX_ANSWER // 2:
            raise ConfigurationError(
                "budget.one_result",
                f"{self.one_result:,} bytes do not fit into one message",
                f"at most {MAX_ANSWER // 2:,}; larger results are for generators.",
            )


class Spending:
    """What an execution has spent of its budget, and its session. Pure: no clock, no socket."""

    def __init__(self, budget: Budget, session: Spending | None = None) -> None:
        """`session` is spent from too, whatever takes from this one."""
        self.budget = budget
        self._session = session
        self.calls = 0
        self.writes = 0
        self.destructive = 0
        self.result_bytes = 0
        self._by_tool: Counter[str] = Counter()

    def reserve(self, tool: str, effect: Effect, most: int | None = None) -> None:
        """Take one call from every counter it touches, or raise BudgetExceeded and take none.

        `most` is the tool's own number of calls in an execution.
        """
        if most is not None and self._by_tool[tool] >= most:
            raise BudgetExceeded(tool, "calls of this tool", self._by_tool[tool], most)
        touched = _TOUCHED[effect]
        for name in touched:
            used, limit = getattr(self, name), getattr(self.budget, name)
            if used >= limit:
                raise BudgetExceeded(tool, name, used, limit)
        if self._session is not None:
            _in_session(self._session.reserve, tool, effect)
        for name in touched:
            setattr(self, name, getattr(self, name) + 1)
        self._by_tool[tool] += 1

    def give_back(self, tool: str, effect: Effect) -> None:
        """Return what `reserve` took: the call was denied and never made."""
        if self._session is not None:
            self._session.give_back(tool, effect)
        self._by_tool[tool] -= 1
        for name in _TOUCHED[effect]:
            setattr(self, name, getattr(self, name) - 1)

    def spend_result(self, tool: str, size: int) -> None:
        """Count a result's bytes, or raise BudgetExceeded."""
        limit = self.budget.result_bytes
        if self.result_bytes + size > limit:
            raise BudgetExceeded(tool, "result bytes", self.result_bytes, limit)
        if self._session is not None:
            _in_session(self._session.spend_result, tool, size)
        self.result_bytes += size


def _in_session(spend: Callable[..., None], *arguments: Any) -> None:
    """Spend of the session's budget; what is spent says that it is the session's."""
    try:
        spend(*arguments)
    except BudgetExceeded as error:
        details = error.details
        name = f"{details['budget']} of the whole session"
        raise BudgetExceeded(error.tool, name, details["used"], details["limit"]) from None


_TOUCHED: dict[Effect, tuple[str, ...]] = {
    Effect.READ: ("calls",),
    Effect.WRITE: ("calls", "writes"),
    Effect.DESTRUCTIVE: ("calls", "writes", "destructive"),
}
