"""The warm pool under load: how late a hit may be, how many in a second, how much memory waits."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import quantiles

from ..runtime.errors import LimbeckError
from ..sandbox.bubblewrap import BubblewrapBackend
from ..sandbox.executor import Executor
from .floors import load_worker, own_share, plain_python, proportional_bytes
from .measures import Measure, checked
from .rows import Sample
from .starts import one_execution, wait_until_warm

CORES = os.cpu_count() or 1

HITS = 20
"""Executions of one round of pool hits."""

SUSTAINED = 8 * CORES
"""Executions of one round of sustained use."""

WAITING = 4
"""Sandboxes whose memory is measured."""


class PoolHit(Measure):
    """The slowest of twenty that each find a sandbox warm, asked for at half the refill's rate."""

    title = "pool hit, p95"
    section = "pool"
    unit = "ms"
    goal = 0.5

    def __init__(self, backend: BubblewrapBackend, stack: ExitStack) -> None:
        self._python = str(backend.vetting()[0])
        with Executor(backend=backend) as cold:
            checked(cold.execute_code("print(1)"))
            self._pace = 2 * one_execution(cold).wall
        self._executor = stack.enter_context(Executor(backend=backend, warm=4))
        checked(self._executor.execute_code("print(1)"))

    def floor(self) -> Sample:
        """The sandbox's interpreter, doing nothing."""
        return plain_python(self._python)

    def measure(self) -> Sample:
        """The 95th percentile. Raises LimbeckError when one started cold."""
        wait_until_warm(self._executor, 4)
        before = self._executor.statistics()
        samples = []
        for _ in range(HITS):
            samples.append(one_execution(self._executor))
            time.sleep(max(self._pace - samples[-1].wall, 0))
        after = self._executor.statistics()
        if before is None or after is None or after.misses > before.misses:
            raise LimbeckError("an execution found no sandbox warm at half the refill's rate")
        cpu = sum(sample.cpu for sample in samples) / HITS
        return Sample(quantiles([sample.wall for sample in samples], n=20)[-1], cpu)


class SustainedUse(Measure):
    """Single-use sandboxes, as many as the machine makes: the time of one."""

    title = "sustained single use"
    section = "pool"
    unit = "ms"
    goal = 1.0

    def __init__(self, backend: BubblewrapBackend, stack: ExitStack) -> None:
        python, lib = backend.vetting()
        self._python, self._lib = str(python), str(lib)
        self._executor = stack.enter_context(Executor(backend=backend, warm=CORES))
        checked(self._executor.execute_code("print(1)"))

    def floor(self) -> Sample:
        """The worker's imports in plain processes, one a core at a time, without any sandbox."""
        began = time.perf_counter()
        with ThreadPoolExecutor(CORES) as threads:
            jobs = [threads.submit(load_worker, self._python, self._lib) for _ in range(SUSTAINED)]
        cpu = sum(job.result().cpu for job in jobs) / SUSTAINED
        return Sample((time.perf_counter() - began) / SUSTAINED, cpu)

    def measure(self) -> Sample:
        """As many executions, one a core at a time."""
        wait_until_warm(self._executor, CORES)
        began, cpu = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(CORES) as threads:
            jobs = [
                threads.submit(self._executor.execute_code, "print(1)") for _ in range(SUSTAINED)
            ]
        used = sum(checked(job.result()).usage.cpu for job in jobs)
        wall = time.perf_counter() - began
        return Sample(wall / SUSTAINED, (time.process_time() - cpu + used) / SUSTAINED)


class WarmMemory(Measure):
    """Memory of a sandbox that waits: its processes' own share of what they map."""

    title = "memory of a warm sandbox"
    section = "pool"
    unit = "MB"
    goal = 2.0

    def __init__(self, backend: BubblewrapBackend, stack: ExitStack) -> None:
        self._python = str(backend.vetting()[0])
        self._executor = stack.enter_context(Executor(backend=backend, warm=WAITING))
        checked(self._executor.execute_code("print(1)"))

    def floor(self) -> Sample:
        """The same number of interpreters that do nothing, one's share."""
        return Sample(proportional_bytes(self._python, WAITING), 0.0)

    def measure(self) -> Sample:
        """One's share. Raises LimbeckError where the processes cannot be told apart."""
        wait_until_warm(self._executor, WAITING)
        time.sleep(0.2)
        total = sum(map(own_share, _descendants(os.getpid())))
        if not total:
            raise LimbeckError("the memory of sandboxes cannot be read here")
        return Sample(total / WAITING, 0.0)


def _descendants(pid: int) -> list[int]:
    """Processes below this one that live in a namespace of their own: the sandboxes'."""
    here = os.readlink("/proc/self/ns/pid")
    found, ready = [], [pid]
    while ready:
        for child in _children(ready.pop()):
            ready.append(child)
            try:
                if os.readlink(f"/proc/{child}/ns/pid") != here:
                    found.append(child)
            except OSError:
                continue
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, task.read_text().split())
    return found
