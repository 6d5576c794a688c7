"""The vetting child: reads scripts from standard input, answers with their faults.

It runs under a dropped uid with little memory, and ends at the end of its input. A script that
hangs or kills it costs nothing but a new child. Messages are a length of four bytes and JSON.
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
CPU_SECONDS = 2
MAX_REQUEST = 16 * 1024 * 1024


def main() -> None:
    """Serve until the end of the input."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
    # A script's CPU time, by a timer that each script starts anew; its signal ends the child.
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while (request := _read(source)) is not None:
        signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
        faults = vet(request["source"], gate=request["gate"])
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        _write(target, [asdict(fault) for fault in faults])
    os._exit(0)


def _read(source: BinaryIO) -> Any:
    head = source.read(4)
    if len(head) < 4:
        return None
    size = int.from_bytes(head, "big")
    if size > MAX_REQUEST:
        return None
    return json.loads(source.read(size))


def _write(target: BinaryIO, value: Any) -> None:
    data = json.dumps(value).encode()
    target.write(len(data).to_bytes(4, "big") + data)
    target.flush()
