"""`open` for scripts: the folders that the sandbox gives them.

The sandbox's mounts are the limit; this refuses early, and says where files may be.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable
from typing import Any

READABLE = ("/workspace", "/tmp", "/data", "/tools")  # noqa: S108 - paths inside the sandbox
WRITABLE = ("/workspace", "/tmp")  # noqa: S108 - paths inside the sandbox
_OPTIONS = {"buffering", "encoding", "errors", "newline"}


def guarded_open(file: Any, mode: Any = "r", *args: Any, **options: Any) -> Any:
    """open, on paths inside the script's folders."""
    path = os.fspath(file) if not isinstance(file, int) else None
    if type(path) is not str or type(mode) is not str:
        raise TypeError("open() takes a path and a mode, both plain strings")
    # SAFETY: a raw file can be opened anew, on any path, by its own __init__.
    buffering = [*args[:1], options.get("buffering", -1)]
    if len(args) > 4 or not set(options) <= _OPTIONS or not all(map(_is_buffered, buffering)):
        raise TypeError("open() takes path, mode, encoding, errors and newline here")
    roots = READABLE if set(mode) <= set("rbt") else WRITABLE
    if not is_inside(path, roots):
        raise refusal(path, writing=roots is WRITABLE)
    return builtins.open(os.path.realpath(path), mode, *args, **options)


def is_inside(path: str, roots: Iterable[str]) -> bool:
    """Is it one of the folders, or in one, when every link is followed?"""
    real = os.path.realpath(path)
    return any(real == root or real.startswith(root + "/") for root in roots)


def refusal(path: str, *, writing: bool) -> PermissionError:
    """What a script is told about a path outside its folders."""
    what, roots = ("written", WRITABLE) if writing else ("read", READABLE)
    return PermissionError(f"{path!r} cannot be {what}: use a path under {' or '.join(roots)}")


def _is_buffered(size: Any) -> bool:
    return type(size) is int and size != 0
