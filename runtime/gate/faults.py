"""What the gate says against a script: faults with a place and a mend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MAX_FAULTS = 20
"""Faults that one refusal lists."""

MAX_LINE = 200
"""Characters of a source line that a fault quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One place that is refused, what is wrong with it, and what to write instead."""

    line: int
    """1 is the first; 0 when the fault has no place."""
    column: int
    """In characters, 1 is the first; 0 when the fault has no place."""
    message: str
    hint: str = ""
    source_line: str = ""

    def __str__(self) -> str:
        text = f"{self.message}: {self.hint}" if self.hint else self.message
        if self.line:
            text = f"line {self.line}, col {self.column}: {text}"
        return f"{text}\n    {self.source_line.strip()}" if self.source_line else text


class Refused(Exception):
    """The gate's own verdict at compile time; `faults` says why."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = list(faults)
        super().__init__("\n".join(map(str, self.faults)))


def in_order(faults: Sequence[Fault]) -> list[Fault]:
    """The first MAX_FAULTS different faults by place."""
    unique = dict.fromkeys(faults)
    return sorted(unique, key=lambda fault: (fault.line, fault.column))[:MAX_FAULTS]
