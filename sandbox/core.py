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
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..bridge.audit import AuditLog
from ..bridge.budget import Spending
from ..bridge.handlers import HandlerRunner
from ..bridge.policy import Policy, build_pipeline
from ..bridge.session import Execution, Principal, Session
from ..bridge.threads import DaemonPool
from ..runtime import gate
from ..runtime.errors import SandboxUnavailable
from ..runtime.script import NotPython, prepare
from ..stubs.catalog import Catalog
from ..stubs.render import render_catalog
from .activity import OnActivity, reported
from .backend import LONGEST_LIFE, Backend, Limits
from .cancelling import Cancelled, unless
from .earlier import name_inside
from .exhaustion import unavailable
from .inputs import Inputs
from .output import OnOutput
from .pool import PoolStatistics, SandboxPool
from .printout import QUOTA_BYTES, Printout, spool_folder, tidy_spool
from .result import ExecutionResult, SandboxInfo, Status
from .sessions import IDLE_SECONDS, LIFE_SECONDS, LiveSession, Sessions
from .summing import nothing_ran, sum_up
from .verdict import judge
from .vetting import Vetter
from .warm import Assignment, NotThawed, WarmSandbox

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
    """Sandboxes that run at a time; further executions wait in turn."""
    max_kept: int = field(default_factory=lambda: 8 * (os.cpu_count() or 1))
    """Sandboxes of sessions that stand still at a time, beside those that run; one more ends the
    longest idle one."""
    session_idle: float = IDLE_SECONDS
    """Seconds after which a session's sandbox ends when nobody uses it."""
    session_life: float = LIFE_SECONDS
    """Seconds after which it ends in any case, between two scripts."""


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
    on_activity: OnActivity | None = None
    """Called from limbeck's loop."""
    session: LiveSession | None = None
    """Whose state it goes on with; `principal` is the session's then."""


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
        self.sessions = Sessions(self._pool.discard, settings.max_kept)
        self._slots = asyncio.Semaphore(settings.max_sandboxes)
        self._queued = 0
        self._checking = asyncio.Lock()
        self._checks: set[asyncio.Task[str | None]] = set()
        self._vetter: Vetter | None = None
        self._running: dict[asyncio.Task[Any], asyncio.Event] = {}
        self.closed = False
        self._spool = spool_folder()
        self._tidy_spool()

    async def execute(self, request: Request) -> ExecutionResult:
        """Run one script from its text to its result."""
        execution_id = uuid.uuid4().hex
        task = asyncio.current_task()
        assert task is not None, "a coroutine of ours runs in a task"
        self._running[task] = request.cancel
        try:
            if self.closed:
                raise Cancelled
            if request.session is None:
                return await self._execute(request, execution_id)
            return await self._in_turn(request, request.session, execution_id)
        except SandboxUnavailable as error:
            return nothing_ran(execution_id, Status.UNAVAILABLE, "unavailable", str(error))
        except Cancelled:
            text = "the execution was cancelled"
            return nothing_ran(execution_id, Status.CANCELLED, "cancelled", text)
        finally:
            del self._running[task]

    async def close(self) -> None:
        """Cancel what runs, and release threads and the vetting child."""
        self.closed = True
        for cancel in self._running.values():
            cancel.set()
        if self._running:
            await asyncio.wait(list(self._running))
        if self._vetter is not None:
            await self._vetter.close()
        if self._checks:
            await asyncio.wait(self._checks)
        self.sessions.close_all()
        await self._pool.close()
        self._threads.close()

    async def open_session(
        self,
        principal: Principal,
        scopes: frozenset[str] | None,
        limits: Limits,
        *,
        idle: float,
        life: float,
    ) -> LiveSession:
        """Begin a session; nothing starts before its first script. `scopes` None: the settings'."""
        catalog, stubs = self._catalog, self._stubs
        if scopes is not None and scopes != self.settings.scopes:
            catalog = self.settings.whole.visible(scopes)
            stubs = render_catalog(catalog)
        policy = self.settings.policy
        session = Session(
            catalog=catalog,
            whole=self.settings.whole,
            audit=self.audit,
            principal=principal,
            budget=policy.budget,
            spending=Spending(policy.session_budget or policy.budget),
        )
        return LiveSession(session, stubs, limits, idle=idle, life=min(life, LONGEST_LIFE))

    async def _in_turn(
        self, request: Request, live: LiveSession, execution_id: str
    ) -> ExecutionResult:
        """One execution at a time in a session; who comes meanwhile waits."""
        live.cancels.add(request.cancel)
        try:
            if live.closed or len(live.cancels) > self.settings.max_queued:
                text = "it is closed" if live.closed else "too many executions wait in it already"
                return nothing_ran(execution_id, Status.UNAVAILABLE, "session", f"session: {text}")
            await unless(request.cancel, live.turn.acquire())
            try:
                result = await self._execute(request, execution_id)
            finally:
                live.turn.release()
        finally:
            live.cancels.discard(request.cancel)
        return replace(result, session_id=live.session.id)

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
            return nothing_ran(
                execution_id, Status.REFUSED, error.code, error.message, hint=error.hint
            )
        problem = await unless(request.cancel, self._check_in_background())
        if problem is not None:
            text = f"{settings.backend.name}: {problem}"
            return nothing_ran(execution_id, Status.UNAVAILABLE, "unavailable", text)
        faults = await unless(request.cancel, self._vet(script))
        if faults:
            count = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}"
            return nothing_ran(
                execution_id,
                Status.REFUSED,
                "refused",
                f"the script was refused, {count}:",
                faults=tuple(map(str, faults)),
            )
        queued = self._slots.locked()
        if queued and self._queued >= settings.max_queued:
            text = f"{settings.max_queued} executions wait already; try again later"
            return nothing_ran(execution_id, Status.UNAVAILABLE, "queue_full", text)
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
        """Run it in a sandbox of its own, or in the session's."""
        live = request.session
        if live is None:
            limits = request.limits or self.settings.limits
            one, start = await self._sandbox(limits, start, request.cancel)
            return await self._run_in(one, request, script, start)
        limits = request.limits or live.limits
        kept = self.sessions.take(live)
        if kept is not None:
            try:
                return await self._run_in(kept, request, script, "kept")
            except NotThawed:
                live.lose("its sandbox was lost while it stood still")
        one, start = await self._sandbox(limits, start, request.cancel)
        live.born = self.sessions.clock()
        return await self._run_in(one, request, script, start)

    async def _sandbox(
        self, limits: Limits, start: str, cancel: asyncio.Event
    ) -> tuple[WarmSandbox, str]:
        """A sandbox that has run nothing, and how it came to be there."""
        one = await self._pool.lease(limits)
        if one is not None:
            return one, "warm"
        return await self._open(limits, cancel), start

    async def _run_in(
        self, one: WarmSandbox, request: Request, script: str, start: str
    ) -> ExecutionResult:
        live = request.session
        limits = request.limits or (live.limits if live is not None else self.settings.limits)
        session = live.session if live is not None else self._session_of_one(request.principal)
        execution = Execution(
            session,
            wall=limits.wall,
            tool_loop=request.tool_loop,
            on_progress=_progress(request.on_output),
        )
        printout = Printout(kept=limits.output_kept, spool=self._spool / f"{execution.id}.txt")
        number = live.number + 1 if live is not None else 1
        try:
            info = SandboxInfo(
                backend=self.settings.backend.name,
                start=start,
                memory_limit=one.sandbox.memory_limit,
                image=one.sandbox.image,
            )
            assignment = Assignment(
                script=script,
                gate=self.settings.gate,
                open_modules=self.settings.open_modules,
                stubs=live.stubs if live is not None else self._stubs,
                inputs=request.inputs,
                limits=limits,
                execution=execution,
                cancel=request.cancel,
                printout=printout,
                on_output=request.on_output,
                keep=live is not None,
                number=number,
                earlier=live.printouts if live is not None else None,
            )
            async with reported(execution, request.on_activity):
                facts = await one.run(assignment)
        finally:
            if live is not None and one.kept:
                self.sessions.keep(live, one)
            else:
                # It is dead already; removing what is left of it is nobody's to wait for.
                self._pool.discard(one)
        verdict = judge(facts)
        if live is not None:
            verdict = live.ended(verdict, one, number, printout)
        if printout.spooled:
            await self._threads.run(partial(self._tidy_spool, printout.spooled))
        inside = name_inside(number) if live is not None else None
        return sum_up(execution, verdict, facts, printout, one.wall, info, inside)

    def _session_of_one(self, principal: Principal) -> Session:
        return Session(
            catalog=self._catalog,
            whole=self.settings.whole,
            audit=self.audit,
            principal=principal,
            budget=self.settings.policy.budget,
        )

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


def _progress(on_output: OnOutput | None) -> Callable[[str], None] | None:
    if on_output is None:
        return None
    return lambda text: on_output("progress", text)
