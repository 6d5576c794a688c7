"""Who still uses a runtime folder: each process holds a shared lock on it for as long as it lives.

The lock is on the folder itself, so that it goes with the process, however it ends. A reaper takes
it alone, without waiting, or leaves the folder where it is.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from .backend import Leftover

KEPT_SECONDS = 24 * 3600.0
"""An unused folder of another version stays for a day: two installations may take turns."""

MAKING_SECONDS = 3600.0
"""What is being copied is younger than this, whether or not its maker holds it yet."""

MAKING = "new-"
"""Begins the names of folders that are being made, or removed."""

_VERSION = re.compile(r"[0-9a-f]{24}")

_held: dict[Path, int] = {}
_lock = threading.Lock()


def hold(root: Path) -> bool:
    """Hold a folder until this process ends; False when it is not, or no longer, there."""
    with _lock:
        descriptor = _held.get(root)
        if descriptor is not None and _is_at(root, descriptor):
            return True
        try:
            fresh = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return False
        fcntl.flock(fresh, fcntl.LOCK_SH)
        # SAFETY: a reaper that was there first may have taken the folder away meanwhile.
        if not _is_at(root, fresh):
            os.close(fresh)
            return False
        os.utime(fresh)
        if descriptor is not None:
            os.close(descriptor)
        _held[root] = fresh
        return True


def reap(base: Path, current: Path) -> list[Leftover]:
    """Remove the runtime folders that nobody holds and nobody has used for a day."""
    now = time.time()
    found = []
    for path in sorted(_unused(base, now)):
        if path != current and _remove(path):
            found.append(Leftover("runtime", path.name, not path.exists()))
    return found


def _unused(base: Path, now: float) -> Iterator[Path]:
    for path in base.iterdir():
        making = path.name.startswith(MAKING)
        if not (making or _VERSION.fullmatch(path.name)) or path.is_symlink():
            continue
        try:
            age = now - path.stat().st_mtime
        except OSError:
            continue
        if age > (MAKING_SECONDS if making else KEPT_SECONDS):
            yield path


def _remove(path: Path) -> bool:
    """Whether it was nobody's."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Under another name first: whoever looks for it finds all of it or nothing.
        gone = path.with_name(f"{MAKING}gone-{os.getpid()}-{path.name[-24:]}")
        path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False
