"""Whether a handler began: decided once, by whoever comes first."""

from __future__ import annotations


class Start:
    """The gate between a call that waits for its turn and the end of its waiting.

    A handler's thread (or its task on the tools' loop) calls `begin`; who stops waiting for it
    calls `give_up`. Only the first of the two is told True, whatever threads they run in.
    """

    __slots__ = ("_first",)

    def __init__(self) -> None:
        self._first: dict[str, bool] = {}

    def begin(self) -> bool:
        """Begin; False when it has been given up: it must not run any more."""
        return self._first.setdefault("began", True)

    def give_up(self) -> bool:
        """Stop waiting; False when it has begun: it may have its effect."""
        return not self._first.setdefault("began", False)

    @property
    def begun(self) -> bool:
        """Whether the handler began."""
        return self._first.get("began", False)
