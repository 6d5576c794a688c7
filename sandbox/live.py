"""One execution in one sandbox: from the listener's opening to the last byte of the printout.

The teardown has a fixed order: revoke, so that no tool starts any more; cancel what runs; kill and
wait until nothing lives; only then read counters and what is left in the sockets; then remove.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any

from ..bridge.call import CallNext
from ..bridge.server import Listener
from ..bridge.session import Execution
from ..runtime.errors import ProtocolError, SandboxUnavailable
from .backend import ExitCause, ExitReport, Limits, Sandbox
from .output import OnOutput, OutputListener
from .printout import Printout
from .verdict import Facts

log = logging.getLogger("limbeck.sandbox")

START_SECONDS = 30.0
"""How long a sandbox may take from its start to its worker's Hello."""

EXIT_GRACE = 1.0
"""After the stream breaks: how long process 1 has to report why."""

TEARDOWN_SECONDS = 5.0
"""Bound of one step of the teardown; what is late is logged and left to the reaper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What a live sandbox is to do."""

    script: str
    gate: bool
    fingerprint: str
    """Of the gate's policy on the host; the worker's must be the same."""
    stubs: Mapping[str, str]
    """File name to source."""
    limits: Limits
    execution: Execution
    cancel: asyncio.Event


class LiveSandbox:
    """Runs one assignment in a created sandbox and tears it down."""

    def __init__(
        self,
        sandbox: Sandbox,
        pipeline: CallNext,
        printout: Printout,
        maximum: int,
        on_output: OnOutput | None,
    ) -> None:
        self._sandbox = sandbox
        self._listener = Listener(pipeline)
        self._output = OutputListener(printout, maximum, on_output)
        self.wall = 0.0
        """Seconds from the job to its end."""

    async def run(self, assignment: Assignment) -> Facts:
        """Run the script to its end, whatever that is. Raises SandboxUnavailable: nothing ran."""
        try:
            await self._start(assignment)
            seen = await self._serve(assignment)
        finally:
            assignment.execution.revoke()
            report = await self._tear_down()
        return Facts(limits=assignment.limits, exit=report, **seen)

    async def _start(self, assignment: Assignment) -> None:
        folder, uid = self._sandbox.folder, self._sandbox.uid
        for name, source in assignment.stubs.items():
            (folder.tools / name).write_text(source, "utf-8")
        await self._listener.open(folder.bridge, uid)
        self._output.open(folder.bridge, uid)
        await self._sandbox.start()
        gone = asyncio.create_task(self._sandbox.wait())
        cancelled = asyncio.create_task(assignment.cancel.wait())
        attached = self._listener.attached
        first: list[asyncio.Future[Any]] = [gone, cancelled, attached]
        try:
            await asyncio.wait(
                first,
                timeout=START_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            gone.cancel()
            cancelled.cancel()
        if assignment.cancel.is_set():
            return
        if not attached.done():
            raise SandboxUnavailable({"sandbox": await self._why_not_started()})
        try:
            hello = attached.result()
        except ProtocolError as error:
            raise SandboxUnavailable({"sandbox": str(error)}) from None
        if hello.gate != assignment.fingerprint:
            text = "the gate's policy inside the sandbox is not the host's; remove the old runtime"
            raise SandboxUnavailable({"sandbox": text})

    async def _why_not_started(self) -> str:
        report = await self._sandbox.kill()
        text = report.diagnosis.strip()
        if report.cause is ExitCause.KILLED:
            return f"the worker did not answer within {START_SECONDS:g} s. {text}".strip()
        return f"the sandbox ended before its worker was ready: {text or report.cause}"

    async def _serve(self, assignment: Assignment) -> dict[str, Any]:
        """Send the job and wait for the first thing that ends it."""
        if assignment.cancel.is_set():
            return {"cancelled": True}
        listener, wall = self._listener, assignment.limits.wall
        began = time.monotonic()
        assignment.execution.begin()
        self._sandbox.begin(wall)
        listener.serve(assignment.execution, assignment.script, gate=assignment.gate)
        events: dict[str, asyncio.Future[Any]] = {
            "cancelled": asyncio.ensure_future(assignment.cancel.wait()),
            "overflow": asyncio.ensure_future(self._output.overflow.wait()),
            "exit": asyncio.ensure_future(self._sandbox.wait()),
            "ended": asyncio.ensure_future(listener.ended.wait()),
            "done": listener.done,
        }
        try:
            await asyncio.wait(events.values(), timeout=wall, return_when=asyncio.FIRST_COMPLETED)
            self.wall = time.monotonic() - began
            return await self._what_ended(events)
        finally:
            for name, future in events.items():
                if name != "done":
                    future.cancel()

    async def _what_ended(self, events: Mapping[str, asyncio.Future[Any]]) -> dict[str, Any]:
        if events["cancelled"].done():
            return {"cancelled": True}
        if events["overflow"].done():
            return {"overflow": True}
        if events["done"].done():
            done = events["done"].result()
            return {"done": (done.exit_code, done.error)}
        if events["exit"].done():
            return {}
        if events["ended"].done():
            await asyncio.wait([events["exit"]], timeout=EXIT_GRACE)
            return {"stream_broken": not events["exit"].done()}
        return {"deadline": True}

    async def _tear_down(self) -> ExitReport:
        await _bounded("cancelling calls", self._listener.end_calls())
        report = await self._sandbox.kill()
        await _bounded("draining output", self._output.drain())
        await _bounded("closing the bridge", self._listener.close())
        return report


async def _bounded(what: str, step: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(TEARDOWN_SECONDS):
            await step
    except TimeoutError:
        log.error("%s took over %g s", what, TEARDOWN_SECONDS)
    except Exception:
        log.exception("%s failed", what)
