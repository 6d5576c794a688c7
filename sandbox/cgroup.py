"""Hard limits: a cgroup a sandbox, version 1 (as root) or 2 (root, or a delegated subtree).

Each limit is read back after it was written: a limit that is silently not there is worse than none.
The launcher joins before it becomes anything else, so that there is no race.

SAFETY: sandboxes lie below the caller's own cgroup, so that its limits hold for them too. With
version 2 that cgroup often cannot hold others (it has processes); then they lie above it, but only
past levels that limit nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .backend import Leftover, Limits, Usage

NAME = "limbeck"
"""The parent of our cgroups, in each hierarchy; there only while it has some."""

REMOVE_TRIES = 200
REMOVE_PAUSE = 0.005
"""Seconds; the dead leave their cgroup a moment after their end."""

_PERIOD = 100_000
_V1_CONTROLLERS = ("memory", "pids", "cpu", "cpuacct")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchies:
    """Where cgroups can be made here."""

    version: int
    parents: Mapping[str, Path]
    """Controller to the folder that holds our cgroups; one key, "unified", for version 2."""

    @property
    def kind(self) -> str:
        """ "cgroup v1" or "cgroup v2"."""
        return f"cgroup v{self.version}"


class Cgroup:
    """The cgroup of one sandbox, in each hierarchy that limits it."""

    def __init__(self, hierarchies: Hierarchies, name: str) -> None:
        self._hierarchies = hierarchies
        folders = {key: parent / name for key, parent in hierarchies.parents.items()}
        self._folders = folders

    @property
    def kind(self) -> str:
        """ "cgroup v1" or "cgroup v2"."""
        return self._hierarchies.kind

    def create(self, limits: Limits) -> None:
        """Make it and set its limits. Raises OSError, or ValueError when a limit does not hold."""
        for folder in set(self._folders.values()):
            _make(folder, controllers=self._hierarchies.version == 2)
        if self._hierarchies.version == 2:
            self._limit_v2(limits)
        else:
            self._limit_v1(limits)

    def procs_files(self) -> list[str]:
        """Where a process writes its number to join."""
        return sorted({str(folder / "cgroup.procs") for folder in self._folders.values()})

    def usage(self) -> Usage:
        """CPU and memory so far, of all that ran in it."""
        if self._hierarchies.version == 2:
            cpu = _pairs(self._folders["unified"] / "cpu.stat").get("usage_usec", 0) / 1e6
            peak = _number(self._folders["unified"] / "memory.peak")
        else:
            cpu = (_number(self._folders["cpuacct"] / "cpuacct.usage") or 0) / 1e9
            peak = _number(self._folders["memory"] / "memory.max_usage_in_bytes")
        return Usage(cpu_seconds=cpu, memory_peak=peak)

    def oom_kills(self) -> int:
        """Processes that the memory limit has killed."""
        if self._hierarchies.version == 2:
            return _pairs(self._folders["unified"] / "memory.events").get("oom_kill", 0)
        return _pairs(self._folders["memory"] / "memory.oom_control").get("oom_kill", 0)

    def kill(self) -> None:
        """SIGKILL whatever is in it, with version 2 at once."""
        if self._hierarchies.version == 2:
            with contextlib.suppress(OSError):  # it is gone, or the kernel older than 5.14
                (self._folders["unified"] / "cgroup.kill").write_text("1")
                return
        for pid in self._members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def remove(self) -> bool:
        """Remove it; whether it is gone. One with a dying process takes a moment: try again."""
        gone = True
        for folder in set(self._folders.values()):
            try:
                folder.rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                gone = False
        _remove_empty(self._hierarchies.parents.values())
        return gone

    def _members(self) -> Iterator[int]:
        for path in self.procs_files():
            with contextlib.suppress(OSError):
                yield from map(int, Path(path).read_text().split())

    def _limit_v1(self, limits: Limits) -> None:
        memory, cpu = self._folders["memory"], self._folders["cpu"]
        _set(memory / "memory.limit_in_bytes", limits.memory)
        if (memory / "memory.memsw.limit_in_bytes").exists():
            _set(memory / "memory.memsw.limit_in_bytes", limits.memory)
        _set(self._folders["pids"] / "pids.max", limits.pids)
        _set(cpu / "cpu.cfs_period_us", _PERIOD)
        try:
            _set(cpu / "cpu.cfs_quota_us", int(limits.cpu * _PERIOD))
        except OSError as error:
            # The caller's own quota is smaller than that, and holds for what is below it.
            if error.errno != errno.EINVAL:
                raise

    def _limit_v2(self, limits: Limits) -> None:
        folder = self._folders["unified"]
        _set(folder / "memory.max", limits.memory)
        if (folder / "memory.swap.max").exists():
            _set(folder / "memory.swap.max", 0)
        _set(folder / "memory.oom.group", 1)
        _set(folder / "pids.max", limits.pids)
        _set(folder / "cpu.max", f"{int(limits.cpu * _PERIOD)} {_PERIOD}")


def find_hierarchies(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> Hierarchies | None:
    """Where this process may make cgroups with limits, or None."""
    if (root / "cgroup.controllers").exists():
        return _find_v2(root, own)
    lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    parents = {}
    for name in _V1_CONTROLLERS:
        path = next((path for _, names, path in lines if name in names.split(",")), "/")
        folder = _own_folder(root / name, path)
        if folder is None or not _can_make(folder / NAME):
            return None
        parents[name] = folder / NAME
    return Hierarchies(version=1, parents=parents)


def _own_folder(mounted: Path, path: str) -> Path | None:
    """The folder of this process's cgroup; inside a container the mount begins further below."""
    parts = [part for part in path.split("/") if part]
    for start in range(len(parts) + 1):
        folder = mounted.joinpath(*parts[start:])
        with contextlib.suppress(OSError):
            if str(os.getpid()) in (folder / "cgroup.procs").read_text().split():
                return folder
    return None


