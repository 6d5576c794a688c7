"""The seam of the sandboxes: one small interface, every backend behind it.

A sandbox goes one way:

    Backend.create -> CREATED -> Sandbox.start -> STARTED -> wait / kill -> ENDED -> close -> CLOSED

`create` reserves what must exist before the first process: a uid, a host folder, limits. The
executor then opens the bridge's listener in `folder.bridge` (owned by `uid`) and calls `start`.
All methods are called on limbeck's one loop.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from ..runtime.errors import ConfigurationError

MIB = 1024 * 1024


_FRACTIONS = frozenset({"wall", "cpu", "cpu_seconds"})
_LEAST = {"memory": 48 * MIB, "pids": 24}
"""The worker with its channel needs about 35 MiB and a dozen threads before a script begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the kernel, or our watch, enforces on one execution."""

    wall: float = 60.0
    """Seconds from the job's start to the kill; waiting for a person's approval does not count."""
    cpu: float = 1.0
    """Cores at a time."""
    cpu_seconds: float | None = None
    """CPU time in all, by the host's accounting. None: wall x cores + 5, so that wall comes first.
    """
    memory: int = 256 * MIB
    """Bytes, all processes and tmpfs together."""
    pids: int = 96
    """Processes and threads."""
    tmp: int = 32 * MIB
    """Bytes of /tmp."""
    workspace: int = 64 * MIB
    """Bytes of /workspace."""
    output_kept: int = 64 * 1024
    """Bytes of the printout that are kept, head and tail."""
    output_max: int = 64 * MIB
    """Bytes printed before the sandbox is killed."""
    script: int = 256 * 1024
    """Bytes of the script's source."""
    inputs: int = 1024 * MIB
    """Bytes of the files that are copied into /data for one execution."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name == "cpu_seconds" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigurationError(f"limits.{item.name}", f"{value!r} is not a number")
            if not math.isfinite(value) or value <= 0:
                raise ConfigurationError(
                    f"limits.{item.name}", f"{value!r} must be a finite number above 0"
                )
            if item.name not in _FRACTIONS and not isinstance(value, int):
                raise ConfigurationError(f"limits.{item.name}", f"{value!r} must be a whole number")
            if value < _LEAST.get(item.name, 0):
                raise ConfigurationError(
                    f"limits.{item.name}",
                    f"{value:,} is too little for the sandbox itself",
                    f"write at least {_LEAST[item.name]:,}.",
                )

    @property
    def cpu_budget(self) -> float:
        """Seconds of CPU after which the execution ends with status cpu."""
        return self.cpu_seconds if self.cpu_seconds is not None else self.wall * self.cpu + 5

    @property
    def held(self) -> tuple[float, ...]:
        """The limits that are fixed when a sandbox is made; the host holds the others."""
        return (self.memory, self.cpu, self.pids, self.tmp, self.workspace)

    def with_values(self, values: Mapping[str, Any]) -> Limits:
        """A copy with some limits replaced; an unknown key is a ConfigurationError.

        The key `profile` names a set of limits that the others are put over.
        """
        if "profile" in values:
            profile = _profile(values["profile"])
            rest = {key: value for key, value in values.items() if key != "profile"}
            return self.with_values({**profile, **rest})
        known = [item.name for item in fields(self)]
        for key in values:
            if key not in known:
                raise ConfigurationError(
                    f"limits.{key}", "no such limit", f"the limits are: {', '.join(known)}."
                )
        return replace(self, **values)


PROFILES: dict[str, dict[str, int]] = {"data": {"memory": 1024 * MIB, "pids": 128}}
"""Sets of limits by name: `data` is for numeric packages."""


def _profile(name: Any) -> dict[str, int]:
    if name not in PROFILES:
        raise ConfigurationError(
            "limits.profile", f"there is no profile {name!r}", f"there is: {', '.join(PROFILES)}."
        )
    return PROFILES[name]


LONGEST_LIFE = 24 * 3600.0
"""Seconds that a sandbox may serve a session, at most; RLIMIT_CPU's hard limit comes from it."""


