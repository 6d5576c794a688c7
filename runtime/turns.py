"""Whoever waits reads: one of the waiting threads at a time, for all of them.

There is no reader's thread: a script that calls tools one after the other reads its own answers,
without a switch between threads. When the reading one has what it waited for, it passes its turn on
to another that waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol

Inbox = SimpleQueue[Any]


class Putable(Protocol):
    """What can be given something; a coroutine's is no Inbox, and nobody waits at it."""

    def put(self, item: Any, /) -> None:
        """Take it."""


_TURN = object()


class Turns:
    """`wait` for what the reading thread will `give`. `read` reads once, and gives."""

    def __init__(self, read: Callable[[], None]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._reading = False
        self._others: dict[Putable, None] = {}

    def wait(self, inbox: Inbox) -> Any:
        """The next thing in an inbox: there already, read now, or given by whoever reads."""
        with self._lock:
            if not inbox.empty():
                return inbox.get_nowait()
            mine = not self._reading
            if mine:
                self._reading = True
            else:
                self._others[inbox] = None
        if not mine:
            item = self._stand_by(inbox)
            if item is not _TURN:
                return item
        try:
            while inbox.empty():
                self._read()
        finally:
            self._pass_on()
        return inbox.get_nowait()

    def read_if_free(self) -> None:
        """Read once, unless somebody does: for whoever knows that there is something to read."""
        with self._lock:
            if self._reading:
                return
            self._reading = True
        try:
            self._read()
        finally:
            self._pass_on()

    def give(self, inbox: Putable, item: Any) -> None:
        """Put something into an inbox; by the reading thread, or before anybody waits."""
        with self._lock:
            self._others.pop(inbox, None)
            inbox.put(item)

    def reset(self) -> None:
        """Forget who waits: in a forked child there is nobody else."""
        self._lock = threading.Lock()
        self._reading = False
        self._others = {}

    def _stand_by(self, inbox: Inbox) -> Any:
        try:
            return inbox.get()
        except BaseException:
            # Interrupted. A turn that came meanwhile must not be lost.
            with self._lock:
                waiting = inbox in self._others
                self._others.pop(inbox, None)
            if not waiting and not inbox.empty() and inbox.get_nowait() is _TURN:
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        with self._lock:
            if not self._others:
                self._reading = False
                return
            other = next(iter(self._others))
            del self._others[other]
            other.put(_TURN)
