"""One sandbox from its making to its end: opened until its worker waits, then run.

`open` may happen long before there is a job: a warm sandbox has its worker connected and idle, and
has run nothing. The teardown has a fixed order: revoke, so that no tool starts any more; cancel
what runs; kill and wait until nothing lives; only then read counters and what is left in the
sockets; then remove. A session's sandbox that is kept takes the same way with `freeze` in the place
of the kill, and stands still until its next script.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import threading
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..bridge.call import CallNext
from ..bridge.server import Listener
from ..bridge.session import Execution
from ..bridge.threads import DaemonPool
from ..runtime.errors import SandboxUnavailable
from ..runtime.wire_pb2 import Hello
from .backend import Backend, ExitCause, ExitReport, Limits, Sandbox
from .cancelling import Cancelled
from .earlier import EarlierPrintouts
from .exhaustion import unavailable
from .inputs import Inputs, copy_inputs
from .output import OnOutput, OutputListener
from .printout import Printout
from .remains import remains
from .verdict import Facts

log = logging.getLogger("limbeck.sandbox")

START_SECONDS = 30.0
"""How long a sandbox may take from its start to its worker's Hello."""

PING_SECONDS = 2.0
"""How long a waiting worker may take to answer; long, for a machine that is busy."""

EXIT_GRACE = 1.0
"""After the stream breaks: how long process 1 has to report why."""

KILL_SECONDS = 20.0
"""How long SIGKILL may take before the result goes out without the sandbox's report."""

TEARDOWN_SECONDS = 5.0
"""Bound of one step of the teardown; what is late is logged and left to the reaper."""

MOST_CPU = 2**31 - 1
"""Seconds that a job can name."""

WORKER_THREADS = 1
"""Of the worker itself: its main thread."""

_copiers = DaemonPool("limbeck-inputs", 4)
"""Copying large inputs must not hold the loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What a sandbox is to do, once."""

    script: str
    gate: bool
    open_modules: frozenset[str]
    """Packages that the script imports as they are."""
    stubs: Mapping[str, str]
    """File name to source."""
    inputs: Inputs
    limits: Limits
    execution: Execution
    cancel: asyncio.Event
    printout: Printout
    on_output: OnOutput | None
    keep: bool = False
    """Of a session: when the script comes to its own end, the sandbox stands still for the next."""
    number: int = 1
    """Of the execution in its session."""
    earlier: EarlierPrintouts | None = None
    """What the session's scripts before it printed."""


class NotThawed(SandboxUnavailable):
    """A kept sandbox is gone: nothing ran, another one may be taken."""


