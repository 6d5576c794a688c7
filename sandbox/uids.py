"""Uids for sandboxes: when root, one for each that lives, so that none can touch another's."""

from __future__ import annotations

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from ..runtime.errors import ConfigurationError, SandboxUnavailable
from .backend import Leftover
from .folders import base_folder

BASE = 1_900_000_000
"""First uid of the range; far above what distributions and directories hand out."""

COUNT = 4_096

LEAST = 100_000
"""No range begins below: distributions and directories hand those out."""


@dataclass(slots=True)
class UidLease:
    """A uid that no other sandbox has, in any process, until it is released."""

    uid: int
    _descriptor: int

    def release(self) -> None:
        """Give the uid back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def checked_base(base: int) -> int:
    """The first uid of a range. Raises ConfigurationError."""
    if isinstance(base, bool) or not isinstance(base, int) or not LEAST <= base < 2**31 - COUNT:
        raise ConfigurationError(
            "uid_base", f"{base!r} is not a whole number from {LEAST:,} to {2**31 - COUNT - 1:,}"
        )
    return base


def lease_uid(base: int = BASE) -> UidLease:
    """A free uid, or the caller's own when it is not root. Raises SandboxUnavailable."""
    if os.geteuid() != 0:
        return UidLease(os.geteuid(), -1)
    folder = base_folder() / "uids"
    folder.mkdir(mode=0o700, exist_ok=True)
    for number in range(COUNT):
        # Named by the uid, so that ranges which overlap share their locks.
        path = folder / str(base + number - BASE)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # The lock goes with the process: a crash gives its uids back.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        # SAFETY: a lock on a file that was reaped meanwhile keeps nobody out.
        if not _is_there(path, descriptor):
            os.close(descriptor)
            return lease_uid(base)
        return UidLease(base + number, descriptor)
    raise SandboxUnavailable({"sandbox": f"all {COUNT} uids from {base} on are in use"})


def reap() -> list[Leftover]:
    """Remove the lock files that nobody holds."""
    found = []
    for path in sorted(base_folder().glob("uids/*")):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
                found.append(Leftover("uid lock", path.name))
            finally:
                os.close(descriptor)
    return found


def _is_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
