"""The printout on the host: counted whole, kept head and tail, spooled to a file when long."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

EXPIRY_SECONDS = 30 * 24 * 3600
"""Age at which a spooled printout is removed."""

QUOTA_BYTES = 1024**3
"""All spooled printouts of a user together, unless the operator says otherwise."""


class Printout:
    """What a script prints. Pure but for the spool file, which exists only for long printouts."""

    def __init__(self, *, kept: int, spool: Path | None = None) -> None:
        """Keep at most `kept` bytes; `spool` is where the whole goes when there is more."""
        self._head_room = kept - kept // 2
        self._tail_room = kept // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._spool_path = spool
        self._spool: BinaryIO | None = None
        self.total = 0
        """Bytes printed."""
        self.spool_error = ""
        """Why the whole could not be written, when it could not."""

    def feed(self, data: bytes) -> None:
        """Take what was printed next."""
        if self._spool is None and self.total + len(data) > self._head_room + self._tail_room:
            self._open_spool()
        self.total += len(data)
        self._write(data)
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data)
            self._tail_size += len(data)
            while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_room:
                self._tail_size -= len(self._tail.popleft())

    @property
    def truncated(self) -> bool:
        """Whether more was printed than is kept."""
        return self.total > self._head_room + self._tail_room

    @property
    def kept(self) -> int:
        """Bytes that `text` holds, its note left aside."""
        return sum(map(len, self._parts()))

    @property
    def spooled(self) -> Path | None:
        """The file with the whole, when there is one."""
        return self._spool_path if self._spool is not None and not self.spool_error else None

    def text(self) -> str:
        """Head and tail as text, with a note between them of what is left out."""
        head, tail = self._parts()
        if not self.truncated:
            return (head + tail).decode("utf-8", "replace")
        left_out = self.total - len(head) - len(tail)
        note = f"[... {left_out:,} bytes left out ...]"
        return f"{head.decode('utf-8', 'replace')}\n{note}\n{tail.decode('utf-8', 'replace')}"

    def write_whole(self, path: Path) -> None:
        """Write all that was printed into a new file, or what is kept of it. Raises OSError."""
        with path.open("xb") as target:
            if self.truncated and self.spooled is not None:
                with self.spooled.open("rb") as whole:
                    shutil.copyfileobj(whole, target, 1024 * 1024)
            else:
                target.write(self.text().encode())

    def _parts(self) -> tuple[bytes, bytes]:
        """What is kept of head and tail; where something is left out, no character is cut."""
        head, tail = bytes(self._head), b"".join(self._tail)
        if not self.truncated:
            return head, tail
        tail = tail[len(tail) - self._tail_room :]
        return head[: whole_characters(head)], tail[_continued(tail) :]

    def close(self) -> None:
        """Close the spool file."""
        if self._spool is not None:
            self._spool.close()

    def _open_spool(self) -> None:
        if self._spool_path is None:
            return
        try:
            self._spool_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            self._spool = os.fdopen(os.open(self._spool_path, flags, 0o600), "wb")
            # Held until it is closed: who makes room leaves it alone.
            fcntl.flock(self._spool, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            self.spool_error = str(error)
            self._spool_path = None
            return
        self._write(bytes(self._head) + b"".join(self._tail))

    def _write(self, data: bytes) -> None:
        if self._spool is None or self.spool_error:
            return
        try:
            self._spool.write(data)
        except OSError as error:
            self.spool_error = str(error)


def whole_characters(data: bytes) -> int:
    """How many bytes there are before a last character of UTF-8 that is not whole yet."""
    for back, byte in enumerate(reversed(data[-3:]), 1):
        if byte & 0xC0 != 0x80:
            size = 2 + (byte >= 0xE0) + (byte >= 0xF0) if 0xC2 <= byte <= 0xF4 else 1
            return len(data) - back if size > back else len(data)
    return len(data)


def _continued(data: bytes) -> int:
    """How many bytes at the beginning belong to a character that began before."""
    for index, byte in enumerate(data[:4]):
        if byte & 0xC0 != 0x80:
            return index
    return len(data) if len(data) < 4 else 0


def spool_folder() -> Path:
    """Where long printouts go: 0700, in the user's state folder."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "limbeck" / "printouts"


def tidy_spool(folder: Path, quota: int, just_written: Path | None = None) -> list[str]:
    """Remove printouts over 30 days old, then the oldest while all together are over `quota` bytes.

    `just_written` stays: its result has not been read yet. One that is being written is locked by
    its writer, in whatever process, and stays. What could not be removed is told.
    """
    horizon = time.time() - EXPIRY_SECONDS
    problems = []
    files = sorted(_found(folder))
    total = sum(size for _, size, _ in files)
    for written, size, path in files:
        if written >= horizon and total <= quota:
            break
        if path == just_written:
            continue
        try:
            if _remove_unused(path):
                total -= size
        except FileNotFoundError:
            total -= size  # Another process was faster.
        except OSError as error:
            problems.append(f"{path} cannot be removed: {error.strerror or error}")
    return problems


def _found(folder: Path) -> Iterator[tuple[float, int, Path]]:
    """When each printout was last written, how large it is, and where."""
    for path in folder.glob("*.txt"):
        try:
            found = path.lstat()
        except OSError:
            continue  # Another process was faster.
        yield found.st_mtime, found.st_size, path


def _remove_unused(path: Path) -> bool:
    """Remove a printout unless somebody writes it."""
    if path.is_symlink():
        path.unlink()
        return True
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
