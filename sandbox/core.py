"""The walk of one execute_code, on limbeck's own loop: vet, sandbox, bridge, result.

`Core` is what both faces of the executor share. It never raises for what a script or a sandbox
does: every end is an ExecutionResult.
"""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..bridge.audit import AuditLog
from ..bridge.handlers import HandlerRunner
from ..bridge.policy import Policy, build_pipeline
from ..bridge.session import Execution, Principal, Session
from ..bridge.threads import DaemonPool
from ..runtime import gate
from ..runtime.errors import SandboxUnavailable
from ..runtime.script import NotPython, prepare
from ..stubs.catalog import Catalog
from ..stubs.render import render_catalog
from .backend import Backend, Limits
from .cancelling import Cancelled, unless
from .exhaustion import unavailable
from .inputs import Inputs
from .output import OnOutput
from .pool import PoolStatistics, SandboxPool
from .printout import QUOTA_BYTES, Printout, spool_folder, tidy_spool
from .result import (
    Artifact,
    CallSummary,
    ErrorInfo,
    ExecutionResult,
    SandboxInfo,
    Status,
    Truncation,
    UsageSummary,
    Warning,
)
from .verdict import Facts, Verdict, judge
from .vetting import Vetter
from .warm import Assignment, WarmSandbox

log = logging.getLogger("limbeck.sandbox")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an executor is made of."""

    whole: Catalog
    scopes: frozenset[str]
    backend: Backend
    limits: Limits = field(default_factory=Limits)
    policy: Policy = field(default_factory=Policy)
    gate: bool = True
    open_modules: frozenset[str] = frozenset()
    """Packages that gated scripts import as they are; that gives up the gate's claims for them."""
    spool_quota: int = QUOTA_BYTES
    """Bytes of all spooled printouts together; the oldest go first."""
    warm: int = 0
    """Sandboxes that wait with their workers connected."""
    max_queued: int = 256
    """Executions that may wait for a place; one more is told so at once."""
    max_sandboxes: int = field(default_factory=lambda: 4 * (os.cpu_count() or 1))
    """Sandboxes that live at a time; further executions wait in turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One execute_code."""

    script: str
    tool_loop: asyncio.AbstractEventLoop
    cancel: asyncio.Event
    limits: Limits | None = None
    """At most the settings' own; None: those."""
    inputs: Inputs = field(default_factory=dict)
    principal: Principal = field(default_factory=Principal)
    on_output: OnOutput | None = None
    """Called from limbeck's loop and from handler threads."""


