"""The warm pool: sandboxes whose workers are connected and idle, each for one execution.

    CREATING -> WARM -> LEASED -> DEAD
        |        |
        v        v
      FAILED    DEAD        (too old, or found dead)

It refills when one is leased, not when one dies, with as many refillers as cores. An empty pool
starts a sandbox cold, and the result says so.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from ..runtime.errors import SandboxUnavailable
from .warm import WarmSandbox

log = logging.getLogger("limbeck.sandbox")

MAX_AGE = 600.0
"""Seconds that a warm sandbox may wait."""

BACK_OFF = (0.5, 1.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds before the next try after so many failures in a row."""


class SlotState(StrEnum):
    """Where a sandbox of the pool is."""

    CREATING = "creating"
    WARM = "warm"
    LEASED = "leased"
    DEAD = "dead"
    FAILED = "failed"


_MOVES = {
    SlotState.CREATING: frozenset({SlotState.WARM, SlotState.FAILED}),
    SlotState.WARM: frozenset({SlotState.LEASED, SlotState.DEAD}),
    SlotState.LEASED: frozenset({SlotState.DEAD}),
    SlotState.DEAD: frozenset(),
    SlotState.FAILED: frozenset(),
}


class Slot:
    """One sandbox's way through the pool; an illegal move raises."""

    def __init__(self) -> None:
        self.state = SlotState.CREATING

    def move(self, state: SlotState) -> None:
        """Go on. Raises ValueError for a move that is not in the table."""
        if state not in _MOVES[self.state]:
            raise ValueError(f"a sandbox cannot go from {self.state} to {state}")
        self.state = state


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatistics:
    """What the pool has and did."""

    size: int
    warm: int
    creating: int
    hits: int
    """Leases that found a warm sandbox."""
    misses: int
    expired: int
    """Warm sandboxes that were too old or found dead."""
    failures: int


class SandboxPool:
    """Keeps `size` warm sandboxes. Belongs to limbeck's loop."""

    def __init__(
        self,
        open_one: Callable[[], Awaitable[WarmSandbox]],
        size: int,
        *,
        max_age: float = MAX_AGE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_one = open_one
        self._size = size
        self._max_age = max_age
        self._clock = clock
        self._refillers = os.cpu_count() or 1
        self._warm: deque[tuple[Slot, WarmSandbox]] = deque()
        self._creating: set[asyncio.Task[None]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._hits = self._misses = self._expired = self._failures = 0
        self._failed_in_a_row = 0
        self._not_before = 0.0
        self._closed = False

    def fill(self) -> None:
        """Start what is missing, as many at a time as there are cores."""
        if self._closed or self._clock() < self._not_before:
            return
        missing = self._size - len(self._warm) - len(self._creating)
        for _ in range(min(missing, self._refillers - len(self._creating))):
            task = asyncio.create_task(self._create())
            self._creating.add(task)
            task.add_done_callback(self._created)

    def lease(self) -> WarmSandbox | None:
        """A warm sandbox, or None when there is none; the pool refills behind it."""
        found = None
        while self._warm and found is None:
            slot, one = self._warm.popleft()
            if one.is_alive and self._clock() - one.opened < self._max_age:
                slot.move(SlotState.LEASED)
                found = one
            else:
                slot.move(SlotState.DEAD)
                self._expired += 1
                self.discard(one)
        self._hits += found is not None
        self._misses += found is None
        self.fill()
        return found

    def statistics(self) -> PoolStatistics:
        """What the pool has and did so far."""
        return PoolStatistics(
            size=self._size,
            warm=len(self._warm),
            creating=len(self._creating),
            hits=self._hits,
            misses=self._misses,
            expired=self._expired,
            failures=self._failures,
        )

    async def close(self) -> None:
        """Drain: nothing warm and nothing half made is left."""
        self._closed = True
        for task in self._creating:
            task.cancel()
        while self._warm:
            slot, one = self._warm.popleft()
            slot.move(SlotState.DEAD)
            self.discard(one)
        pending = [*self._creating, *self._closing]
        if pending:
            await asyncio.wait(pending)

    async def _create(self) -> None:
        slot = Slot()
        try:
            one = await self._open_one()
        except SandboxUnavailable as error:
            slot.move(SlotState.FAILED)
            self._back_off()
            log.warning("a warm sandbox could not be made: %s", error)
            return
        self._failed_in_a_row = 0
        slot.move(SlotState.WARM)
        if self._closed:
            slot.move(SlotState.DEAD)
            await one.close()
            return
        self._warm.append((slot, one))

    def _created(self, task: asyncio.Task[None]) -> None:
        self._creating.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._back_off()
            log.error("a warm sandbox could not be made", exc_info=task.exception())
        self.fill()

    def _back_off(self) -> None:
        self._failures += 1
        wait = BACK_OFF[min(self._failed_in_a_row, len(BACK_OFF) - 1)]
        self._failed_in_a_row += 1
        self._not_before = self._clock() + wait
        # Nobody may lease meanwhile: the pool comes back by itself.
        asyncio.get_running_loop().call_later(wait, self.fill)

    def discard(self, one: WarmSandbox) -> None:
        """Close a sandbox in the background, leased or not; `close` waits for it."""
        task = asyncio.create_task(one.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
