"""A backend without any wall, for unit tests alone: the real worker as a plain child process.

It is loud, cannot be chosen by name, and promises nothing: no namespace, no uid, no memory limit.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Hashable
from pathlib import Path

from .backend import ExitCause, ExitReport, HostFolder, Leftover, Limits, Usage
from .pipes import PipeReader, until_readable
from .process_one import ProcessOne
from .reserved import Clocked

_START = "from limbeck.runtime.supervisor import main; main()"


class NoIsolationWarning(UserWarning):
    """Scripts run on the host itself."""


class FakeBackend:
    """Makes sandboxes that are none."""

    name = "fake"

    def __init__(self) -> None:
        """Warns, each time."""
        text = "the fake backend runs scripts on this host without any isolation"
        warnings.warn(text, NoIsolationWarning, stacklevel=2)

    async def check(self) -> str | None:
        """It always works."""
        return None

    def vetting(self) -> None:
        """In this process: nothing here is kept from a script."""

    def shape(self, limits: Limits) -> Hashable:
        """All are the same: nothing is limited."""
        return self.name

    async def create(self, limits: Limits) -> FakeSandbox:
        """A folder, and nothing else."""
        return FakeSandbox()

    async def reap(self) -> list[Leftover]:
        """Nothing of it has a name."""
        return []


class FakeSandbox(Clocked):
    """Process 1 and worker as ordinary children of this process."""

    image = None
    memory_limit = "none"

    def __init__(self) -> None:
        self.id = secrets.token_hex(4)
        self.uid = os.geteuid()
        self._temporary = tempfile.TemporaryDirectory(prefix="limbeck-fake-")
        self.folder = HostFolder(Path(self._temporary.name))
        for path in (self.folder.bridge, self.folder.tools, self.folder.data):
            path.mkdir()
        self._process_one = ProcessOne(self._send)
        self._process: subprocess.Popen[bytes] | None = None
        self._supervising: asyncio.Task[ExitReport] | None = None
        self._killed = False

    async def start(self) -> None:
        """Start process 1."""
        settings = [f"bridge={self.folder.bridge}", f"tools={self.folder.tools}"]
        self._process = subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, "-s", "-P", "-c", _START, *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd=self.folder.root,
        )
        self._supervising = asyncio.create_task(self._supervise(self._process))

    def begin(self, wall: float, cpu_budget: float) -> None:
        """Start process 1's clock."""
        self._process_one.begin(wall)

    def usage(self) -> Usage:
        """Nobody measures."""
        return Usage()

    async def wait(self) -> ExitReport:
        """Wait for process 1."""
        assert self._supervising is not None
        return await asyncio.shield(self._supervising)

    async def kill(self) -> ExitReport:
        """End by the clock: process 1 kills the worker's group, then itself."""
        if self._supervising is None:
            return ExitReport(cause=ExitCause.KILLED)
        if not self._supervising.done():
            self._killed = True
            self._process_one.finish()
        return await self.wait()

    async def close(self) -> None:
        """Kill and remove the folder."""
        await self.kill()
        self._temporary.cleanup()

    def _send(self, message: bytes) -> None:
        if self._process is None or self._process.stdin is None or self._process.stdin.closed:
            raise BrokenPipeError
        os.write(self._process.stdin.fileno(), message)

    async def _supervise(self, process: subprocess.Popen[bytes]) -> ExitReport:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdin is not None
        report, errors = (
            PipeReader(process.stdout.fileno(), self._process_one.feed),
            PipeReader(process.stderr.fileno()),
        )
        pidfd = os.pidfd_open(process.pid)
        try:
            if not await until_readable(pidfd, 600):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            report.text()  # What still waits in the pipe.
            said = self._process_one.report
            diagnosis = errors.text()
        finally:
            os.close(pidfd)
            for reader, pipe in ((report, process.stdout), (errors, process.stderr)):
                reader.close()
                pipe.close()
            with contextlib.suppress(OSError):
                process.stdin.close()
        if said.word == "exited" and not self._killed:
            return ExitReport(
                cause=ExitCause.EXITED,
                exit_code=said.exit_code,
                signal=said.signal,
                diagnosis=diagnosis,
            )
        cause = ExitCause.KILLED if self._killed else ExitCause.LOST
        return ExitReport(cause=cause, diagnosis=diagnosis)
