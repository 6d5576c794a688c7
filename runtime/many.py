"""`call_many`: one tool for many rows, pipelined on the stream, results in the rows' order.

Calls that wait together travel in one message, and so do their answers; no thread is needed. Memory
stays bounded for endless rows: so many calls are under way, so many answers wait for their turn.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, NamedTuple

from .channel import Channel
from .codec import Result
from .errors import BridgeClosed, ToolError
from .turns import Inbox

MAX_CONCURRENCY = 64
"""Calls under way; the host serves no more of one execution at a time."""

AHEAD = 8
"""So many times the concurrency may be answered and wait for a slow one before them."""


class Asked(NamedTuple):
    """A stub's call, caught before it is made."""

    tool: str
    arguments: dict[str, Any]
    streams: bool


Ask = Callable[..., Asked]


class CallMany:
    """What scripts import as `call_many`."""

    __name__ = "call_many"

    def __init__(self, channel: Channel, asking: Callable[[Callable[..., Any]], Ask]) -> None:
        """`asking` turns a stub into a function that gives the call; a TypeError for others."""
        self._channel = channel
        self._asking = asking

    def __call__(
        self,
        tool: Callable[..., Any],
        rows: Iterable[Any],
        *,
        concurrency: int = MAX_CONCURRENCY,
        return_exceptions: bool = False,
    ) -> Any:
        """Call `tool` for each of `rows`: results in the same order.

        A tuple is positional arguments, a dict keywords (unless the tool has one parameter alone),
        anything else the first argument. A list of rows gives a list; an iterator, which may be
        endless, gives an iterator. The first error is raised when all calls under way have ended
        and no other began; with return_exceptions=True errors stand in their rows' places.
        """
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
            raise TypeError(f"concurrency is a whole number above 0, not {concurrency!r}")
        work = _Work(
            self._channel,
            _spread(tool, self._asking(tool)),
            min(concurrency, MAX_CONCURRENCY),
            return_exceptions,
        )
        results = work.run(iter(rows))
        return list(results) if isinstance(rows, Sized) else results

    def __repr__(self) -> str:
        return "<tools.call_many>"


class _Work:
    """One call_many: what is under way and what is answered and waits."""

    def __init__(
        self, channel: Channel, ask: Ask, concurrency: int, return_exceptions: bool
    ) -> None:
        self._channel = channel
        self._ask = ask
        self._concurrency = concurrency
        self._return_exceptions = return_exceptions
        self._inbox = Inbox()
        self._under_way: dict[int, tuple[int, str]] = {}
        self._answered: dict[int, Any] = {}
        self._asked = self._given = 0
        self._failure: BaseException | None = None

    def run(self, rows: Iterator[Any]) -> Iterator[Any]:
        """Results in order. Closed early it lets the calls under way end, and asks no more."""
        try:
            more = True
            while more or self._under_way:
                more = more and self._failure is None and self._ask_some(rows)
                if self._under_way:
                    self._hear_some()
                while self._failure is None and self._given in self._answered:
                    value = self._answered.pop(self._given)
                    self._given += 1
                    yield value
            if self._failure is not None:
                raise self._failure
        finally:
            while self._under_way:
                self._hear_some()

    def _ask_some(self, rows: Iterator[Any]) -> bool:
        """Ask for as many rows as may be under way; whether there may be more of them."""
        try:
            while (
                len(self._under_way) < self._concurrency
                and self._asked - self._given < AHEAD * self._concurrency
            ):
                row = next(rows)
                index = self._asked
                self._asked += 1
                self._ask_one(index, row)
                if self._failure is not None:
                    return False
        except StopIteration:
            return False
        except BaseException as error:
            self._failure = error
            return False
        finally:
            self._channel.flush()
        return True

    def _ask_one(self, index: int, row: Any) -> None:
        try:
            tool, arguments, streams = self._ask(row)
            if streams:
                raise TypeError(f"{tool} streams its rows: iterate over a call of it")
            number = self._channel.post(tool, arguments, self._inbox)
        except ToolError as error:
            self._keep(index, error)
        else:
            self._under_way[number] = (index, tool)

    def _hear_some(self) -> None:
        """Wait for an answer, and take those that came with it."""
        for answer in [self._channel.wait(self._inbox), *self._inbox.take_all()]:
            self._hear(answer)

    def _hear(self, answer: Result | None) -> None:
        if answer is None:
            self._failure = self._failure or BridgeClosed()
            self._under_way.clear()
            return
        index, tool = self._under_way.pop(answer.id)
        self._channel.forget(answer.id)
        try:
            self._answered[index] = self._channel.value(tool, answer)
        except ToolError as error:
            self._keep(index, error)

    def _keep(self, index: int, error: ToolError) -> None:
        if self._return_exceptions:
            self._answered[index] = error
        elif self._failure is None:
            error.add_note(f"call_many: row {index}")
            self._failure = error


def _spread(tool: Callable[..., Any], ask: Ask) -> Ask:
    """The call of one row."""
    single = len(inspect.signature(tool).parameters) == 1

    def spread(row: Any) -> Asked:
        if isinstance(row, tuple):
            return ask(*row)
        if isinstance(row, dict) and not single:
            return ask(**row)
        return ask(row)

    return spread
