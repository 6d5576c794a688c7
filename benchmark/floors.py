"""Floors: what cannot be beaten on this machine, timed beside what is measured."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import time
from statistics import median
from types import TracebackType
from typing import Self

from .rows import Sample

MESSAGE = 120
"""Bytes of a ping: about the size of a small call."""


class PingPong:
    """A child process that answers on a raw unix socket: the floor of every call."""

    def __enter__(self) -> Self:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        program = (
            "import socket\n"
            f"s = socket.socket(fileno={theirs.fileno()})\n"
            f"while data := s.recv({MESSAGE}): s.sendall(data)\n"
        )
        self._child = subprocess.Popen(
            [sys.executable, "-S", "-c", program], pass_fds=(theirs.fileno(),)
        )
        theirs.close()
        self._socket = ours
        self.sample(200)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()
        self._child.wait()

    def sample(self, rounds: int) -> Sample:
        """One ping and its answer: median wall and mean CPU of many."""
        data = b"x" * MESSAGE
        walls, cpu = [], time.process_time()
        for _ in range(rounds):
            began = time.perf_counter()
            self._socket.sendall(data)
            self._socket.recv(MESSAGE)
            walls.append(time.perf_counter() - began)
        return Sample(median(walls), (time.process_time() - cpu) / rounds)


def plain_python(python: str) -> Sample:
    """Starting an interpreter that does nothing."""
    wall, cpu = time.perf_counter(), _cpu()
    subprocess.run([python, "-c", "pass"], check=True, env={})
    return Sample(time.perf_counter() - wall, _cpu() - cpu)


def _cpu() -> float:
    """Of this process and the children that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def load() -> float:
    """The load average of the last minute."""
    return os.getloadavg()[0]
