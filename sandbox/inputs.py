"""Input files: copied into a sandbox's own folder when it is leased, read there as /data.

Copies, never links: the sandbox is warm before anybody knows the inputs, and a link would share
the original's mode and life. A folder is copied with what is in it; links and devices are refused,
since what they point to was not named.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from ..runtime.errors import ConfigurationError, SandboxUnavailable

Inputs = Mapping[str, Path | bytes]
"""Name under /data to the file or folder on the host, or to the content itself."""

MAX_FILES = 10_000

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
        found[name] = source if isinstance(source, bytes) else _check_path(Path(source))
    return found


def copy_inputs(inputs: Inputs, folder: Path, stop: threading.Event) -> None:
    """Copy the inputs into `folder`, read-only for everybody; ends early when `stop` is set.

    Raises SandboxUnavailable: nothing has run then.
    """
    try:
        files = list(_files(inputs, folder))
        _check_room(files, folder)
        for source, target in files:
            if stop.is_set():
                return
            target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            _copy(source, target, stop)
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o444)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise SandboxUnavailable({"data": f"{where}{error.strerror or error}"}) from None


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name or name in (".", "..") or "/" in name or "\0" in name:
        raise ConfigurationError("data", f"{name!r} is no name of a file")
    if len(os.fsencode(name)) > 255:
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
    count = 0
    for name, source in inputs.items():
        for one, target in _expand(source, folder / name):
            count += 1
            if count > MAX_FILES:
                text = f"more than {MAX_FILES:,} input files; pack them into an archive"
                raise SandboxUnavailable({"data": text})
            yield one, target


def _expand(source: Path | bytes, target: Path) -> Iterator[tuple[Path | bytes, Path]]:
    if isinstance(source, bytes):
        yield source, target
        return
    mode = source.lstat().st_mode
    if stat.S_ISREG(mode):
        yield source, target
    elif stat.S_ISDIR(mode):
        target.mkdir(mode=0o755, parents=True, exist_ok=True)
        for child in sorted(source.iterdir()):
            yield from _expand(child, target / child.name)
    else:
        text = f"{source} is a link or a device; name what it points to as an input of its own"
        raise SandboxUnavailable({"data": text})


def _check_room(files: list[tuple[Path | bytes, Path]], folder: Path) -> None:
    wanted = sum(
        len(source) if isinstance(source, bytes) else source.lstat().st_size for source, _ in files
    )
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if wanted + KEPT_FREE > free:
        text = f"the inputs have {wanted:,} bytes, {free:,} are free in {folder.parent.parent}"
        raise SandboxUnavailable({"data": text})


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
