"""Host folders: one a sandbox, with its sockets, stubs and inputs; removed, or reaped later.

BASE/            0711, ours
  ID/            0711
    owner        process number and start time
    bridge/      0711, the sockets; seen as /bridge
    tools/       0755, stub sources; seen as /tools
    data/        0755, inputs; seen as /data
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import time
from pathlib import Path

from ..runtime.errors import ConfigurationError
from ..runtime.wire import BRIDGE_SOCKET
from .backend import HostFolder
from .exhaustion import raise_exhausted
from .owner import is_alive, this_process

MAX_SOCKET_PATH = 100
"""Bytes; the kernel takes 107."""

NO_OWNER_SECONDS = 60.0
"""How long a folder may be without its owner written down."""

_OWNER = "owner"
_ID = re.compile(r"[0-9a-f]{8}\Z")


def base_folder() -> Path:
    """Where the folders of this user are; made when missing.

    Raises ConfigurationError when somebody else could write there.
    """
    base = _base_path()
    try:
        base.mkdir(mode=0o711, exist_ok=True)
    except OSError as error:
        raise_exhausted(error)
        raise ConfigurationError(str(base), error.strerror or str(error)) from None
    found = base.lstat()
    # SAFETY: a folder that a stranger made, or may write to, could swap our sockets.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise ConfigurationError(str(base), "is not a folder of ours", "remove it.")
    base.chmod(0o711)
    _check_length(base)
    return base


def make_folder(sandbox_id: str) -> HostFolder:
    """The folder of a new sandbox, with its owner written down first. Raises OSError."""
    folder = HostFolder(base_folder() / sandbox_id)
    folder.root.mkdir(mode=0o700)
    try:
        _furnish(folder)
    except OSError:
        remove_folder(folder)
        raise
    return folder


def _furnish(folder: HostFolder) -> None:
    # SAFETY: whole or not there: who reads half an owner would take the sandbox for a leftover.
    (folder.root / "owner.new").write_text(this_process())
    (folder.root / "owner.new").rename(folder.root / _OWNER)
    folder.bridge.mkdir()
    folder.tools.mkdir()
    folder.data.mkdir()
    folder.tools.chmod(0o755)
    folder.data.chmod(0o755)
    folder.bridge.chmod(0o711)
    folder.root.chmod(0o711)


def remove_folder(folder: HostFolder) -> None:
    """Remove a sandbox's folder. Nothing in it was writable from inside."""
    # A folder that cannot be removed must stop nobody: who reaps looks whether it is gone.
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder.root, ignore_errors=True)


def leftovers() -> list[str]:
    """Ids of sandboxes whose owner is dead."""
    return [path.name for path in base_folder().iterdir() if _ID.match(path.name) and _dead(path)]


def _dead(path: Path) -> bool:
    try:
        return not is_alive((path / _OWNER).read_text())
    except FileNotFoundError:
        pass
    try:
        # Without an owner: just being made or removed, unless it is old.
        return time.time() - path.lstat().st_mtime > NO_OWNER_SECONDS
    except FileNotFoundError:
        return False


def _base_path() -> Path:
    if os.geteuid() == 0:
        return Path("/run/limbeck")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        return Path(runtime) / "limbeck"
    return Path(f"/tmp/limbeck-{os.geteuid()}")  # noqa: S108 - ownership is checked


def _check_length(base: Path) -> None:
    longest = base / ("0" * 8) / "bridge" / BRIDGE_SOCKET
    if len(os.fsencode(longest)) > MAX_SOCKET_PATH:
        raise ConfigurationError(
            "XDG_RUNTIME_DIR",
            f"{base} is too long for a unix socket ({MAX_SOCKET_PATH} bytes)",
            "point it to a shorter path.",
        )
