"""The policy: one file a layer, composed by a reversed loop.

Order, outermost first, and what would change if two neighbours swapped:

    audit       sees denials and crashes; further in, it would miss what an outer layer refuses
    scopes      an unknown tool and one out of scope look alike; behind validation, its schema leaks
    validation  pure and cheap; behind budget, a misspelt argument would cost a call
    budget      reserved once, given back on denial; behind approval, a person would be asked for
                a call that is refused anyway
    cooldown    behind approval, a person would be asked for a call that must wait anyway; before
                budget, a spent budget would be told as a matter of waiting
    approval    behind timeout, waiting for a person would eat the tool's time
    timeout     around the tool alone
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ..budget import Budget
from ..call import CallNext, Layer
from ..handlers import HandlerRunner
from . import approval, audit, budget, cooldown, scopes, timeout, validation


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the operator decides about every call."""

    unconfirmed_destructive: frozenset[str] = frozenset()
    """Destructive tools ("orders.cancel_order") that may run without approval."""
    budget: Budget = field(default_factory=Budget)
    """Of one execution."""
    session_budget: Budget | None = None
    """Of all executions of a session together. None: the figures of `budget`, so that a session
    spends no more than one execution may; `one_result` is not looked at."""
    tool_timeout: float = 30.0
    """Seconds that a handler may take when its tool says nothing else."""


def build_pipeline(
    policy: Policy, runner: HandlerRunner, clock: Callable[[], float] = time.monotonic
) -> CallNext:
    """Compose the layers around the tool itself; `clock` is that of the layers that wait."""
    layers: list[Layer] = [
        audit.layer(),
        scopes.layer(),
        validation.layer(),
        budget.layer(),
        cooldown.layer(clock),
        approval.layer(policy.unconfirmed_destructive),
        timeout.layer(policy.tool_timeout),
    ]
    call_next: CallNext = runner.run
    for wrap in reversed(layers):
        call_next = wrap(call_next)
    return call_next
