"""Input files: copied into a sandbox's own folder when it is leased, read there as /data.

Copies, never links: the sandbox is warm before anybody knows the inputs, and a link would share
the original's mode and life. A folder is copied with what is in it; links and devices are refused,
since what they point to was not named.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import stat
import threading
from collections.abc import Collection, Generator, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Protocol

from ..runtime.errors import ConfigurationError, SandboxUnavailable


class OpenFile:
    """A file-like object, read from where it stands when it is copied."""

    def __init__(self, name: str, file: Readable) -> None:
        self._name = name
        self._file = file
        self._start: int | None = None
        self._read = False

    def chunks(self) -> Iterator[bytes]:
        """What it holds; again from the same place when it can be sought. Raises OSError."""
        if self._read:
            self._go_back()
        elif _can_seek(self._file):
            self._start = self._file.tell()
        self._read = True
        while chunk := self._next():
            if not isinstance(chunk, bytes | bytearray | memoryview):
                kind = type(chunk).__name__
                raise OSError(0, f"it gives {kind}, not bytes; open it in binary mode", self._name)
            yield bytes(chunk)

    def _next(self) -> Any:
        try:
            return self._file.read(_CHUNK)
        except Exception as error:
            text = f"reading it failed: {type(error).__name__}: {error}"
            raise OSError(0, text, self._name) from error

    def _go_back(self) -> None:
        if self._start is None:
            text = "it was read for a sandbox that was lost, and cannot be read again"
            raise OSError(0, text, self._name)
        self._file.seek(self._start)


class Readable(Protocol):
    """What is asked of a file-like object; `seek` and `tell` only if it has `seekable`."""

    def read(self, size: int, /) -> Any:
        """At most so many bytes; none at its end."""

    def seek(self, offset: int, /) -> Any: ...

    def tell(self) -> int: ...


Source = Path | bytes | OpenFile
Inputs = Mapping[str, Source]
"""Name under /data to the file or folder on the host, or to the content itself."""

Given = str | os.PathLike[str] | bytes | IO[bytes]
Data = Collection[str | os.PathLike[str] | IO[bytes]] | Mapping[str, Given]
"""Input files as callers give them: paths and open files, or names with paths, bytes, open files.
"""

MAX_FILES = 10_000
"""Files and folders."""

MAX_DEPTH = 64
"""Levels of folders."""

KEPT_FREE = 64 * 1024 * 1024
"""Bytes that the copies must leave free where they lie."""

_CHUNK = 1024 * 1024
_RESERVED = frozenset({"printouts"})


def check_inputs(data: Data) -> dict[str, Source]:
    """What was given as `data`, by its name under /data.

    A mapping names each; a list takes the last part of each path. Raises ConfigurationError.
    """
    if isinstance(data, str | bytes | os.PathLike):
        raise ConfigurationError("data", "a single path", f"write [{os.fspath(data)!r}].")
    if hasattr(data, "read"):
        raise ConfigurationError("data", "a single file", 'write {"NAME": FILE}.')
    pairs: list[tuple[str, Given]]
    if isinstance(data, Mapping):
        pairs = list(data.items())
    else:
        pairs = [(_last_part(item), item) for item in data]
    found: dict[str, Source] = {}
    for name, source in pairs:
        _check_name(name)
        if name in found:
            raise ConfigurationError(
                "data",
                f"two inputs have the name {name!r}",
                'give them names: {"a.csv": PATH, "b.csv": PATH}.',
            )
        if isinstance(source, bytes | bytearray | memoryview):
            found[name] = bytes(source)
        elif isinstance(source, str | os.PathLike):
            found[name] = _check_path(Path(source))
        else:
            found[name] = _check_file(name, source)
    return found


def copy_inputs(inputs: Inputs, folder: Path, stop: threading.Event, most: int) -> None:
    """Copy the inputs into `folder`, read-only for everybody; ends early when `stop` is set.

    More than `most` bytes in all are refused.

    What has the same name there, from an earlier script of the session, is replaced. Raises
    SandboxUnavailable: nothing has run then.
    """
    try:
        for name in inputs:
            _remove(folder / name)
        files = list(_files(inputs, folder))
        room = Room(most, folder)
        room.check(sum(_size(source) for source, _ in files))
        for source, target in files:
            if stop.is_set():
                return
            target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            _copy(source, target, stop, room)
        for name in inputs:
            for path in (folder / name, *(folder / name).rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o444)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise SandboxUnavailable({"data": f"{where}{error.strerror or error}"}) from None


def _remove(path: Path) -> None:
    """Who has it open inside goes on reading the old one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name or name in (".", "..") or "/" in name or "\0" in name:
        raise ConfigurationError("data", f"{name!r} is no name of a file")
    try:
        encoded = os.fsencode(name)
    except UnicodeEncodeError:
        raise ConfigurationError("data", f"{name!r} is no name of a file") from None
    if len(encoded) > 255:
        raise ConfigurationError("data", f"the name {name[:40]!r}... is longer than 255 bytes")
    if name in _RESERVED:
        raise ConfigurationError("data", f"the name {name!r} is limbeck's own", "rename the input.")