class ExitCause(StrEnum):
    """Why process 1 of a sandbox is gone."""

    EXITED = "exited"
    """The worker ended by itself: exit_code or signal says how."""
    KILLED = "killed"
    """By `Sandbox.kill`."""
    MEMORY = "memory"
    """The memory limit: the kernel's or the watcher's kill."""
    CPU = "cpu"
    """The host's accounting passed cpu_seconds, or RLIMIT_CPU struck."""
    DEADLINE = "deadline"
    """Process 1's own clock, a second after the host should have killed it."""
    LOST = "lost"
    """Gone without a report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a sandbox has used so far."""

    cpu_seconds: float = 0.0
    memory_peak: int | None = None
    """Bytes; None where nobody measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitReport:
    """How a sandbox ended. Nothing in it can be forged from inside."""

    cause: ExitCause
    exit_code: int | None = None
    """The worker's exit code, None when a signal ended it or nobody knows."""
    signal: int | None = None
    """The signal that ended the worker."""
    usage: Usage = field(default_factory=Usage)
    diagnosis: str = ""
    """What the launcher or the runtime wrote to stderr before the worker was up (bounded)."""


@dataclass(frozen=True, slots=True)
class HostFolder:
    """A sandbox's folder on the host; the sandbox sees its parts, read-only."""

    root: Path

    @property
    def bridge(self) -> Path:
        """Seen as /bridge: the two sockets."""
        return self.root / "bridge"

    @property
    def tools(self) -> Path:
        """Seen as /tools: the stub sources."""
        return self.root / "tools"

    @property
    def data(self) -> Path:
        """Seen as /data: input files."""
        return self.root / "data"


class Sandbox(Protocol):
    """One sandbox: serves one session and then dies."""

    @property
    def id(self) -> str:
        """Unique on this host, fit for a file name."""

    @property
    def uid(self) -> int:
        """The uid that the sandbox's processes have on the host; owns the sockets."""

    @property
    def folder(self) -> HostFolder:
        """Exists from `create` to `close`."""

    @property
    def memory_limit(self) -> str:
        """How memory is limited: "cgroup v2", "cgroup v1", "watcher", or "none"."""

    @property
    def image(self) -> str | None:
        """The image it was made from; None where there is none."""

    async def start(self) -> None:
        """Start process 1. Returns when the launcher runs, not when the worker is ready."""

    def begin(self, wall: float, cpu_budget: float) -> None:
        """Tell process 1's clock that a job of `wall` seconds begins.

        `cpu_budget`: seconds of CPU from now; at most that of the limits it was made with.
        """

    def pause(self) -> None:
        """The wall clock stands still: a person is asked. The script's threads go on."""

    def resume(self) -> None:
        """The wall clock goes on."""

    async def freeze(self) -> int:
        """Stop everything inside but process 1; how many threads stand still.

        Raises SandboxUnavailable when it cannot be had; the sandbox is dead or dies then.
        """

    def so_far(self) -> ExitReport:
        """How it stands between two jobs: usage, and cause MEMORY when that limit was hit since
        the last time."""

    async def thaw(self) -> None:
        """Let everything go on. Raises SandboxUnavailable when the sandbox is dead."""

    def usage(self) -> Usage:
        """What has been used so far; cheap enough for four times a second."""

    async def wait(self) -> ExitReport:
        """Wait until no process of the sandbox lives; any number of callers may."""

    async def kill(self) -> ExitReport:
        """SIGKILL everything inside and wait for it. Idempotent."""

    async def close(self) -> None:
        """Kill if needed, then release uid, folder and cgroup. Idempotent."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something that a process which is dead now has left on this host."""

    kind: str
    """process, cgroup, folder, container, uid lock, runtime, image."""
    name: str
    removed: bool = True
    """False when it is still there after the attempt."""


class Backend(Protocol):
    """A way to make sandboxes."""

    @property
    def name(self) -> str:
        """As in configuration and results: "bubblewrap", "docker"."""

    async def check(self) -> str | None:
        """None if a sandbox can start here, else what is wrong and how to mend it.

        Runs the real thing (a sandbox that imports the runtime) once and remembers the answer.
        """

    def vetting(self) -> tuple[Path, Path] | None:
        """Interpreter and library folder for the vetting child, both readable by a dropped uid.

        The folder is what sys.path needs to import limbeck.runtime. Called after `check`. None:
        vet in this process, for a backend that has no walls anyway.
        """

    def shape(self, limits: Limits) -> Hashable:
        """What a sandbox with these limits is made of and cannot change: the warm pool's key."""

    async def create(self, limits: Limits) -> Sandbox:
        """Reserve uid, folder and limits. Raises SandboxUnavailable."""

    async def reap(self) -> list[Leftover]:
        """Remove what crashed processes left; what a living one owns stays.

        Needs no `check`, and is part of it. Raises SandboxUnavailable when nobody can be asked.
        """
