"""The friendly refusal of files outside the script's folders, whichever library opens them.

One audit hook in the sandbox's own process. The sandbox's mounts are the limit: this only says it
before the kernel does, and says where files may be. What Python itself reads stays readable.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from .files import READABLE, WRITABLE, is_inside, refusal

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_SYSTEM = ("/usr/share/zoneinfo", "/dev")


def install() -> None:
    """Watch from now on; a hook stays as long as its process."""
    system = (*_SYSTEM, *(os.path.realpath(folder) for folder in _python_folders()))
    readable, writable = (*READABLE, *system), (*WRITABLE, "/dev/null")

    def check(path: Any, roots: tuple[str, ...]) -> None:
        if isinstance(path, str | bytes | os.PathLike):
            text = os.fsdecode(path)
            if not is_inside(text, roots):
                raise refusal(text, writing=roots is writable)

    def reading(args: tuple[Any, ...]) -> None:
        check(args[0], readable)

    def writing(args: tuple[Any, ...]) -> None:
        check(args[0], writable)

    def both(args: tuple[Any, ...]) -> None:
        check(args[0], writable)
        check(args[1], writable)

    def opening(args: tuple[Any, ...]) -> None:
        check(args[0], writable if args[2] & _WRITING else readable)

    def connecting(args: tuple[Any, ...]) -> None:
        name = args[0]
        if isinstance(name, str) and name and name != ":memory:" and not name.startswith("file:"):
            check(name, readable)

    checks: dict[str, Callable[[tuple[Any, ...]], None]] = {
        "open": opening,
        "sqlite3.connect": connecting,
        **dict.fromkeys(("os.listdir", "os.scandir"), reading),
        **dict.fromkeys(("os.mkdir", "os.remove", "os.rmdir", "os.chmod", "os.truncate"), writing),
        "os.rename": both,
    }

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in checks:
            checks[event](args)

    sys.addaudithook(hook)


def _python_folders() -> list[str]:
    return [*sys.path, sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)]
