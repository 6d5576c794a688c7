"""How the embedded backend limits memory, processes and CPU here: tried, not assumed."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from ...sandbox import cgroup
from ...sandbox.backend import Limits
from .finding import Finding, Mark

_ROOT = Path("/sys/fs/cgroup")


def cgroups(root: Path = _ROOT, own: Path = Path("/proc/self/cgroup")) -> Finding:
    """Make a cgroup with the default limits, read them back, remove it."""
    mode = _mode(root)
    hierarchies = cgroup.find_hierarchies(root, own)
    if hierarchies is None:
        return _watched(mode, "no cgroup can be made here")
    try:
        _try(hierarchies)
    except (OSError, ValueError) as error:
        return _watched(mode, str(error))
    return Finding(
        name="cgroup",
        mark=Mark.OK,
        text=f"{mode}, writable; limits were set and read back: the kernel holds them",
        values={"mode": mode, "writable": True, "limited_by": hierarchies.kind},
    )


def _try(hierarchies: cgroup.Hierarchies) -> None:
    one = cgroup.Cgroup(hierarchies, secrets.token_hex(4))
    try:
        one.create(Limits())
    finally:
        one.remove()


def _watched(mode: str, problem: str) -> Finding:
    mend = (
        "mount the cgroup file systems writable."
        if os.geteuid() == 0
        else "delegate a subtree of cgroup v2 with memory, pids and cpu to this user "
        "(systemd-run --user --scope -p Delegate=yes ...), or use the docker backend."
    )
    return Finding(
        name="cgroup",
        mark=Mark.WARN,
        text=f"{mode}; {problem}: bubblewrap's memory is watched, killed within about 0.1 s",
        hint=mend,
        values={"mode": mode, "writable": False, "limited_by": "watcher"},
    )


def _mode(root: Path) -> str:
    """As systemd names the layouts."""
    if (root / "cgroup.controllers").exists():
        return "v2"
    if (root / "unified/cgroup.procs").exists():
        return "v1 (hybrid)"
    return "v1" if (root / "memory").exists() else "none"
