"""Whoever waits reads: one of the waiting threads at a time, for all of them.

There is no reader's thread: a script that calls tools one after the other reads its own answers,
without a switch between threads. When the reading one has what it waited for, it passes its turn on
to another that waits.

Any of these lines may be interrupted (KeyboardInterrupt, a signal's handler that raises), or run in
the midst of another by the same thread (a signal's handler, a finalizer). So there is no lock that
anybody waits for, and nothing hangs on a word that could be lost: who holds something is known by
a lock of its own that a `with` holds, which the interpreter lets go however the block ends, and
whoever waits looks again after PATIENCE. A change of hands is a comparison and an assignment
without a call between: there the interpreter neither interrupts nor switches threads.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Protocol

PATIENCE = 1.0
"""Seconds after which who stands by looks whether anybody reads at all."""

_LOOK = object()
"""In an inbox: something has changed, look again."""


class Holder:
    """A thread in a block: `with holder.inside`, which nobody else takes, tells that it is in."""

    __slots__ = ("inside", "thread")

    def __init__(self) -> None:
        self.inside = threading.Lock()
        self.thread = threading.get_ident()


class Putable(Protocol):
    """What can be given something; a coroutine's is no Inbox, and nobody waits at it."""

    def put(self, item: Any, /) -> None:
        """Take it."""


class Inbox(Holder):
    """What one thread at a time waits for."""

    __slots__ = ("items", "waits")

    def __init__(self) -> None:
        super().__init__()
        self.items: SimpleQueue[Any] = SimpleQueue()
        self.waits = False
        """Whether its thread will look at what it is told."""

    def put(self, item: Any, /) -> None:
        """Take it."""
        self.items.put(item)

    def take_all(self) -> list[Any]:
        """What is there already."""
        found = []
        while not self.items.empty():
            item = self.items.get_nowait()
            if item is not _LOOK:
                found.append(item)
        return found


class Claim:
    """What one holder at a time has. It is free again when the holder's block is left."""

    def __init__(self) -> None:
        self._holder: Holder | None = None

    def take(self, mine: Holder) -> bool:
        """Take it, inside `with mine.inside`; False when another has it."""
        while True:
            holder = self._holder
            if holder is mine:
                return True
            if holder is not None and holder.inside.locked():
                return False
            if self._holder is holder:
                self._holder = mine

    def is_below(self) -> bool:
        """Whether this very thread has it, further down its stack."""
        return _is_below(self._holder)


class Turns:
    """`wait` for what the reading thread will `give`. `read` reads once; False: never again."""

    def __init__(self, read: Callable[[], bool]) -> None:
        self._read = read
        self._reader: Inbox | None = None
        self._others: dict[Putable, None] = {}

    def wait(self, inbox: Inbox) -> Any:
        """The next thing in an inbox: there already, read now, or given by whoever reads.

        Called inside `with inbox.inside`. None when nothing will ever come.
        """
        items, reading = inbox.items, False
        inbox.thread = threading.get_ident()
        try:
            inbox.waits = True
            while True:
                if not items.empty():
                    item = items.get_nowait()
                elif reading or self._is_to_read(inbox):
                    reading = True
                    if self._read() or not items.empty():
                        continue
                    return None
                else:
                    item = _stand_by(inbox)
                if item is not _LOOK:
                    return item
        finally:
            self._leave(inbox)

    def read_if_free(self, ready: Callable[[], bool]) -> None:
        """Read once, unless somebody does, or nothing is `ready` any more: never wait."""
        inbox = Inbox()
        with inbox.inside:
            try:
                reader = self._reader
                if reader is not None and reader.inside.locked():
                    return
                if self._reader is reader:
                    self._reader = inbox
                # Another may have read it all since the loop was told.
                if self._reader is inbox and ready():
                    self._read()
            finally:
                self._leave(inbox)

    def give(self, inbox: Putable, item: Any) -> None:
        """Put something into an inbox; by the reading thread, or before anybody waits."""
        self._others.pop(inbox, None)
        inbox.put(item)

    def is_below(self) -> bool:
        """Whether this very thread reads, further down its stack."""
        return _is_below(self._reader)

    def _is_to_read(self, inbox: Inbox) -> bool:
        while True:
            reader = self._reader
            if reader is inbox:
                return True
            if reader is None or not reader.inside.locked():
                if self._reader is reader:
                    self._reader = inbox
            elif reader.thread == inbox.thread:
                return True  # It is below on this stack, and goes on only when we are done.
            else:
                self._others[inbox] = None
                # One that left meanwhile has not seen us.
                if self._reader is reader:
                    return False

    def _leave(self, inbox: Inbox) -> None:
        """Pass the turn on, if we have it, to who came last: a handler stands above its thread."""
        inbox.waits = False
        self._others.pop(inbox, None)
        holder: Inbox | None = inbox
        while self._reader is holder:
            other = self._next()
            if self._reader is holder:
                self._reader = other
            if other is None:
                if not self._others:
                    return
            else:
                other.items.put(_LOOK)
                if other.waits:
                    return
            # Somebody came, or it left, while we looked.
            holder = other

    def _next(self) -> Inbox | None:
        with contextlib.suppress(KeyError):  # nobody waits
            while self._others:
                other, _ = self._others.popitem()
                if isinstance(other, Inbox) and other.waits and other.inside.locked():
                    return other
        return None


class Room:
    """At most so many inside; others wait, first come first served."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._visitors: dict[Inbox, None] = {}
        """In the order in which they came: the first ones are inside."""

    def enter(self, inbox: Inbox) -> None:
        """Wait for a place, inside `with inbox.inside`; it is free when that block is left."""
        self._visitors[inbox] = None
        if len(self._visitors) > self._size:
            inbox.waits = True
            while not self._is_let_in(inbox):
                _stand_by(inbox)
            inbox.waits = False

    def leave(self, inbox: Inbox) -> None:
        """Give the place up."""
        self._visitors.pop(inbox, None)
        if len(self._visitors) >= self._size:
            for one in list(self._visitors)[: self._size]:
                if one.waits:
                    one.items.put(_LOOK)

    def _is_let_in(self, inbox: Inbox) -> bool:
        for one in list(self._visitors):
            if not one.inside.locked():
                self._visitors.pop(one, None)
        first = list(self._visitors)[: self._size]
        # One that is below on this stack leaves only after us.
        return inbox in first or any(one.thread == inbox.thread for one in first)


def _stand_by(inbox: Inbox) -> Any:
    try:
        return inbox.items.get(timeout=PATIENCE)
    except Empty:
        return _LOOK


def _is_below(holder: Holder | None) -> bool:
    return holder is not None and holder.thread == threading.get_ident() and holder.inside.locked()
