"""stdout and stderr of the script: two connections to the host's printout socket.

They are the worker's file descriptors 1 and 2, so that whatever was written is with the host even
when the script ends by `os._exit` or SIGKILL, and a child process's or C library's output counts
too. The host counts, keeps and cuts; nothing is bounded here.
"""

from __future__ import annotations

import io
import os
import socket
import sys


def connect(path: str) -> None:
    """Connect file descriptors 1 and 2 to the printout socket, in this order."""
    for target in (1, 2):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(path)
            os.dup2(connection.fileno(), target)
    sys.stdout = _text(1)
    sys.stderr = _text(2)


def flush() -> None:
    """Hand over what Python still buffers; a script may have closed or replaced its streams."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue


def _text(descriptor: int) -> io.TextIOWrapper:
    # Not closed with the wrapper: the descriptor outlives a script that closes sys.stdout.
    raw = open(descriptor, "wb", buffering=8192, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(raw, "utf-8", errors="backslashreplace", line_buffering=True)
