"""`limbeck bench speed`: the bridge and the sandboxes against floors timed in the same run.

Timings of a shared machine lie; the ratio to a floor of the same round lies much less. Floor and
measure take turns, and the medians count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from ..runtime.errors import LimbeckError
from ..sandbox.bubblewrap import BubblewrapBackend
from .floors import load
from .gated import GATED
from .measures import LockStepCall, ManyCalls, Measure
from .parallel import PARALLEL
from .pools import PoolHit, SustainedUse, WarmMemory
from .rows import Report, Row, machine, row
from .starts import ColdStart, DockerColdStart, DockerWarmStart, WarmStart

Progress = Callable[[str], None]

MEASURES: tuple[type[Measure], ...] = (
    LockStepCall,
    ManyCalls,
    ColdStart,
    WarmStart,
    PoolHit,
    SustainedUse,
    WarmMemory,
    DockerColdStart,
    DockerWarmStart,
    *GATED,
    *PARALLEL,
)

SECTIONS: tuple[str, ...] = tuple(dict.fromkeys(one.section for one in MEASURES))
"""Sections that can be measured alone."""


def run_speed(
    sections: Sequence[str] | None = None,
    *,
    rounds: int = 9,
    progress: Progress | None = None,
) -> Report:
    """Measure the sections, all by default; `progress` is told what runs.

    What cannot be measured here is a row with its reason.
    """
    at_start = load()
    wanted = SECTIONS if sections is None else sections
    backend = BubblewrapBackend()
    problem = asyncio.run(backend.check())
    rows = [
        _not_measured(one, problem) if problem else _row(one, backend, rounds, progress)
        for one in MEASURES
        if one.section in wanted
    ]
    return Report(machine=machine(rounds, at_start), rows=tuple(rows))


def _row(
    wanted: type[Measure], backend: BubblewrapBackend, rounds: int, progress: Progress | None
) -> Row:
    floors, values = [], []
    try:
        with ExitStack() as stack:
            measure = wanted(backend, stack)
            for index in range(rounds):
                if progress is not None:
                    progress(f"{wanted.title}: round {index + 1} of {rounds}")
                floors.append(measure.floor())
                values.append(measure.measure())
    except LimbeckError as error:
        return _not_measured(wanted, str(error))
    return row(wanted.title, wanted.section, floors, values, goal=wanted.goal, unit=wanted.unit)


def _not_measured(wanted: type[Measure], problem: str) -> Row:
    reason = problem.splitlines()[0]
    return Row(name=wanted.title, section=wanted.section, unit=wanted.unit, reason=reason)
