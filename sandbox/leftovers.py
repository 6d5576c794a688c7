"""What crashed processes left on this host: processes, cgroups, folders, in this order.

A folder names its owner (process number and start time), and everything else of a sandbox has the
folder's name; so the folder goes last, and stays as long as something could not be removed.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Collection, Iterator
from pathlib import Path

from . import cgroup
from .backend import HostFolder, Leftover
from .folders import base_folder, leftovers, remove_folder

_BRIDGE = re.compile(r" /\S*?([0-9a-f]{8})/bridge /bridge ")
"""In a process's mountinfo: the sandbox's own view of its host folder."""


def reap_host() -> list[Leftover]:
    """Kill and remove whatever has the name of a sandbox whose owner is dead."""
    dead = leftovers()
    if not dead:
        return []
    found = _kill_processes(dead)
    hierarchies = cgroup.find_hierarchies()
    if hierarchies is not None:
        found += cgroup.reap(hierarchies, dead)
    held = {one.name.split()[-1] for one in found if not one.removed}
    return [*found, *(_remove_folder(name) for name in dead if name not in held)]


def _remove_folder(name: str) -> Leftover:
    folder = HostFolder(base_folder() / name)
    remove_folder(folder)
    return Leftover("folder", name, not folder.root.exists())


def _kill_processes(dead: Collection[str]) -> list[Leftover]:
    """A sandbox dies with its maker; should one live on, its mounts tell whose it is."""
    found = []
    for pid, name in _sandboxed_processes():
        if name in dead:
            found.append(Leftover("process", f"{pid} of {name}", _kill(pid, name)))
    return found


def _sandboxed_processes() -> Iterator[tuple[int, str]]:
    """Every process that this user may look into and that sees a sandbox's folder as /bridge."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            name = _sandbox_of(int(entry))
            if name is not None:
                yield int(entry), name


def _sandbox_of(pid: int) -> str | None:
    try:
        match = _BRIDGE.search(Path(f"/proc/{pid}/mountinfo").read_text("utf-8", "replace"))
    except OSError:
        return None
    return match.group(1) if match is not None else None


def _kill(pid: int, name: str) -> bool:
    """SIGKILL, by a descriptor, so that a number that was given to another process is no danger."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        if _sandbox_of(pid) == name:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    finally:
        os.close(descriptor)
    return True
