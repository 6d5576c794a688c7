"""The warm pool: sandboxes whose workers are connected and idle, each for one execution.

What is made before anybody asks is keyed by what cannot change later: the backend's image or
interpreter, its mounts, and the limits that the kernel holds. A lease takes only its own key's. It
refills when one is leased, not when one dies, with as many refillers as cores. An empty shelf
starts a sandbox cold, and the result says so.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass

from ..runtime.errors import SandboxUnavailable
from .backend import Limits
from .slot import Slot, SlotState
from .warm import WarmSandbox

log = logging.getLogger("limbeck.sandbox")

MAX_AGE = 600.0
"""Seconds that a warm sandbox may wait."""

BACK_OFF = (0.5, 1.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds before the next try after so many failures in a row."""


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
    """Warm sandboxes that were too old, found dead, or gave no answer to a ping."""
    failures: int


class SandboxPool:
    """Keeps so many warm sandboxes of each stocked kind. Belongs to limbeck's loop."""

    def __init__(
        self,
        open_one: Callable[[Limits], Awaitable[WarmSandbox]],
        shape: Callable[[Limits], Hashable],
        stock: Mapping[Limits, int],
        *,
        max_age: float = MAX_AGE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`shape` is the key of what is opened with some limits; it may change between calls."""
        self._open_one = open_one
        self._shape = shape
        self._stock = stock
        self._max_age = max_age
        self._clock = clock
        self._refillers = os.cpu_count() or 1
        self._shelves: dict[Hashable, deque[tuple[Slot, WarmSandbox]]] = {}
        self._creating: dict[asyncio.Task[None], Hashable] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._hits = self._misses = self._expired = self._failures = 0
        self._failed_in_a_row = 0
        self._not_before = 0.0
        self._closed = False

    def fill(self) -> None:
        """Start what is missing, as many at a time as there are cores."""
        if self._closed or self._clock() < self._not_before:
            return
        wanted = {self._shape(limits): (limits, size) for limits, size in self._stock.items()}
        for key in self._shelves.keys() - wanted.keys():
            self._clear(key)
        under_way = Counter(self._creating.values())
        for key, (limits, size) in wanted.items():
            missing = size - len(self._shelves.get(key, ())) - under_way[key]
            for _ in range(min(missing, self._refillers - len(self._creating))):
                task = asyncio.create_task(self._create(limits, key))
                self._creating[task] = key
                task.add_done_callback(self._created)

    async def lease(self, limits: Limits) -> WarmSandbox | None:
        """A warm sandbox of this kind, or None when there is none; the pool refills behind it."""
        found = None
        shelf = self._shelves.get(self._shape(limits))
        while shelf and found is None:
            slot, one = shelf.popleft()
            young = self._clock() - one.opened < self._max_age
            if young and await one.answers() and not self._closed:
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
            size=sum(self._stock.values()),
            warm=sum(map(len, self._shelves.values())),
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
        for key in list(self._shelves):
            self._clear(key)
        pending = [*self._creating, *self._closing]
        if pending:
            await asyncio.wait(pending)

    def discard(self, one: WarmSandbox) -> None:
        """Close a sandbox in the background, leased or not; `close` waits for it."""
        task = asyncio.create_task(one.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _clear(self, key: Hashable) -> None:
        # Emptied, not dropped: a lease may be at it.
        shelf = self._shelves.pop(key)
        while shelf:
            slot, one = shelf.popleft()
            slot.move(SlotState.DEAD)
            self.discard(one)

    async def _create(self, limits: Limits, key: Hashable) -> None:
        slot = Slot()
        try:
            one = await self._open_one(limits)
        except SandboxUnavailable as error:
            slot.move(SlotState.FAILED)
            self._back_off()
            log.warning("a warm sandbox could not be made: %s", error)
            return
        self._failed_in_a_row = 0
        slot.move(SlotState.WARM)
        if self._closed or self._shape(limits) != key:
            slot.move(SlotState.DEAD)
            await one.close()
            return
        self._shelves.setdefault(key, deque()).append((slot, one))

    def _created(self, task: asyncio.Task[None]) -> None:
        del self._creating[task]
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