class Core:
    """Runs executions; belongs to limbeck's loop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.audit = AuditLog()
        self._catalog = settings.whole.visible(settings.scopes)
        self._stubs = render_catalog(self._catalog)
        self._threads = DaemonPool("limbeck-handler")
        self._pipeline = build_pipeline(settings.policy, HandlerRunner(self._threads))
        stock = {settings.limits: settings.warm}
        self._pool = SandboxPool(self._open, settings.backend.shape, stock)
        self._slots = asyncio.Semaphore(settings.max_sandboxes)
        self._queued = 0
        self._checking = asyncio.Lock()
        self._checks: set[asyncio.Task[str | None]] = set()
        self._vetter: Vetter | None = None
        self._running: dict[asyncio.Task[Any], asyncio.Event] = {}
        self._spool = spool_folder()
        self._tidy_spool()

    async def execute(self, request: Request) -> ExecutionResult:
        """Run one script from its text to its result."""
        execution_id = uuid.uuid4().hex
        task = asyncio.current_task()
        assert task is not None, "a coroutine of ours runs in a task"
        self._running[task] = request.cancel
        try:
            return await self._execute(request, execution_id)
        except SandboxUnavailable as error:
            return _nothing_ran(execution_id, Status.UNAVAILABLE, "unavailable", str(error))
        except Cancelled:
            text = "the execution was cancelled"
            return _nothing_ran(execution_id, Status.CANCELLED, "cancelled", text)
        finally:
            del self._running[task]

    async def close(self) -> None:
        """Cancel what runs, and release threads and the vetting child."""
        for cancel in self._running.values():
            cancel.set()
        if self._running:
            await asyncio.wait(list(self._running))
        if self._vetter is not None:
            await self._vetter.close()
        if self._checks:
            await asyncio.wait(self._checks)
        await self._pool.close()
        self._threads.close()

    def statistics(self) -> PoolStatistics:
        """What the warm pool has and did."""
        return self._pool.statistics()

    async def check_backend(self) -> str | None:
        """None when the backend works, else what is wrong and how to mend it."""
        async with self._checking:
            try:
                return await self.settings.backend.check()
            except OSError as error:
                return unavailable(self.settings.backend.name, error).reasons[
                    self.settings.backend.name
                ]

    def _check_in_background(self) -> asyncio.Future[str | None]:
        """A check that goes on when the one who waits for it does not: its answer is for all."""
        task = asyncio.create_task(self.check_backend())
        self._checks.add(task)
        task.add_done_callback(self._checks.discard)
        return asyncio.shield(task)

    async def _execute(self, request: Request, execution_id: str) -> ExecutionResult:
        settings = self.settings
        try:
            script = prepare(request.script, settings.limits.script)
        except NotPython as error:
            return _nothing_ran(
                execution_id, Status.REFUSED, error.code, error.message, hint=error.hint
            )
        problem = await unless(request.cancel, self._check_in_background())
        if problem is not None:
            text = f"{settings.backend.name}: {problem}"
            return _nothing_ran(execution_id, Status.UNAVAILABLE, "unavailable", text)
        faults = await unless(request.cancel, self._vet(script))
        if faults:
            count = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}"
            return _nothing_ran(
                execution_id,
                Status.REFUSED,
                "refused",
                f"the script was refused, {count}:",
                faults=tuple(map(str, faults)),
            )
        queued = self._slots.locked()
        if queued and self._queued >= settings.max_queued:
            text = f"{settings.max_queued} executions wait already; try again later"
            return _nothing_ran(execution_id, Status.UNAVAILABLE, "queue_full", text)
        self._queued += 1
        try:
            await unless(request.cancel, self._slots.acquire())
        finally:
            self._queued -= 1
        try:
            if request.cancel.is_set():
                raise Cancelled
            return await self._run(request, script, "queued" if queued else "cold")
        finally:
            self._slots.release()

    async def _vet(self, script: str) -> list[gate.Fault]:
        where = self.settings.backend.vetting()
        if where is None:
            return gate.vet(
                script, gate=self.settings.gate, open_modules=self.settings.open_modules
            )
        if self._vetter is None:
            self._vetter = Vetter(*where)
        try:
            return await self._vetter.vet(script, self.settings.gate, self.settings.open_modules)
        except OSError as error:
            raise unavailable("the vetting child", error) from error

    async def _run(self, request: Request, script: str, start: str) -> ExecutionResult:
        limits = request.limits or self.settings.limits
        session = Session(
            catalog=self._catalog,
            whole=self.settings.whole,
            audit=self.audit,
            principal=request.principal,
            budget=self.settings.policy.budget,
        )
        execution = Execution(
            session,
            wall=limits.wall,
            tool_loop=request.tool_loop,
            on_progress=_progress(request.on_output),
        )
        printout = Printout(kept=limits.output_kept, spool=self._spool / f"{execution.id}.txt")
        one = await self._pool.lease(limits)
        start = start if one is None else "warm"
        if one is None:
            one = await self._open(limits, request.cancel)
        try:
            info = SandboxInfo(
                backend=self.settings.backend.name,
                start=start,
                memory_limit=one.sandbox.memory_limit,
                image=one.sandbox.image,
            )
            facts = await one.run(
                Assignment(
                    script=script,
                    gate=self.settings.gate,
                    open_modules=self.settings.open_modules,
                    stubs=self._stubs,
                    inputs=request.inputs,
                    limits=limits,
                    execution=execution,
                    cancel=request.cancel,
                    printout=printout,
                    on_output=request.on_output,
                )
            )
        finally:
            # It is dead already; removing what is left of it is nobody's to wait for.
            self._pool.discard(one)
        if printout.spooled:
            await self._threads.run(partial(self._tidy_spool, printout.spooled))
        return _result(execution, judge(facts), facts, printout, one.wall, info)

    def _tidy_spool(self, just_written: Path | None = None) -> None:
        for problem in tidy_spool(self._spool, self.settings.spool_quota, just_written):
            log.warning("a printout stays over the quota: %s", problem)

    async def _open(self, limits: Limits, cancel: asyncio.Event | None = None) -> WarmSandbox:
        try:
            return await WarmSandbox.open(
                self.settings.backend,
                limits,
                self._pipeline,
                gate.fingerprint(),
                cancel,
            )
        except OSError as error:
            # The host lacks descriptors, memory or disk: nothing ran, and nothing is left.
            text = f"{error.strerror or error}; the host has no room for another sandbox"
            raise SandboxUnavailable({self.settings.backend.name: text}) from error


def _result(
    execution: Execution,
    verdict: Verdict,
    facts: Facts,
    printout: Printout,
    wall: float,
    info: SandboxInfo,
) -> ExecutionResult:
    counts = execution.counts
    warnings = verdict.warnings
    if printout.spool_error:
        text = f"the whole printout could not be written: {printout.spool_error}"
        warnings = (*warnings, Warning(code="spool", message=text))
    spooled = printout.spooled
    return ExecutionResult(
        execution_id=execution.id,
        status=verdict.status,
        started=verdict.started,
        exit_code=verdict.exit_code,
        printout=printout.text(),
        truncated=Truncation(
            kept=printout.kept, total=printout.total, path=str(spooled) if spooled else None
        )
        if printout.truncated
        else None,
        error=verdict.error,
        calls=CallSummary(
            started=counts.started,
            succeeded=counts.succeeded,
            failed=counts.failed,
            denied=counts.denied,
            writes_applied=counts.writes_applied,
            unknown_outcome=counts.unknown_outcome,
            by_tool=dict(counts.by_tool),
        ),
        usage=UsageSummary(
            wall=wall,
            cpu=facts.exit.usage.cpu_seconds,
            memory_peak=facts.exit.usage.memory_peak,
            output_bytes=printout.total,
            result_bytes=execution.spending.result_bytes,
        ),
        artifacts=(Artifact(name="printout.txt", path=str(spooled), size=printout.total),)
        if spooled
        else (),
        warnings=warnings,
        sandbox=info,
    )


def _nothing_ran(
    execution_id: str,
    status: Status,
    code: str,
    message: str,
    *,
    hint: str = "",
    faults: tuple[str, ...] = (),
) -> ExecutionResult:
    return ExecutionResult(
        execution_id=execution_id,
        status=status,
        started=False,
        error=ErrorInfo(code=code, message=message, hint=hint, faults=faults),
    )


def _progress(on_output: OnOutput | None) -> Callable[[str], None] | None:
    if on_output is None:
        return None
    return lambda text: on_output("progress", text)
