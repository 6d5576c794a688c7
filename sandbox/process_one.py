"""What process 1 says of the end: one line that nobody else inside can write."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOneReport:
    """The line, read; empty when there was none."""

    exit_code: int | None = None
    signal: int | None = None
    word: str = ""
    """exited, deadline or ended."""
    cpu_seconds: float | None = None


def parse_report(line: str) -> ProcessOneReport:
    """Read the line; anything else is an empty report."""
    words = line.split()
    if len(words) != 5 or words[0] != "exit":
        return ProcessOneReport()
    _, code, number, word, cpu = words
    return ProcessOneReport(
        exit_code=int(code) if code.isdigit() else None,
        signal=int(number) if number.isdigit() else None,
        word=word,
        cpu_seconds=int(cpu) / 1000 if cpu.isdigit() else None,
    )
