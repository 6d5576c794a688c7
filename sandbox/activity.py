"""What an execution does while it runs: its calls so far, told a few times a second."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from ..bridge.session import Execution

log = logging.getLogger("limbeck.sandbox")

INTERVAL_SECONDS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """The calls of a running execution, as the bridge counts them."""

    calls: int
    """Started so far."""
    succeeded: int
    failed: int
    denied: int
    seconds: float
    """Since the script was given to its sandbox."""
    wall: float
    """Seconds after which it is stopped."""


OnActivity = Callable[[Activity], None]
"""Called every INTERVAL_SECONDS while the script runs, and once when it has ended."""


@contextlib.asynccontextmanager
async def reported(execution: Execution, on_activity: OnActivity | None) -> AsyncIterator[None]:
    """Tell of the execution while the block runs; nothing when nobody listens."""
    if on_activity is None:
        yield
        return
    began = time.monotonic()
    telling = asyncio.create_task(_tell(execution, on_activity, began))
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.wait([telling])
        _tell_once(execution, on_activity, began)


async def _tell(execution: Execution, on_activity: OnActivity, began: float) -> None:
    listens = True
    while listens:
        listens = _tell_once(execution, on_activity, began)
        await asyncio.sleep(INTERVAL_SECONDS)


def _tell_once(execution: Execution, on_activity: OnActivity, began: float) -> bool:
    counts = execution.counts
    now = Activity(
        calls=counts.started,
        succeeded=counts.succeeded,
        failed=counts.failed,
        denied=counts.denied,
        seconds=time.monotonic() - began,
        wall=execution.wall,
    )
    try:
        on_activity(now)
    except Exception:
        log.exception("on_activity failed")
        return False
    return True
