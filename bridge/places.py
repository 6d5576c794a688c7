"""How many streamed results may be open: of one execution, and of all of them.

A stream has a thread of its own, or a task on the tools' loop, and holds rows that wait. Its place
is free only when both its reader and its producer have gone: a generator that does not come to its
end would else leave a thread behind for each call.
"""

from __future__ import annotations

import threading
from collections import Counter

from ..runtime.errors import BudgetExceeded, RateLimited
from .call import ToolCall

MAX_STREAMS = 16
"""Streamed results that one execution may have open at a time."""

MAX_ALL_STREAMS = 256
"""Streamed results of all executions."""

_RETRY_SECONDS = 1.0


class StreamPlaces:
    """Counts the open streams of an executor."""

    def __init__(self, most: int = MAX_STREAMS, most_of_all: int = MAX_ALL_STREAMS) -> None:
        self._most = most
        self._most_of_all = most_of_all
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()

    def check(self, call: ToolCall) -> None:
        """Raise what `take` would raise now."""
        held = self._held[call.execution.id]
        if held >= self._most:
            raise BudgetExceeded(call.name, "open streams", held, self._most)
        if self._held.total() >= self._most_of_all:
            raise RateLimited(call.name, _RETRY_SECONDS)

    def take(self, call: ToolCall) -> Place:
        """A place for a call's rows. Raises BudgetExceeded, or RateLimited for all of them."""
        with self._lock:
            self.check(call)
            self._held[call.execution.id] += 1
        return Place(self, call.execution.id)

    def free(self, owner: str) -> None:
        """Take back one place; called by the place itself."""
        with self._lock:
            self._held[owner] -= 1
            if not self._held[owner]:
                del self._held[owner]


class Place:
    """One open stream, until its reader and its producer have both left."""

    def __init__(self, places: StreamPlaces, owner: str) -> None:
        self._places = places
        self._owner = owner
        self._inside = ["reader", "producer"]

    def leave(self) -> None:
        """One of the two goes, each once; in any thread."""
        self._inside.pop()
        if not self._inside:
            self._places.free(self._owner)
