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

_spares: dict[int, int] = {}
"""Descriptor of a stream to another one of the same connection."""

_streams: dict[int, io.TextIOWrapper] = {}
"""What Python writes through, whatever a script makes of sys.stdout."""


def connect(path: str) -> None:
    """Connect file descriptors 1 and 2 to the printout socket, in this order."""
    for target in (1, 2):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(path)
            os.dup2(connection.fileno(), target)
        _streams[target] = _text(target)
    sys.stdout, sys.stderr = _streams[1], _streams[2]


def hold() -> None:
    """Have a second descriptor of each stream, by which `restore` finds it again."""
    for target in _streams:
        _spares[target] = os.dup(target)


def flush() -> None:
    """Hand over what Python still buffers; a script may have closed or replaced its streams."""
    for stream in (sys.stdout, sys.stderr, *_streams.values()):
        try:
            stream.flush()
        except Exception:  # noqa: S112 - a stream of the script's own may raise anything
            continue


def restore() -> None:
    """Both streams as they were: a script may have closed, replaced or redirected them.

    Needs `hold`.
    """
    for target, spare in _spares.items():
        try:
            if not os.path.sameopenfile(spare, target):
                os.dup2(spare, target)
        except OSError:
            _reconnect(spare, target)
        if _streams[target].closed:
            _streams[target] = _text(target)
    sys.stdout, sys.stderr = _streams[1], _streams[2]


def _reconnect(spare: int, target: int) -> None:
    try:
        os.dup2(spare, target)
    except OSError:
        return  # Both are closed: what it prints is lost, as it asked for.


def _text(descriptor: int) -> io.TextIOWrapper:
    # Not closed with the wrapper: the descriptor outlives a script that closes sys.stdout.
    raw = open(descriptor, "wb", buffering=8192, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(raw, "utf-8", errors="backslashreplace", line_buffering=True)
