"""Who made a folder or a cgroup: a process's number and start time, so that a reused number does
not pass for its owner."""

from __future__ import annotations

import os
from pathlib import Path


def this_process() -> str:
    """The owner that this process writes down."""
    pid = os.getpid()
    return f"{pid} {_start_time(pid)}"


def is_alive(owner: str) -> bool:
    """Whether the process that wrote this still lives; what cannot be read has no owner."""
    pid, _, started = owner.strip().partition(" ")
    return pid.isdigit() and bool(started) and _start_time(int(pid)) == started


def _start_time(pid: int) -> str:
    """Clock ticks since boot, field 22 of /proc/PID/stat; empty when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # The program's name, in parentheses, may hold anything.
    return text.rpartition(")")[2].split()[19]
