"""What a measure is: it has a floor, and both are timed round by round. The one of a call."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import ClassVar

from ..runtime.errors import LimbeckError
from ..sandbox.bubblewrap import BubblewrapBackend
from ..sandbox.executor import Executor
from ..sandbox.result import ExecutionResult
from ..stubs.tool import Toolset
from .floors import PingPong
from .rows import Sample

CALLS = 200
"""Calls of one round."""

MANY = 5_000
"""Calls of one round of call_many."""

_WARM_UP = -1

_MANY_SCRIPT = f"""
import time
from tools import bench, call_many
call_many(bench.nothing, range(100))
began, cpu = time.perf_counter(), time.process_time()
call_many(bench.nothing, range({MANY}))
print([(time.perf_counter() - began) / {MANY}, (time.process_time() - cpu) / {MANY}])
"""

_CALLS_SCRIPT = f"""
import statistics, time
from tools import bench
for _ in range(20):
    bench.nothing({_WARM_UP})
walls, cpu = [], time.process_time()
for number in range({CALLS}):
    began = time.perf_counter()
    bench.nothing(number)
    walls.append(time.perf_counter() - began)
print([statistics.median(walls), (time.process_time() - cpu) / {CALLS}])
"""


class Measure(ABC):
    """One row. What it needs is opened when it is made, and closed with the stack."""

    title: ClassVar[str]
    section: ClassVar[str]
    unit: ClassVar[str]
    """us, ms or s."""
    goal: ClassVar[float]
    """The ratio to the floor is to be at most this."""

    @abstractmethod
    def __init__(self, backend: BubblewrapBackend, stack: ExitStack) -> None:
        """Open everything."""

    @abstractmethod
    def floor(self) -> Sample:
        """One round of what cannot be beaten here."""

    @abstractmethod
    def measure(self) -> Sample:
        """One round of ours. Raises LimbeckError when it cannot be had."""


class ManyCalls(Measure):
    """call_many: pipelined, the whole pipeline for each call."""

    title = "call_many, a call"
    section = "many"
    unit = "us"
    goal = 6.0

    def __init__(self, backend: BubblewrapBackend, stack: ExitStack) -> None:
        self._ping = stack.enter_context(PingPong())
        bench = Toolset("bench")

        @bench.tool(effect="read")
        async def nothing(number: int) -> int:
            """Give a number back."""
            return number

        self._executor = stack.enter_context(Executor([bench], backend=backend))

    def floor(self) -> Sample:
        """A ping and its answer between two processes."""
        return self._ping.sample(CALLS)

    def measure(self) -> Sample:
        """One of many calls: wall, and CPU of both sides."""
        before = time.process_time()
        result = checked(self._executor.execute_code(_MANY_SCRIPT))
        wall, cpu = json.loads(result.printout)
        return Sample(wall, cpu + (time.process_time() - before) / MANY)


class LockStepCall(Measure):
    """One call after the other, through gate, stub, stream and every layer."""

    title = "lock-step call"
    section = "call"
    unit = "us"
    goal = 35.0

    def __init__(self, backend: BubblewrapBackend, stack: ExitStack) -> None:
        self._host_cpu: list[float] = []
        self._ping = stack.enter_context(PingPong())
        self._executor = stack.enter_context(Executor([self._toolset()], backend=backend))

    def floor(self) -> Sample:
        """A ping and its answer between two processes."""
        return self._ping.sample(CALLS)

    def measure(self) -> Sample:
        """A call of a tool that does nothing: median wall, mean CPU of both sides."""
        self._host_cpu.clear()
        result = checked(self._executor.execute_code(_CALLS_SCRIPT))
        wall, cpu = json.loads(result.printout)
        first, last = self._host_cpu
        return Sample(wall, cpu + (last - first) / (CALLS - 1))

    def _toolset(self) -> Toolset:
        bench = Toolset("bench")

        @bench.tool(effect="read")
        async def nothing(number: int) -> int:
            """Give a number back."""
            if number in (0, CALLS - 1):
                self._host_cpu.append(time.process_time())
            return number

        return bench


def checked(result: ExecutionResult) -> ExecutionResult:
    """The result of a measured script. Raises LimbeckError when it did not end well."""
    if result.status != "ok":
        raise LimbeckError(f"a measured script ended with {result.for_model()}")
    return result
