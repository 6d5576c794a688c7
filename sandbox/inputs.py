"""Input files: copied into a sandbox's own folder when it is leased, read there as /data.

Copies, never links: the sandbox is warm before anybody knows the inputs, and a link would share
the original's mode and life. A folder is copied with what is in it; links and devices are refused,
since what they point to was not named.
"""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from ..runtime.errors import ConfigurationError, SandboxUnavailable

Inputs = Mapping[str, Path | bytes]
"""Name under /data to the file or folder on the host, or to the content itself."""

MAX_FILES = 10_000
"""Files and folders."""

MAX_DEPTH = 64
"""Levels of folders."""

KEPT_FREE = 64 * 1024 * 1024
"""Bytes that the copies must leave free where they lie."""

_CHUNK = 1024 * 1024
_RESERVED = frozenset({"printouts"})


def check_inputs(
    data: Collection[str | os.PathLike[str]] | Mapping[str, str | os.PathLike[str] | bytes],
) -> dict[str, Path | bytes]:
    """What was given as `data`, by its name under /data.

    A mapping names each; a list takes the last part of each path. Raises ConfigurationError.
    """
    if isinstance(data, str | bytes | os.PathLike):
        raise ConfigurationError("data", "a single path", f"write [{os.fspath(data)!r}].")
    pairs: list[tuple[str, str | os.PathLike[str] | bytes]]
    if isinstance(data, Mapping):
        pairs = list(data.items())
    else:
        pairs = [(Path(os.path.abspath(path)).name, path) for path in data]
    found: dict[str, Path | bytes] = {}
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
            raise ConfigurationError(
                "data", f"{name!r} is a {type(source).__name__}", "give a path or bytes."
            )
    return found


def copy_inputs(inputs: Inputs, folder: Path, stop: threading.Event) -> None:
    """Copy the inputs into `folder`, read-only for everybody; ends early when `stop` is set.

    What has the same name there, from an earlier script of the session, is replaced. Raises
    SandboxUnavailable: nothing has run then.
    """
    try:
        for name in inputs:
            _remove(folder / name)
        files = list(_files(inputs, folder))
        _check_room(files, folder)
        for source, target in files:
            if stop.is_set():
                return
            target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            _copy(source, target, stop)
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


def _check_path(path: Path) -> Path:
    path = Path(os.path.realpath(path))
    if not path.exists():
        raise ConfigurationError("data", f"there is no file {path}")
    if not path.is_file() and not path.is_dir():
        raise ConfigurationError("data", f"{path} is neither a file nor a folder")
    return path


def _files(inputs: Inputs, folder: Path) -> Iterator[tuple[Path | bytes, Path]]:
    """What is to be copied where; folders are made on the way. No recursion: depth is theirs."""
    ready: list[tuple[Path | bytes, Path, int]]
    ready = [(source, folder / name, 0) for name, source in reversed(list(inputs.items()))]
    count = 0
    while ready:
        source, target, depth = ready.pop()
        count += 1
        if count > MAX_FILES:
            raise _refused(f"more than {MAX_FILES:,} input files; pack them into an archive")
        if isinstance(source, bytes):
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


def _check_room(files: list[tuple[Path | bytes, Path]], folder: Path) -> None:
    wanted = sum(
        len(source) if isinstance(source, bytes) else source.lstat().st_size for source, _ in files
    )
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if wanted + KEPT_FREE > free:
        text = f"the inputs have {wanted:,} bytes, {free:,} are free in {folder.parent.parent}"
        raise _refused(text)


def _copy(source: Path | bytes, target: Path, stop: threading.Event) -> None:
    with target.open("xb") as written:
        if isinstance(source, bytes):
            written.write(source)
            return
        # SAFETY: it may have become a link since it was looked at.
        descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as read:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(0, "is no regular file any more", str(source))
            while not stop.is_set() and (chunk := read.read(_CHUNK)):
                written.write(chunk)
