"""What the host's own system refuses while a sandbox is made, told with its mend.

Such an error says nothing of limbeck's set-up: it is never remembered, and the next try may do.
"""

from __future__ import annotations

import errno

from ..runtime.errors import SandboxUnavailable

_HINTS = {
    errno.EMFILE: "raise the limit of open files of this process (ulimit -n).",
    errno.ENFILE: "raise the system's limit of open files (fs.file-max).",
    errno.ENOMEM: "free memory, or run fewer sandboxes at a time.",
    errno.ENOSPC: "free space, or raise the system's limits (inodes, inotify, epoll).",
    errno.EDQUOT: "free space of this user.",
    errno.EAGAIN: "raise the limit of processes of this user (ulimit -u).",
}


def raise_exhausted(error: BaseException) -> None:
    """Raise what says only that the system has run out of something; return for all else."""
    if isinstance(error, OSError) and error.errno in _HINTS:
        raise error


def unavailable(name: str, error: OSError | ValueError) -> SandboxUnavailable:
    """The error of a backend that met `error` on its way to a sandbox."""
    return SandboxUnavailable({name: exhausted_text(error)})


def exhausted_text(error: OSError | ValueError) -> str:
    """What is wrong, and its mend where there is one."""
    text = f"no sandbox could be started: {error}"
    hint = _HINTS.get(getattr(error, "errno", None) or 0)
    return f"{text}\nHint: {hint}" if hint else text
