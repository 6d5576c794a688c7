"""sys.stdout and sys.stderr as a script sees them: writers and nothing behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


class Output:
    """Writes to the stream that is current; has no buffer, no descriptor, no name."""

    __slots__ = ("_current",)

    def __init__(self, current: Callable[[], Any]) -> None:
        self._current = current

    def write(self, text: str) -> int:
        """Write to the stream."""
        written: int = self._current().write(text)
        return written

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each line."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Hand over what is buffered."""
        self._current().flush()

    def isatty(self) -> bool:
        """A sandbox has no terminal."""
        return False
