"""Floors: what cannot be beaten on this machine, timed beside what is measured."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable
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
        """One ping and its answer, the mean of many."""
        data = b"x" * MESSAGE
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(rounds):
            self._socket.sendall(data)
            self._socket.recv(MESSAGE)
        return Sample((time.perf_counter() - wall) / rounds, (time.process_time() - cpu) / rounds)


def plain_python(python: str) -> Sample:
    """Starting an interpreter that does nothing."""
    return timed(lambda: subprocess.run([python, "-c", "pass"], check=True, env={}))


def timed(function: Callable[[], object]) -> Sample:
    """Wall and CPU of a call, its children's CPU included."""
    wall, cpu = time.perf_counter(), _cpu()
    function()
    return Sample(time.perf_counter() - wall, _cpu() - cpu)


def _cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def load() -> float:
    """The load average of the last minute."""
    return os.getloadavg()[0]
