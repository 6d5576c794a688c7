"""What `limbeck bench speed` measures: each has a floor, and both are timed round by round."""

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
from .floors import PingPong, plain_python
from .rows import Sample

CALLS = 200
"""Calls of one round."""

POOL_TRIES = 200

_WARM_UP = -1

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
        result = _checked(self._executor.execute_code(_CALLS_SCRIPT))
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


class ColdStart(Measure):
    """From a script's text to its result, with a new sandbox."""

    title = "cold start, bubblewrap"
    section = "start"
    unit = "ms"
    goal = 1.8

    def __init__(self, backend: BubblewrapBackend, stack: ExitStack) -> None:
        self._python = str(backend.vetting()[0])
        self._executor = stack.enter_context(Executor(backend=backend))
        # The vetting child starts with the first script and stays.
        _checked(self._executor.execute_code("print(1)"))

    def floor(self) -> Sample:
        """The sandbox's interpreter, doing nothing."""
        return plain_python(self._python)

    def measure(self) -> Sample:
        """The whole of one execution; the CPU is the host's and the sandbox's."""
        wall, cpu = time.perf_counter(), time.process_time()
        result = _checked(self._executor.execute_code("print(1)"))
        cpu = time.process_time() - cpu + result.usage.cpu
        return Sample(time.perf_counter() - wall, cpu)


class WarmStart(ColdStart):
    """The same with a sandbox that waits already."""

    title = "warm start, bubblewrap"
    section = "pool"
    goal = 1.0

    def __init__(self, backend: BubblewrapBackend, stack: ExitStack) -> None:
        self._python = str(backend.vetting()[0])
        self._executor = stack.enter_context(Executor(backend=backend, warm=1))
        _checked(self._executor.execute_code("print(1)"))

    def measure(self) -> Sample:
        """One execution that finds its sandbox warm; waiting for the refill is not counted."""
        for _ in range(POOL_TRIES):
            statistics = self._executor.statistics()
            if statistics is not None and statistics.warm:
                break
            time.sleep(0.05)
        sample = super().measure()
        # The refill works on the other core meanwhile; it is let end before the next floor.
        time.sleep(0.3)
        return sample


MEASURES: tuple[type[Measure], ...] = (LockStepCall, ColdStart, WarmStart)


def _checked(result: ExecutionResult) -> ExecutionResult:
    if result.status != "ok":
        raise LimbeckError(f"a measured script ended with {result.for_model()}")
    return result
