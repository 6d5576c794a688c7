"""The vetting child: reads scripts from standard input, answers with their faults.

It runs under a dropped uid with little memory, and ends at the end of its input. A script that
hangs or kills it costs nothing but a new child. Messages are a length of four bytes and JSON; the
first answer, an empty list, says that the child is up.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from dataclasses import asdict
from typing import Any, BinaryIO

from . import vet

MEMORY = 1024 * 1024 * 1024
CPU_SECONDS = 2.0
MAX_REQUEST = 16 * 1024 * 1024


def main() -> None:
    """Serve until the end of the input."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # SAFETY: no file can be written, whatever becomes of this process; pipes are no files.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    # A script's CPU time, by a timer that each script starts anew; its signal ends the child.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    source, target = sys.stdin.buffer, sys.stdout.buffer
    _write(target, [])
    while (request := _read(source)) is not None:
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        faults = vet(request["source"], gate=request["gate"], open_modules=request["open_modules"])
        signal.setitimer(signal.ITIMER_PROF, 0)
        _write(target, [asdict(fault) for fault in faults])
    os._exit(0)


def _read(source: BinaryIO) -> Any:
    size = int.from_bytes(source.read(4), "big")
    if not 0 < size <= MAX_REQUEST:
        return None
    return json.loads(source.read(size))


def _write(target: BinaryIO, value: Any) -> None:
    data = json.dumps(value).encode()
    target.write(len(data).to_bytes(4, "big") + data)
    target.flush()
