"""Best effort where there is no cgroup: memory and CPU of a process tree, read from /proc.

Every process of the sandbox is a descendant of its process 1, which adopts orphans. Cheap while the
resident sets are small; only near the limit shared pages are told apart.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from .backend import Usage

INTERVAL = 0.05
"""Seconds between two looks."""

_TICKS = os.sysconf("SC_CLK_TCK")
_NEAR = 0.8
_TMPFS = ("tmp", "workspace", "dev/shm")
_FILE_BYTES = 1024
"""Kernel memory of one file on a tmpfs, however empty: bwrap sets no limit on their number."""
_SOCKET_BYTES = 212_992
"""What one socket can hold unread, by the kernel's default; nobody inside can raise it."""


class ProcessTree:
    """What the processes below one process 1 use."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._peak = 0
        self._cpu = 0.0

    def usage(self) -> Usage:
        """CPU of all that lives and has been reaped, and the largest memory seen."""
        # The dead have no CPU time any more: what was seen last counts.
        self._cpu = max(self._cpu, sum(map(_cpu_ticks, self._pids())) / _TICKS)
        return Usage(cpu_seconds=self._cpu, memory_peak=self._peak or None)

    def memory(self, limit: int) -> int:
        """Bytes in use; exact only near `limit`."""
        pids = list(self._pids())
        kernels = _tmpfs_bytes(pids) + _socket_bytes(pids)
        total = sum(map(_resident, pids)) + kernels
        if total > limit * _NEAR:
            total = sum(map(_proportional, pids)) + kernels
        self._peak = max(self._peak, total)
        self._cpu = max(self._cpu, sum(map(_cpu_ticks, pids)) / _TICKS)
        return total

    def _pids(self) -> Iterator[int]:
        ready = [self._root]
        while ready:
            pid = ready.pop()
            yield pid
            ready += _children(pid)


@contextlib.contextmanager
def pinned(count: int, first: int) -> Iterator[None]:
    """Let what this thread starts meanwhile run on `count` of its cores, from the `first` on.

    A script cannot ask for more cores: the filter of system calls refuses that.
    """
    allowed = sorted(os.sched_getaffinity(0))
    try:
        os.sched_setaffinity(0, {allowed[(first + step) % len(allowed)] for step in range(count)})
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _children(pid: int) -> list[int]:
    """Of every thread. SAFETY: a thread that ends during the look must not hide the others'."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def _cpu_ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15]))  # user, system, and both of reaped children


def _resident(pid: int) -> int:
    return _kilobytes(f"/proc/{pid}/status", "VmRSS:", "VmPTE:") * 1024


def _proportional(pid: int) -> int:
    proportional = _kilobytes(f"/proc/{pid}/smaps_rollup", "Pss:") * 1024
    if proportional == 0:
        return _resident(pid)
    # Page tables are no part of it, and are never shared.
    return proportional + _kilobytes(f"/proc/{pid}/status", "VmPTE:") * 1024


def _kilobytes(path: str, *names: str) -> int:
    """The sum of some lines of the form `VmRSS:  1234 kB`."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(names))


def _socket_bytes(pids: list[int]) -> int:
    """What all unix sockets of the sandbox can hold: the kernel tells their number alone."""
    for pid in pids:
        with contextlib.suppress(OSError):
            return (Path(f"/proc/{pid}/net/unix").read_bytes().count(b"\n") - 1) * _SOCKET_BYTES
    return 0


def _tmpfs_bytes(pids: list[int]) -> int:
    """What the sandbox's tmpfs hold, empty files too; read through any process that lets us."""
    for pid in reversed(pids):
        try:
            used = [os.statvfs(f"/proc/{pid}/root/{name}") for name in _TMPFS]
        except OSError:
            continue
        files = sum(one.f_files - one.f_ffree for one in used)
        blocks = sum((one.f_blocks - one.f_bfree) * one.f_frsize for one in used)
        return blocks + files * _FILE_BYTES
    return 0
