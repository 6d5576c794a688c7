"""Findings: what was looked at, how it is, and what to mend; as a table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ...runtime.text import neutralise

FORMAT = 1
"""Of the JSON; raised when a name or a meaning changes. What is only added does not raise it."""


class Mark(StrEnum):
    """How a finding is; the words of the JSON."""

    OK = "ok"
    WARN = "warn"
    """It works, and somebody should know."""
    FAIL = "fail"
    INFO = "info"


_SHOWN = {Mark.OK: "ok  ", Mark.WARN: "warn", Mark.FAIL: "FAIL", Mark.INFO: "    "}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    name: str
    mark: Mark = Mark.INFO
    text: str
    hint: str = ""
    """What to do about it."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The same for programs."""

    @classmethod
    def failed(cls, name: str, problem: str) -> Finding:
        """From a problem that carries its own `Hint:`."""
        text, _, hint = problem.partition("\nHint: ")
        return cls(name=name, mark=Mark.FAIL, text=text, hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All findings."""

    findings: tuple[Finding, ...]
    works: bool
    """A backend ran a real sandbox: the configured one, or any with `auto`."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON; docs/operating.md has the shape."""
        return {
            "format": FORMAT,
            "works": self.works,
            "findings": [
                {
                    "name": one.name,
                    "status": str(one.mark),
                    "text": one.text,
                    "hint": one.hint or None,
                    "values": dict(one.values),
                }
                for one in self.findings
            ],
        }

    def render(self) -> str:
        """A table for a terminal, and the hints below it."""
        width = max(len(finding.name) for finding in self.findings)
        rows = [
            f"{_SHOWN[one.mark]} {one.name.ljust(width)}  {_indented(one.text, width + 7)}"
            for one in self.findings
        ]
        hints = [
            f"{one.name}: {_indented(one.hint, 2)}"
            for one in self.findings
            if one.hint and one.mark is not Mark.OK
        ]
        return "\n".join([*rows, *(["", "Hints", *hints] if hints else [])])


def _indented(text: str, columns: int) -> str:
    """Daemons, launchers and file names have a word in it: nothing of theirs moves the cursor."""
    lines = [neutralise(line) for line in text.splitlines()] or [""]
    return f"\n{' ' * columns}".join(lines)
