"""What earlier scripts of a session printed: brought to /data/printouts before the next one runs.

Bounded in number and bytes, the oldest go first. What a lost sandbox had is brought to the next one
as far as it is still known.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from pathlib import Path

from .inputs import KEPT_FREE
from .printout import Printout

FOLDER = "printouts"
"""Under /data."""

MAX_BYTES = 64 * 1024 * 1024
"""Of a session's files together."""

MAX_FILES = 1_000

REMEMBERED = 1024 * 1024
"""Bytes of printouts that are held for the case that their sandbox is lost."""

log = logging.getLogger("limbeck.sandbox")


def name_inside(number: int) -> str:
    """Where a later script finds the printout of execution `number`, counted from 1."""
    return f"/data/{FOLDER}/{number}.txt"


class EarlierPrintouts:
    """The printouts of one session, as far as they are remembered."""

    def __init__(self) -> None:
        self._known: deque[tuple[int, Printout]] = deque(maxlen=MAX_FILES)

    def __bool__(self) -> bool:
        return bool(self._known)

    def add(self, number: int, printout: Printout) -> None:
        """Remember what an execution printed, beside as many others as there is room for."""
        self._known.append((number, printout))
        while sum(one.kept for _, one in self._known) > REMEMBERED and len(self._known) > 1:
            self._known.popleft()

    def write(self, data: Path) -> None:
        """Write what is not there yet into the sandbox's data folder; in a thread of its own."""
        folder = data / FOLDER
        try:
            folder.mkdir(mode=0o755, exist_ok=True)
            folder.chmod(0o755)
        except OSError as error:
            log.warning("no earlier printout can be read: %s", error)
            return
        for number, printout in reversed(list(self._known)):
            path = folder / f"{number}.txt"
            if path.exists():
                break  # So are those before it, or they made room.
            _write(printout, path)
        self._tidy(folder)

    def _tidy(self, folder: Path) -> None:
        files = sorted((int(path.stem), path.lstat().st_size, path) for path in folder.iterdir())
        total = sum(size for _, size, _ in files)
        for left, (number, size, path) in zip(range(len(files), 0, -1), files, strict=True):
            if total <= MAX_BYTES and left <= MAX_FILES:
                return
            path.unlink(missing_ok=True)
            total -= size
            while self._known and self._known[0][0] <= number:
                self._known.popleft()


def _write(printout: Printout, path: Path) -> None:
    try:
        found = os.statvfs(path.parent)
        if found.f_bavail * found.f_frsize < printout.total + KEPT_FREE:
            raise OSError(f"{printout.total:,} bytes, and the disk is nearly full")
        printout.write_whole(path)
        path.chmod(0o444)
    except OSError as error:
        # The script that looks for it is told that there is no such file.
        path.unlink(missing_ok=True)
        log.warning("an earlier printout cannot be read: %s", error)
