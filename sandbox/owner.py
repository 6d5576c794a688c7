"""Who made a folder, a cgroup or a container: a process's number, its start time, so that a reused
number does not pass for its owner, and the namespace in which the number counts."""

from __future__ import annotations

import os
from pathlib import Path

_FIRST = 0xEFFFFFFC
"""The kernel's fixed number for the first namespace of processes."""


def this_process() -> str:
    """The owner that this process writes down."""
    pid = os.getpid()
    return f"{pid} {_start_time(pid)} {_namespace()}".strip()


def is_alive(owner: str) -> bool:
    """Whether the process that wrote this may still live; what cannot be read has no owner.

    SAFETY: one in another namespace of processes (two containers that share a docker daemon, or
    /run) cannot be seen from here, and counts as alive.
    """
    words = owner.split()
    if len(words) not in (2, 3) or not words[0].isdigit():
        return False
    pid, started, namespace = words[0], words[1], "".join(words[2:])
    return namespace != _namespace() or _start_time(int(pid)) == started


def _namespace() -> str:
    """Number of the namespace of processes; empty for the machine's first one."""
    number = os.stat("/proc/self/ns/pid").st_ino
    return "" if number == _FIRST else str(number)


def _start_time(pid: int) -> str:
    """Clock ticks since boot, field 22 of /proc/PID/stat; empty when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # The program's name, in parentheses, may hold anything.
    return text.rpartition(")")[2].split()[19]
