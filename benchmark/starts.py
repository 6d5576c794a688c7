"""Starts: from a script's text to its result, cold and warm, on each backend."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack

from ..runtime.errors import LimbeckError
from ..sandbox.bubblewrap import BubblewrapBackend
from ..sandbox.docker import DockerBackend
from ..sandbox.executor import Executor
from .floors import BareContainer, plain_python
from .measures import Measure, checked
from .rows import Sample

POOL_SECONDS = 30.0
"""How long the pool may take to have a sandbox warm."""


class ColdStart(Measure):
    """With a new sandbox."""

    title = "cold start, bubblewrap"
    section = "start"
    unit = "ms"
    goal = 1.8

    def __init__(self, backend: BubblewrapBackend, stack: ExitStack) -> None:
        self._python = str(backend.vetting()[0])
        self._executor = stack.enter_context(Executor(backend=backend))
        # The vetting child starts with the first script and stays.
        checked(self._executor.execute_code("print(1)"))

    def floor(self) -> Sample:
        """The sandbox's interpreter, doing nothing."""
        return plain_python(self._python)

    def measure(self) -> Sample:
        """The whole of one execution; the CPU is the host's and the sandbox's."""
        return one_execution(self._executor)


class WarmStart(ColdStart):
    """With a sandbox that waits already."""

    title = "warm start, bubblewrap"
    section = "pool"
    goal = 0.5

    def __init__(self, backend: BubblewrapBackend, stack: ExitStack) -> None:
        self._python = str(backend.vetting()[0])
        self._executor = stack.enter_context(Executor(backend=backend, warm=1))
        checked(self._executor.execute_code("print(1)"))

    def measure(self) -> Sample:
        """One execution that finds its sandbox warm; waiting for the refill is not counted."""
        wait_until_warm(self._executor, 1)
        sample = super().measure()
        # The refill works on the other core meanwhile; it is let end before the next floor.
        time.sleep(0.3)
        return sample


class DockerColdStart(Measure):
    """With a new container."""

    title = "cold start, docker"
    section = "docker"
    unit = "ms"
    goal = 1.15

    def __init__(self, backend: BubblewrapBackend, stack: ExitStack) -> None:
        docker = _docker()
        self._bare = BareContainer(docker)
        self._executor = stack.enter_context(Executor(backend=docker))
        checked(self._executor.execute_code("print(1)"))

    def floor(self) -> Sample:
        """Create, start, wait and remove a container of the same image, through the same API."""
        return self._bare.sample()

    def measure(self) -> Sample:
        """The whole of one execution."""
        return one_execution(self._executor)


class DockerWarmStart(WarmStart):
    """With a container that waits already."""

    title = "warm start, docker"
    section = "docker"

    def __init__(self, backend: BubblewrapBackend, stack: ExitStack) -> None:
        self._python = str(backend.vetting()[0])
        self._executor = stack.enter_context(Executor(backend=_docker(), warm=1))
        checked(self._executor.execute_code("print(1)"))


def one_execution(executor: Executor) -> Sample:
    """The whole of one small execution."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = checked(executor.execute_code("print(1)"))
    cpu = time.process_time() - cpu + result.usage.cpu
    return Sample(time.perf_counter() - wall, cpu)


def wait_until_warm(executor: Executor, count: int) -> None:
    """Wait for the pool. Raises LimbeckError when it takes too long."""
    deadline = time.monotonic() + POOL_SECONDS
    while time.monotonic() < deadline:
        statistics = executor.statistics()
        if statistics is not None and statistics.warm >= count:
            return
        time.sleep(0.02)
    raise LimbeckError(f"the pool has no {count} warm sandboxes after {POOL_SECONDS:g} s")


def _docker() -> DockerBackend:
    docker = DockerBackend()
    problem = asyncio.run(docker.check())
    if problem is not None:
        raise LimbeckError(problem)
    return docker
