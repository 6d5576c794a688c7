"""Rows of the speed report: a measure, its floor, their ratio, the goal."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from .. import __version__


@dataclass(frozen=True, slots=True)
class Sample:
    """One timing: wall and CPU seconds; or bytes, and no CPU."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A measure against its floor; a row that cannot run here says why in `reason`."""

    name: str
    section: str
    unit: str
    value: float | None = None
    """Median, in `unit`."""
    cpu: float | None = None
    """CPU beside it, of host and sandbox together, in `unit`."""
    floor: float | None = None
    ratio: float | None = None
    """Median of the rounds' own ratios."""
    goal: float | None = None
    """The ratio is to be at most this."""
    met: bool | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All rows of a run."""

    machine: dict[str, Any]
    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {"machine": self.machine, "rows": [asdict(row) for row in self.rows]}

    def render(self) -> str:
        """A table for a terminal."""
        machine = self.machine
        lines = [
            f"limbeck {machine['limbeck']}, Python {machine['python']}, "
            f"{machine['cores']} cores, load {machine['load']}; medians of {machine['rounds']} "
            "interleaved rounds",
            f"{'':32}{'value':>10}{'CPU':>10}{'floor':>10}{'ratio':>8}{'goal':>8}",
        ]
        return "\n".join([*lines, *map(_line, self.rows)])


def row(
    name: str,
    section: str,
    floors: Sequence[Sample],
    values: Sequence[Sample],
    *,
    goal: float,
    unit: str = "us",
) -> Row:
    """The row of interleaved samples: medians, and the median of the rounds' ratios."""
    scale = {"us": 1e6, "ms": 1e3, "s": 1.0, "MB": 1e-6}[unit]
    ratio = median(value.wall / floor.wall for value, floor in zip(values, floors, strict=True))
    return Row(
        name=name,
        section=section,
        unit=unit,
        value=round(median(value.wall for value in values) * scale, 2),
        cpu=round(median(value.cpu for value in values) * scale, 2),
        floor=round(median(floor.wall for floor in floors) * scale, 2),
        ratio=round(ratio, 2),
        goal=goal,
        met=ratio <= goal,
    )


def machine(rounds: int, load: float) -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "limbeck": __version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "load": round(load, 1),
        "rounds": rounds,
    }


def _line(one: Row) -> str:
    if one.value is None or one.floor is None or one.cpu is None:
        return f"{one.name:32}{'not measured: ' + one.reason}"
    mark = "met" if one.met else "NOT MET"
    cpu = f"{one.cpu:>7,.0f} {one.unit:2}" if one.cpu else f"{'-':>7}   "
    return (
        f"{one.name:32}{one.value:>7,.0f} {one.unit:2}{cpu}"
        f"{one.floor:>7,.0f} {one.unit:2}{one.ratio:>7.2f}x{one.goal:>7.2f}x  {mark}"
    )