class WarmSandbox:
    """A sandbox with its bridge. `open`, then `run`, again while it is kept, then `close`."""

    def __init__(self, sandbox: Sandbox, pipeline: CallNext) -> None:
        self.sandbox = sandbox
        self._listener = Listener(pipeline)
        self._output = OutputListener()
        self._exit: asyncio.Task[ExitReport] | None = None
        self.opened = time.monotonic()
        """Seconds of the monotonic clock when it became warm."""
        self.wall = 0.0
        """Seconds from the latest job to its end."""
        self.kept = False
        """It stands still after a job, and can be given another."""
        self.threads_left = 0
        """Threads and processes of the script that stand still with it."""
        self._cpu_before = 0.0

    @classmethod
    async def open(
        cls,
        backend: Backend,
        limits: Limits,
        pipeline: CallNext,
        fingerprint: str,
        cancel: asyncio.Event | None = None,
    ) -> WarmSandbox:
        """Make one and wait for its worker. Raises SandboxUnavailable: nothing is left then.

        `fingerprint` is the gate's policy on the host; the worker's must be the same. A `cancel`
        that is set meanwhile ends the waiting; running it then ends at once.
        """
        try:
            sandbox = await backend.create(limits)
            return await cls._opened(sandbox, pipeline, fingerprint, cancel or asyncio.Event())
        except OSError as error:
            raise unavailable(backend.name, error) from error

    @classmethod
    async def _opened(
        cls, sandbox: Sandbox, pipeline: CallNext, fingerprint: str, cancel: asyncio.Event
    ) -> WarmSandbox:
        try:
            made = cls(sandbox, pipeline)
        except BaseException:
            await sandbox.close()
            raise
        try:
            await made._start(fingerprint, cancel)
        except BaseException:
            await made._tear_down()
            await made.close()
            raise
        made.opened = time.monotonic()
        return made

    @property
    def is_alive(self) -> bool:
        """Whether its worker still waits, as far as anybody has noticed."""
        return (
            self._exit is not None and not self._exit.done() and not self._listener.ended.is_set()
        )

    async def answers(self) -> bool:
        """Whether its worker answers a ping: what is stopped or stuck must not be lent."""
        return self.is_alive and await self._listener.ping(PING_SECONDS)

    async def run(self, assignment: Assignment) -> Facts:
        """Run the script to its end, whatever that is; kill the sandbox, or keep it: see `kept`.

        Raises SandboxUnavailable when the job could not be handed over: nothing ran, and what was
        kept is kept on (NotThawed: it is dead). So it is with Cancelled.
        """
        if self.kept:
            await self._furnish(assignment)
            if assignment.cancel.is_set():
                raise Cancelled
        report: ExitReport | None = None
        try:
            if not self.kept:
                await self._furnish(assignment)
            seen = await self._serve(assignment)
            if assignment.keep and "done" in seen:
                report = await self._stand_still(assignment)
        finally:
            assignment.execution.revoke()
            if report is None:
                self.kept = False
                report = await self._tear_down()
        if "done" in seen and self._output.overflow.is_set():
            seen["overflow"] = True  # In what was printed last.
        active = assignment.printout.total > 0 or assignment.execution.counts.started > 0
        report = self._since_last(report)
        return Facts(limits=assignment.limits, exit=report, active=active, **seen)

    async def _stand_still(self, assignment: Assignment) -> ExitReport | None:
        """The script has ended and the sandbox goes on: stop it. None: it cannot be kept."""
        assignment.execution.revoke()
        await _bounded("cancelling calls", self._listener.end_calls())
        try:
            threads = await self.sandbox.freeze()
        except SandboxUnavailable as error:
            log.warning("sandbox %s is not kept: %s", self.sandbox.id, error)
            return None
        # The execution has ended, nothing inside runs: what it left can be collected here.
        self._output.finish()
        if self._output.overflow.is_set():
            return None
        self.threads_left = max(threads - WORKER_THREADS, 0)
        self.kept = True
        return self.sandbox.so_far()

    def _since_last(self, report: ExitReport) -> ExitReport:
        """CPU of the latest job alone."""
        total = report.usage.cpu_seconds
        usage = replace(report.usage, cpu_seconds=max(total - self._cpu_before, 0.0))
        self._cpu_before = total
        return replace(report, usage=usage)

    async def _furnish(self, assignment: Assignment) -> None:
        """Put the stubs and the inputs where the sandbox reads them. Raises SandboxUnavailable."""
        folder = self.sandbox.folder
        if not self.kept:
            try:
                for name, source in assignment.stubs.items():
                    (folder.tools / name).write_text(source, "utf-8")
            except OSError as error:
                raise unavailable("sandbox", error) from None
        if not assignment.inputs and not assignment.earlier:
            return
        stop = threading.Event()
        copying = asyncio.ensure_future(
            _copiers.run(functools.partial(_copy, assignment, folder.data, stop))
        )
        cancelled = asyncio.ensure_future(assignment.cancel.wait())
        try:
            await asyncio.wait([copying, cancelled], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            cancelled.cancel()
            # The folder is removed soon: nobody may write into it any more.
            await asyncio.wait([copying])
        copying.result()

    async def close(self) -> None:
        """Kill it if it lives, and release everything."""
        if not self._listener.closed:
            await self._tear_down()
        await _bounded("removing the sandbox", self.sandbox.close())

    async def _kill(self) -> ExitReport:
        """Kill and wait; a process that even SIGKILL does not end must not hold the result."""
        try:
            async with asyncio.timeout(KILL_SECONDS):
                report = await self.sandbox.kill()
        except TimeoutError:
            log.error(
                "sandbox %s does not die, it is left to the reaper: %s",
                self.sandbox.id,
                remains(self.sandbox.uid),
            )
            return ExitReport(cause=ExitCause.LOST)
        if self._exit is not None:
            await asyncio.wait([self._exit], timeout=TEARDOWN_SECONDS)
        return report

    async def _start(self, fingerprint: str, cancel: asyncio.Event) -> None:
        folder, uid = self.sandbox.folder, self.sandbox.uid
        await self._listener.open(folder.bridge, uid)
        self._output.open(folder.bridge, uid)
        await self.sandbox.start()
        self._exit = asyncio.create_task(self.sandbox.wait())
        cancelled = asyncio.create_task(cancel.wait())
        ready = asyncio.create_task(self._until_ready())
        first: list[asyncio.Future[Any]] = [self._exit, cancelled, ready]
        try:
            await asyncio.wait(first, timeout=START_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            cancelled.cancel()
            hello = ready.result() if ready.done() else None
            ready.cancel()
        if cancel.is_set():
            return
        if hello is None:
            raise SandboxUnavailable({"sandbox": await self._why_not_started()})
        if hello.gate != fingerprint:
            text = "the gate's policy inside the sandbox is not the host's; build the image again"
            raise SandboxUnavailable({"sandbox": text})

    async def _until_ready(self) -> Hello:
        """The worker has its printout's streams, then the bridge's."""
        await asyncio.shield(self._output.connected)
        return await asyncio.shield(self._listener.attached)

    async def _why_not_started(self) -> str:
        report = await self.sandbox.kill()
        text = report.diagnosis.strip()
        if report.cause is ExitCause.KILLED:
            return f"the worker did not answer within {START_SECONDS:g} s. {text}".strip()
        return f"the sandbox ended before its worker was ready: {text or report.cause}"

    async def _serve(self, assignment: Assignment) -> dict[str, Any]:
        """Send the job and wait for the first thing that ends it."""
        if assignment.cancel.is_set():
            return {"cancelled": True, "begun": False}
        assert self._exit is not None, "open comes first"
        limits, listener = assignment.limits, self._listener
        self._output.begin(assignment.printout, limits.output_max, assignment.on_output)
        began = time.monotonic()
        assignment.execution.begin()
        self.sandbox.begin(limits.wall, limits.cpu_budget)
        await self._thaw()
        listener.serve(
            assignment.execution,
            assignment.script,
            gate=assignment.gate,
            open_modules=assignment.open_modules,
            keep=assignment.keep,
            number=assignment.number,
            cpu_seconds=min(math.ceil(limits.cpu_budget), MOST_CPU),
        )
        events: dict[str, asyncio.Future[Any]] = {
            "cancelled": asyncio.ensure_future(assignment.cancel.wait()),
            "overflow": asyncio.ensure_future(self._output.overflow.wait()),
            "ended": asyncio.ensure_future(listener.ended.wait()),
        }
        lasting: dict[str, asyncio.Future[Any]] = {"exit": self._exit, "done": listener.done}
        try:
            await asyncio.wait(
                [*events.values(), *lasting.values()],
                timeout=limits.wall,
                return_when=asyncio.FIRST_COMPLETED,
            )
            self.wall = time.monotonic() - began
            return await _what_ended({**events, **lasting}, listener)
        finally:
            for future in events.values():
                future.cancel()

    async def _thaw(self) -> None:
        """Let a kept sandbox go on, its clock already told of the job. Raises NotThawed."""
        if not self.kept:
            return
        self.kept = False
        try:
            await self.sandbox.thaw()
        except SandboxUnavailable as error:
            raise NotThawed(error.reasons) from None

    async def _tear_down(self) -> ExitReport:
        await _bounded("cancelling calls", self._listener.end_calls())
        report = await self._kill()
        await _bounded("draining output", self._output.drain())
        await _bounded("closing the bridge", self._listener.close())
        return report


def _copy(assignment: Assignment, data: Path, stop: threading.Event) -> None:
    if assignment.earlier:
        assignment.earlier.write(data)
    if assignment.inputs:
        copy_inputs(assignment.inputs, data, stop, assignment.limits.inputs)


async def _what_ended(
    events: Mapping[str, asyncio.Future[Any]], listener: Listener
) -> dict[str, Any]:
    if events["cancelled"].done():
        return {"cancelled": True}
    if events["overflow"].done():
        return {"overflow": True}
    if events["done"].done():
        done = events["done"].result()
        return {"done": (done.exit_code & 0xFF, done.error)}
    if events["exit"].done():
        return {}
    if listener.fault:
        return {"fault": listener.fault}
    if events["ended"].done():
        await asyncio.wait([events["exit"]], timeout=EXIT_GRACE)
        return {"stream_broken": not events["exit"].done()}
    return {"deadline": True}


async def _bounded(what: str, step: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(TEARDOWN_SECONDS):
            await step
    except TimeoutError:
        log.error("%s took over %g s", what, TEARDOWN_SECONDS)
    except Exception:
        log.exception("%s failed", what)