def _can_make(parent: Path, *, controllers: bool = False) -> bool:
    """Whether cgroups can be made below; tried, and taken away again."""
    trial = parent / f"trial-{os.getpid()}"
    try:
        _make(trial, controllers=controllers)
        trial.rmdir()
    except OSError:
        return False
    finally:
        _remove_empty([parent])
    return True


def _make(folder: Path, *, controllers: bool = False) -> None:
    """Make a cgroup and its parent; another sandbox's end may take the parent away meanwhile."""
    for _ in range(REMOVE_TRIES):
        with contextlib.suppress(FileNotFoundError):
            folder.parent.mkdir(exist_ok=True)
            if controllers:
                _hand_down(folder.parent.parent)
                _hand_down(folder.parent)
            folder.mkdir(exist_ok=True)
            return
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))


def _remove_empty(parents: Iterable[Path]) -> None:
    """SAFETY: a cgroup of ours left behind would keep the caller's own from being removed."""
    for parent in set(parents):
        with contextlib.suppress(OSError):
            parent.rmdir()


def reap(hierarchies: Hierarchies, dead: Collection[str]) -> list[Leftover]:
    """Kill and remove the cgroups of dead sandboxes."""
    names = {
        path.name
        for parent in hierarchies.parents.values()
        if parent.is_dir()
        for path in parent.iterdir()
        if path.is_dir() and path.name in dead
    }
    found = []
    for name in sorted(names):
        cgroup = Cgroup(hierarchies, name)
        found.append(Leftover("cgroup", name, _kill_and_remove(cgroup)))
    return found


def _kill_and_remove(cgroup: Cgroup) -> bool:
    for _ in range(REMOVE_TRIES):
        cgroup.kill()
        if cgroup.remove():
            return True
        time.sleep(REMOVE_PAUSE)
    return False


def _find_v2(root: Path, own: Path) -> Hierarchies | None:
    """The lowest level, from this process's own up, that can hold cgroups with limits."""
    lines = own.read_text().splitlines()
    path = next((line[3:] for line in lines if line.startswith("0::")), "/")
    if ".." in path.split("/"):
        return None  # outside of what is mounted here
    level = root / path.strip("/")
    while not _can_make(level / NAME, controllers=True):
        # A level with processes cannot hand controllers down, save for the root.
        if level == root or _limits_something(level):
            return None
        level = level.parent
    return Hierarchies(version=2, parents={"unified": level / NAME})


def _limits_something(level: Path) -> bool:
    for name in ("memory.max", "memory.high", "memory.swap.max", "pids.max", "cpu.max"):
        with contextlib.suppress(OSError):
            if not (level / name).read_text().startswith("max"):
                return True
    return False


def _hand_down(folder: Path) -> None:
    """Give what lies below a cgroup the controllers that we need."""
    there = (folder / "cgroup.subtree_control").read_text().split()
    missing = " ".join(f"+{name}" for name in ("memory", "pids", "cpu") if name not in there)
    if missing:
        (folder / "cgroup.subtree_control").write_text(missing)


def _set(path: Path, value: int | str) -> None:
    path.write_text(str(value))
    got = path.read_text().strip()
    # The kernel rounds memory down to whole pages.
    if got == str(value) or (got.isdigit() and 0 <= int(value) - int(got) < 65_536):
        return
    raise ValueError(f"{path} is {got} although {value} was written")


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _pairs(path: Path) -> dict[str, int]:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    return {key: int(value) for key, _, value in (line.partition(" ") for line in lines)}
