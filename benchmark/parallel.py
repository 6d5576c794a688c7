"""Calls that wait: how near to the ideal many of them come, side by side."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import ExitStack
from typing import ClassVar

from ..sandbox.bubblewrap import BubblewrapBackend
from ..sandbox.executor import Executor
from ..stubs.tool import Toolset
from .measures import Measure, checked
from .rows import Sample

WAIT = 0.010
"""Seconds that each call takes."""

_WARM_UP = "call_many(bench.wait, range(16))"
_MANY = "call_many(bench.wait, range(CALLS), concurrency=64)"
_GATHER = "asyncio.run(gathered())"
_THREADS = "list(pool.map(bench.wait, range(CALLS)))"

_SCRIPT = """
import asyncio, time
from concurrent.futures import ThreadPoolExecutor
from tools import aio, bench, call_many

async def gathered():
    places = asyncio.Semaphore(64)
    async def one(number):
        async with places:
            await aio.bench.wait(number)
    await asyncio.gather(*[one(number) for number in range(CALLS)])

with ThreadPoolExecutor(64) as pool:
    WARM_UP
    began, cpu = time.perf_counter(), time.process_time()
    WORK
    print([time.perf_counter() - began, time.process_time() - cpu])
"""


class _Waits(Measure):
    """So many calls that wait; the floor is the time that they cannot be done without."""

    section = "parallel"
    unit = "ms"
    calls: ClassVar[int]
    work: ClassVar[str]

    def __init__(self, backend: BubblewrapBackend, stack: ExitStack) -> None:
        bench = Toolset("bench")

        @bench.tool(effect="read")
        async def wait(number: int) -> int:
            """Give a number back, a little later."""
            await asyncio.sleep(WAIT)
            return number

        self._executor = stack.enter_context(Executor([bench], backend=backend))
        script = _SCRIPT.replace("WARM_UP", _WARM_UP).replace("WORK", self.work)
        self._script = script.replace("CALLS", str(self.calls))

    def floor(self) -> Sample:
        """The waiting alone, 64 at a time: not measured."""
        return Sample(WAIT * max(1.0, self.calls / 64), 0.0)

    def measure(self) -> Sample:
        """All of the calls: wall, and CPU of both sides."""
        before = time.process_time()
        result = checked(self._executor.execute_code(self._script))
        wall, cpu = json.loads(result.printout)
        return Sample(wall, cpu + time.process_time() - before)


class FewByMany(_Waits):
    """16 calls at once by call_many: 20 ms."""

    title, calls, work, goal = "16 x 10 ms, call_many", 16, _MANY, 2.0


class FewByAsyncio(_Waits):
    """16 calls at once by asyncio: 20 ms."""

    title, calls, work, goal = "16 x 10 ms, asyncio", 16, _GATHER, 2.0


class ThousandByMany(_Waits):
    """1,000 calls, 64 at a time, by call_many."""

    title, calls, work, goal = "1,000 x 10 ms, call_many", 1_000, _MANY, 2.5


class ThousandByAsyncio(_Waits):
    """1,000 calls, 64 at a time, by asyncio."""

    title, calls, work, goal = "1,000 x 10 ms, asyncio", 1_000, _GATHER, 3.0


class ThousandByThreads(_Waits):
    """1,000 calls, 64 at a time, by threads."""

    title, calls, work, goal = "1,000 x 10 ms, threads", 1_000, _THREADS, 3.0


PARALLEL: tuple[type[Measure], ...] = (
    FewByMany,
    FewByAsyncio,
    ThousandByMany,
    ThousandByAsyncio,
    ThousandByThreads,
)
