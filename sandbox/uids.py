"""Uids for sandboxes: when root, one for each that lives, so that none can touch another's."""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass

from ..runtime.errors import SandboxUnavailable
from .folders import base_folder

BASE = 1_900_000_000
"""First uid of the range; far above what distributions and directories hand out."""

COUNT = 4_096


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


def lease_uid() -> UidLease:
    """A free uid, or the caller's own when it is not root. Raises SandboxUnavailable."""
    if os.geteuid() != 0:
        return UidLease(os.geteuid(), -1)
    folder = base_folder() / "uids"
    folder.mkdir(mode=0o700, exist_ok=True)
    for number in range(COUNT):
        path = folder / str(number)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # The lock goes with the process: a crash gives its uids back.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        return UidLease(BASE + number, descriptor)
    raise SandboxUnavailable({"bubblewrap": f"all {COUNT} uids of the range are in use"})
