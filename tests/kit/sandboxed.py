"""Executors on real sandboxes, and what must be the same before and after an execution."""

import asyncio
import atexit
import contextlib
import gc
import os
import socket
import stat
import tempfile
import time
from collections import Counter
from pathlib import Path

import grpc.aio
import pytest

from limbeck import Executor, Toolset
from limbeck.sandbox.backend import Backend
from limbeck.sandbox.bubblewrap import BubblewrapBackend
from limbeck.sandbox.cgroup import find_hierarchies
from limbeck.sandbox.docker import DockerBackend
from limbeck.sandbox.folders import base_folder
from limbeck.sandbox.loop import own_loop
from limbeck.sandbox.result import ExecutionResult

# Long printouts of tests go where nobody keeps them.
_STATE = tempfile.TemporaryDirectory(prefix="limbeck-state-", ignore_cleanup_errors=True)
os.environ["XDG_STATE_HOME"] = _STATE.name

BACKEND = BubblewrapBackend()
WATCHED = BubblewrapBackend(cgroups=False)
DOCKER = DockerBackend()
HIERARCHIES = find_hierarchies()
BACKENDS = {"bubblewrap": BACKEND, "watcher": WATCHED, "docker": DOCKER}


NO_DOCKER = None if os.environ.get("CI") else asyncio.run(DOCKER.check())
"""On a developer's machine docker may be missing; in CI that is a failure, not a skip."""

needs_docker = pytest.mark.skipif(NO_DOCKER is not None, reason=str(NO_DOCKER))


def _docker_parameter():
    return pytest.param("docker", marks=needs_docker)


ON_BOTH = pytest.mark.parametrize("where", ["bubblewrap", _docker_parameter()])
ON_ALL = pytest.mark.parametrize("where", ["bubblewrap", "watcher", _docker_parameter()])


def execute(
    script: str,
    *toolsets: Toolset,
    gate: str = "off",
    backend: Backend = BACKEND,
    on_output=None,
    data=(),
    **options,
) -> ExecutionResult:
    """Run one script in a real sandbox, the gate off unless a test is about it."""
    with Executor(toolsets, gate=gate, backend=backend, **options) as executor:
        return executor.execute_code(script, on_output=on_output, data=data)


WARM = execute("1")
"""The loops, the backend's trial and grpc's own descriptors are there from now on."""


async def _server() -> grpc.aio.Server:
    return grpc.aio.server()


# grpc's poller comes with the first server and goes, some time, after the last: one stays.
_POLLING = [own_loop().submit(_server()).result()]
# A server that is freed after its module's globals are gone makes grpc report a bare failure.
atexit.register(_POLLING.clear)


def traces() -> Counter[str]:
    """What an execution may leave nothing of: folders, cgroups, processes, descriptors."""
    gc.collect()  # grpc keeps a pair of sockets as long as one of its servers is not collected
    return Counter(
        [
            *(f"folder {name}" for name in _folders(own=True)),
            *(f"cgroup {path}" for path in _cgroups() if path.name not in _folders(own=False)),
            *(f"process {name}" for name in _descendants(os.getpid())),
            *(f"descriptor {name}" for name in _descriptors()),
        ]
    )


def left_since(before: Counter[str]) -> Counter[str]:
    """What is there now and was not before; grpc closes its sockets a moment later."""
    for _ in range(100):
        left = traces() - before
        if not left:
            break
        time.sleep(0.05)
    return left


def _folders(*, own: bool) -> list[str]:
    """Ids of this process's sandboxes, or of other processes' that run at the same time."""
    found = []
    for path in base_folder().iterdir():
        with contextlib.suppress(OSError):
            if ((path / "owner").read_text().split()[0] == str(os.getpid())) is own:
                found.append(path.name)
    return found


def _cgroups() -> list[Path]:
    parents = set(HIERARCHIES.parents.values()) if HIERARCHIES is not None else set()
    return [path for one in parents if one.is_dir() for path in one.iterdir() if path.is_dir()]


def _descendants(pid: int) -> list[str]:
    """Command lines of living child processes."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                found.append(Path(f"/proc/{child}/cmdline").read_bytes().decode())
    return found


def _descriptors() -> list[str]:
    """What this process has open, without the numbers of sockets and pipes.

    The pollers of grpc's own threads are left aside: they come and stay; so are the docker SDK's
    idle connections, which it bounds by itself (one that nobody closed is a ResourceWarning).
    """
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            target = os.readlink(f"/proc/self/fd/{name}")
            if "[event" not in target and not _is_of_docker_sdk(int(name)):
                found.append(target.partition(":[")[0] if "pidfd" not in target else target)
    return found


def _is_of_docker_sdk(descriptor: int) -> bool:
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return False
    with socket.socket(fileno=os.dup(descriptor)) as one:
        try:
            return "docker" in str(one.getpeername())
        except OSError:
            return False