def _last_part(item: object) -> str:
    """The name of an input that was given without one."""
    if hasattr(item, "read"):
        item = getattr(item, "name", None)
        if not isinstance(item, str):
            raise ConfigurationError("data", "an open file has no name", 'write {"NAME": FILE}.')
    if not isinstance(item, str | os.PathLike):
        kind = type(item).__name__
        raise ConfigurationError(
            "data", f"a {kind} has no name", 'name it: {"NAME": PATH, BYTES or FILE}.'
        )
    return Path(os.path.abspath(os.fsdecode(item))).name


def _check_file(name: str, source: Any) -> OpenFile:
    if not callable(getattr(source, "read", None)):
        kind = type(source).__name__
        raise ConfigurationError(
            "data", f"{name!r} is a {kind}", "give a path, bytes or a binary file."
        )
    if isinstance(source, io.TextIOBase):
        raise ConfigurationError(
            "data", f"{name!r} is open for text", 'open it in binary mode, "rb".'
        )
    return OpenFile(name, source)


def _can_seek(file: Any) -> bool:
    seekable = getattr(file, "seekable", None)
    return callable(seekable) and bool(seekable())


def _check_path(path: Path) -> Path:
    path = Path(os.path.realpath(path))
    if not path.exists():
        raise ConfigurationError("data", f"there is no file {path}")
    if not path.is_file() and not path.is_dir():
        raise ConfigurationError("data", f"{path} is neither a file nor a folder")
    return path


def _files(inputs: Inputs, folder: Path) -> Iterator[tuple[Source, Path]]:
    """What is to be copied where; folders are made on the way. No recursion: depth is theirs."""
    ready: list[tuple[Source, Path, int]]
    ready = [(source, folder / name, 0) for name, source in reversed(list(inputs.items()))]
    count = 0
    while ready:
        source, target, depth = ready.pop()
        count += 1
        if count > MAX_FILES:
            raise _refused(f"more than {MAX_FILES:,} input files; pack them into an archive")
        if not isinstance(source, Path):
            yield source, target
            continue
        mode = source.lstat().st_mode
        if stat.S_ISREG(mode):
            yield source, target
        elif not stat.S_ISDIR(mode):
            text = f"{source} is a link or a device; name what it points to as an input of its own"
            raise _refused(text)
        elif depth == MAX_DEPTH:
            raise _refused(f"folders more than {MAX_DEPTH} levels deep; pack them into an archive")
        else:
            target.mkdir(mode=0o755, parents=True, exist_ok=True)
            children = sorted(source.iterdir(), reverse=True)
            ready += ((child, target / child.name, depth + 1) for child in children)


def _refused(text: str) -> SandboxUnavailable:
    return SandboxUnavailable({"data": text})


class Room:
    """What the copies may take: of the limit, and of the disk."""

    def __init__(self, most: int, folder: Path) -> None:
        self._most = most
        self._folder = folder
        self._written = 0

    def check(self, wanted: int) -> None:
        """Raise SandboxUnavailable when `wanted` bytes more are too many."""
        if self._written + wanted > self._most:
            found = self._written + wanted
            text = f"the inputs have {found:,} bytes or more, the limit `inputs` is {self._most:,}"
            raise _refused(text)
        disk = os.statvfs(self._folder)
        free = disk.f_bavail * disk.f_frsize
        if wanted + KEPT_FREE > free:
            where = self._folder.parent.parent
            raise _refused(f"the inputs have {wanted:,} bytes, {free:,} are free in {where}")

    def take(self, size: int) -> None:
        """Before so many bytes are written. Raises SandboxUnavailable."""
        self.check(size)
        self._written += size


def _size(source: Source) -> int:
    """As far as it is known before it is read."""
    if isinstance(source, OpenFile):
        return 0
    return len(source) if isinstance(source, bytes) else source.lstat().st_size


def _copy(source: Source, target: Path, stop: threading.Event, room: Room) -> None:
    with target.open("xb") as written, contextlib.closing(_chunks(source)) as chunks:
        for chunk in chunks:
            if stop.is_set():
                return
            room.take(len(chunk))
            written.write(chunk)


def _chunks(source: Source) -> Generator[bytes]:
    if isinstance(source, bytes):
        yield source
    elif isinstance(source, OpenFile):
        yield from source.chunks()
    else:
        # SAFETY: it may have become a link since it was looked at.
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as read:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(0, "is no regular file any more", str(source))
            while chunk := read.read(_CHUNK):
                yield chunk
