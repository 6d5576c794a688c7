"""`limbeck bench speed`: the bridge and the sandboxes against floors timed in the same run.

Timings of a shared machine lie; the ratio to a floor of the same round lies much less. Each section
interleaves its floor and its measure, and the medians count.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

from ..runtime.errors import LimbeckError
from ..sandbox.bubblewrap import BubblewrapBackend
from ..sandbox.executor import Executor
from ..sandbox.result import ExecutionResult
from ..stubs.tool import Toolset
from .floors import PingPong, load, plain_python, timed
from .rows import Report, Row, Sample, machine, row

Progress = Callable[[str], None]

CALLS = 200
"""Calls of one round."""

_CALLS_SCRIPT = f"""
import time
from tools import bench
for number in range(20):
    bench.nothing(number)
wall, cpu = time.perf_counter(), time.process_time()
for number in range({CALLS}):
    bench.nothing(number)
print([(time.perf_counter() - wall) / {CALLS}, (time.process_time() - cpu) / {CALLS}])
"""


def run_speed(
    sections: Sequence[str] | None = None,
    *,
    rounds: int = 9,
    progress: Progress | None = None,
) -> Report:
    """Measure the sections, all by default; `progress` is told what runs."""
    tell = progress or (lambda text: None)
    at_start = load()
    backend = BubblewrapBackend()
    problem = asyncio.run(backend.check())
    rows = []
    for name in sections or SECTIONS:
        tell(f"{name} ...")
        measure, title, unit = _MEASURES[name]
        if problem is not None:
            reason = problem.splitlines()[0]
            rows.append(Row(name=title, section=name, unit=unit, reason=reason))
            continue
        rows.append(measure(backend, rounds, tell))
    return Report(machine=machine(rounds, at_start), rows=tuple(rows))


def _lock_step(backend: BubblewrapBackend, rounds: int, tell: Progress) -> Row:
    """One call after the other, through gate, stub, stream and every layer."""
    bench = Toolset("bench")

    @bench.tool(effect="read")
    async def nothing(number: int) -> int:
        """Give a number back."""
        return number

    floors, values = [], []
    with PingPong() as ping, Executor([bench], backend=backend) as executor:
        for index in range(rounds):
            tell(f"call: round {index + 1} of {rounds}")
            floors.append(ping.sample(CALLS))
            result = _checked(executor.execute_code(_CALLS_SCRIPT))
            wall, cpu = json.loads(result.printout)
            values.append(Sample(wall, cpu))
    return row("lock-step call", "call", floors, values, goal=35)


def _cold(backend: BubblewrapBackend, rounds: int, tell: Progress) -> Row:
    """From the script's text to its result, with a new sandbox."""
    python = str(backend.vetting()[0])
    floors, values = [], []
    with Executor(backend=backend) as executor:
        _checked(executor.execute_code("print(1)"))
        for index in range(rounds):
            tell(f"start: round {index + 1} of {rounds}")
            floors.append(plain_python(python))
            values.append(timed(lambda: _checked(executor.execute_code("print(1)"))))
    return row("cold start, bubblewrap", "start", floors, values, goal=1.8, unit="ms")


def _checked(result: ExecutionResult) -> ExecutionResult:
    if result.status != "ok":
        raise LimbeckError(f"a measured script ended with {result.for_model()}")
    return result


_MEASURES: dict[str, tuple[Callable[[BubblewrapBackend, int, Progress], Row], str, str]] = {
    "call": (_lock_step, "lock-step call", "us"),
    "start": (_cold, "cold start, bubblewrap", "ms"),
}

SECTIONS: tuple[str, ...] = tuple(_MEASURES)
"""Sections that can be measured alone."""
