"""The live line of a run in a terminal: calls, calls a second, time.

It stands on standard error, below what the script prints, and is gone before anything else is
written and when the script has ended. Where standard error is no terminal there is none.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from typing import TextIO

import click

from ..runtime.text import neutralise
from ..sandbox.activity import Activity

SHOWN_AFTER = 1.0
"""Seconds: a script that ends sooner needs no line."""

RATE_SECONDS = 2.0
"""The span over which calls a second are counted."""

_ERASE = "\r\x1b[K"
_WIDTH = 80


class LiveLine:
    """Writes what a script prints and, on a terminal, what it does."""

    def __init__(self) -> None:
        self._terminal = _is_terminal(sys.stderr)
        self._drawn = False
        self._line_begun = False
        """The terminal's cursor stands behind something that the script printed."""
        self._passed: deque[tuple[float, int]] = deque()

    @property
    def wanted(self) -> bool:
        """Whether there is anybody to see it."""
        return self._terminal

    def show(self, stream: str, text: str) -> None:
        """Print what the script printed, or a progress message as a line of its own."""
        if stream == "progress" and not text.endswith("\n"):
            text += "\n"
        self.erase()
        out = stream == "stdout"
        click.echo(neutralise(text), nl=False, err=not out)
        if text and _is_terminal(sys.stdout if out else sys.stderr):
            self._line_begun = not text.endswith("\n")

    def update(self, activity: Activity) -> None:
        """Draw the line anew."""
        passed = self._passed
        passed.append((activity.seconds, activity.calls))
        while len(passed) > 2 and passed[1][0] <= activity.seconds - RATE_SECONDS:
            passed.popleft()
        if activity.seconds < SHOWN_AFTER or self._line_begun or not self._terminal:
            return
        text = describe(activity, _rate(passed))
        self._write(_ERASE + text[: _columns() - 1])
        self._drawn = True

    def erase(self) -> None:
        """Leave nothing of it."""
        if self._drawn:
            self._write(_ERASE)
            self._drawn = False

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def describe(activity: Activity, rate: float | None = None) -> str:
    """`12,345 calls, 3,210 a second, 4 failed, 3 s of 60 s`"""
    parts = [f"{activity.calls:,} call{'' if activity.calls == 1 else 's'}"]
    if rate is not None and activity.calls:
        parts.append(f"{rate:,.0f} a second")
    for count, word in ((activity.failed, "failed"), (activity.denied, "denied")):
        if count:
            parts.append(f"{count:,} {word}")
    parts.append(f"{activity.seconds:.0f} s of {activity.wall:g} s")
    return ", ".join(parts)


def _rate(passed: deque[tuple[float, int]]) -> float | None:
    (since, before), (now, calls) = passed[0], passed[-1]
    return (calls - before) / (now - since) if now > since else None


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "") != "dumb"


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _WIDTH
    except (OSError, ValueError):
        return _WIDTH
