"""A fault of a script: where, what, and what to do instead."""

from __future__ import annotations

from dataclasses import dataclass

MAX_FAULTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that the gate refuses. `line` and `column` count from 1; 0 means no place."""

    line: int
    column: int
    message: str
    hint: str = ""
    source_line: str = ""

    def __str__(self) -> str:
        place = f"line {self.line}, col {self.column}: " if self.line else ""
        text = f"{place}{self.message}"
        text += f": {self.hint}" if self.hint else ""
        return f"{text}\n    {self.source_line}" if self.source_line else text


class Refused(Exception):
    """The gate does not let a script run."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = faults
