"""What the real sandboxes share: a uid and a folder of their own, process 1's clock, the wait."""

from __future__ import annotations

import asyncio
import math
import secrets

from .backend import ExitCause, ExitReport, HostFolder, Limits, Usage
from .exhaustion import unavailable
from .folders import make_folder, remove_folder
from .process_one import ProcessOne
from .uids import BASE, lease_uid


class Clocked:
    """A sandbox whose process 1 keeps the host's clock."""

    _process_one: ProcessOne

    def pause(self) -> None:
        """Let the wall clock stand still."""
        self._process_one.pause()

    def resume(self) -> None:
        """Let the wall clock go on."""
        self._process_one.resume()

    async def freeze(self) -> int:
        """Stop everything inside but process 1; how many threads stand still."""
        return await self._process_one.freeze()

    async def thaw(self) -> None:
        """Let everything go on."""
        await self._process_one.thaw()

    def usage(self) -> Usage:
        """CPU and memory so far."""
        raise NotImplementedError

    def so_far(self) -> ExitReport:
        """How it stands between two jobs."""
        return ExitReport(cause=ExitCause.EXITED, usage=self.usage())


class ReservedSandbox(Clocked):
    """A sandbox that reserves its uid and its folder when it is made."""

    def __init__(self, backend: str, limits: Limits, uid_base: int = BASE) -> None:
        """Raises SandboxUnavailable in the name of `backend`: nothing is reserved then."""
        self._backend = backend
        self._limits = limits
        self._id = secrets.token_hex(4)
        try:
            self._uid = lease_uid(uid_base)
        except OSError as error:
            raise unavailable(backend, error) from None
        try:
            self._folder = make_folder(self._id)
        except (OSError, ValueError) as error:
            self._uid.release()
            raise unavailable(backend, error) from None
        self._process_one = ProcessOne(self._send)
        self._supervising: asyncio.Task[ExitReport] | None = None
        self._cpu_before = 0.0
        self._cpu_budget = math.inf
        self._going = asyncio.Event()
        """Something inside runs: who watches limits has something to see."""
        self._going.set()
        self._killed = False
        self._closed = False

    @property
    def id(self) -> str:
        """Names the folder and all else of it."""
        return self._id

    @property
    def uid(self) -> int:
        """The uid of its processes on the host."""
        return self._uid.uid

    @property
    def folder(self) -> HostFolder:
        """Its folder on the host."""
        return self._folder

    def begin(self, wall: float, cpu_budget: float) -> None:
        """Start process 1's clock; the CPU budget counts from here."""
        self._cpu_before = self.usage().cpu_seconds
        self._cpu_budget = cpu_budget
        self._process_one.begin(wall)

    async def freeze(self) -> int:
        """Stop everything inside but process 1; how many threads stand still."""
        stopped = await super().freeze()
        self._going.clear()
        return stopped

    async def thaw(self) -> None:
        """Let everything go on."""
        self._going.set()
        await super().thaw()

    async def wait(self) -> ExitReport:
        """Wait until nothing of it lives."""
        assert self._supervising is not None, "start comes first"
        return await asyncio.shield(self._supervising)

    def _send(self, message: bytes) -> None:
        """Bring a message to process 1's standard input. Raises OSError when it is dead."""
        raise NotImplementedError

    def _over_cpu(self) -> bool:
        """Whether the job has spent its seconds of CPU."""
        return self.usage().cpu_seconds - self._cpu_before > self._cpu_budget

    def _release(self) -> None:
        """Give uid and folder back."""
        try:
            remove_folder(self._folder)
        finally:
            self._uid.release()
