"""Where the sandboxes' files are: room, mount options, what is left of other versions."""

from __future__ import annotations

import os
from pathlib import Path

from ...runtime.errors import ConfigurationError
from ...sandbox.backend import MIB
from ...sandbox.folders import base_folder, leftovers
from ...sandbox.provision import prepare_runtime
from .finding import Finding, Mark

LEAST_FREE = 256 * MIB
"""A runtime folder takes about 40 MiB, an image's build twice that."""


def runtimes() -> Finding:
    """The folder of the copied runtimes; bubblewrap may be started from there."""
    try:
        current = prepare_runtime().root
    except ConfigurationError as error:
        return Finding.failed("runtime folder", str(error))
    base = current.parent
    others = [path for path in base.iterdir() if path.is_dir() and path != current]
    room = os.statvfs(base)
    free = room.f_bavail * room.f_frsize
    size = _size(current)
    noexec = bool(room.f_flag & os.ST_NOEXEC)
    values = {
        "path": str(current),
        "bytes": size,
        "others": len(others),
        "free_bytes": free,
        "noexec": noexec,
    }
    text = f"{current}, {size // MIB} MiB; {len(others)} of other versions"
    if noexec:
        return Finding(
            name="runtime folder",
            mark=Mark.WARN,
            text=f"{text}; the file system is mounted noexec",
            hint=f"mount {base} with exec, or install the system's bubblewrap.",
            values=values,
        )
    if free < LEAST_FREE:
        return Finding(
            name="runtime folder",
            mark=Mark.WARN,
            text=f"{text}; only {free // MIB} MiB are free",
            hint="make room; `limbeck doctor --reap` removes what nobody uses.",
            values=values,
        )
    return Finding(name="runtime folder", text=text, values=values)


def sandboxes() -> Finding:
    """The folder of the living sandboxes' sockets."""
    try:
        base = base_folder()
    except ConfigurationError as error:
        return Finding.failed("sandbox folder", str(error))
    dead = leftovers()
    return Finding(
        name="sandbox folder",
        mark=Mark.WARN if dead else Mark.INFO,
        text=f"{base}" + (f"; {len(dead)} left by crashed processes" if dead else ""),
        hint="limbeck doctor --reap" if dead else "",
        values={"path": str(base), "leftovers": len(dead)},
    )


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
