"""The two faces of a session: scripts one after the other, each going on where the last one ended.

What a session keeps lives in its sandbox, which stands still between two scripts. It may be lost: a
script that is stopped by a limit takes it along, and so does time. The result says so then
(warning `state_gone`), and the next script begins anew.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Mapping
from typing import Any, Self

from ..runtime.errors import ConfigurationError
from ..stubs.catalog import Catalog
from .activity import OnActivity
from .backend import Limits
from .calling import Listeners, execute, execute_async, refuse_running_loop
from .checks import narrowed_limits
from .core import Core
from .face import CLOSE_SECONDS
from .inputs import Data, Inputs, check_inputs
from .loop import LoopThread
from .output import OnOutput
from .result import ExecutionResult
from .sessions import LiveSession

FIXED = frozenset({"memory", "cpu", "pids", "tmp", "workspace"})
"""Limits that a sandbox is made with: the same for all scripts of a session."""


class _SessionFace:
    """What both faces share. A session that is dropped ends as one that is closed."""

    def __init__(self, thread: LoopThread, core: Core, live: LiveSession) -> None:
        self._thread = thread
        self._core = core
        self._live = live
        self._ending = weakref.finalize(self, _end_dropped, thread, core, live, os.getpid())
        self._ending.atexit = False  # All executors are closed then.

    @property
    def id(self) -> str:
        """As in ToolContext.session_id and ExecutionResult.session_id."""
        return self._live.session.id

    @property
    def catalog(self) -> Catalog:
        """What its scripts see: the tools that its scopes allow."""
        return self._live.session.catalog

    def _checked(
        self, wall: float | None, limits: Mapping[str, Any] | None, data: Data
    ) -> tuple[Limits, Inputs]:
        self._thread.check_process()
        if self._live.closed or self._core.closed:
            raise ConfigurationError("session", "it is closed", "make a new one.")
        narrowed = narrowed_limits(self._live.limits, wall, limits, fixed=FIXED)
        return narrowed, check_inputs(data)


class Session(_SessionFace):
    """Of an `Executor`; any thread may use it, one script runs at a time."""

    def execute_code(
        self,
        script: str,
        *,
        wall: float | None = None,
        limits: Mapping[str, Any] | None = None,
        data: Data = (),
        on_output: OnOutput | None = None,
        on_activity: OnActivity | None = None,
    ) -> ExecutionResult:
        """Run the session's next script to its end; a second one waits for its turn.

        Variables, imports and files in /workspace are as the script before left them. What is
        given as `data` lies in /data beside what was given before, or replaces it.

        Raises:
            ConfigurationError: As `Executor.execute_code`; also a limit that is fixed for the
                session.
        """
        refuse_running_loop("Session.execute_code")
        narrowed, inputs = self._checked(wall, limits, data)
        return execute(
            self._thread,
            self._core,
            Listeners(on_output, on_activity),
            script=script,
            limits=narrowed,
            inputs=inputs,
            session=self._live,
        )

    def close(self) -> None:
        """Cancel what runs in it and kill its sandbox."""
        self._ending.detach()
        if not self._live.closed:
            future = self._thread.submit(self._core.sessions.close(self._live))
            future.result(timeout=CLOSE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncSession(_SessionFace):
    """Of an `AsyncExecutor`; one script runs at a time."""

    async def execute_code(
        self,
        script: str,
        *,
        wall: float | None = None,
        limits: Mapping[str, Any] | None = None,
        data: Data = (),
        on_output: OnOutput | None = None,
        on_activity: OnActivity | None = None,
    ) -> ExecutionResult:
        """Run the session's next script to its end, as `Session.execute_code` does.

        Cancelling the await kills the sandbox first; the next result says that the state is gone.
        """
        narrowed, inputs = self._checked(wall, limits, data)
        return await execute_async(
            self._thread,
            self._core,
            Listeners(on_output, on_activity),
            script=script,
            limits=narrowed,
            inputs=inputs,
            session=self._live,
        )

    async def close(self) -> None:
        """Cancel what runs in it and kill its sandbox."""
        self._ending.detach()
        if not self._live.closed:
            future = self._thread.submit(self._core.sessions.close(self._live))
            await asyncio.wait_for(asyncio.wrap_future(future), CLOSE_SECONDS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _end_dropped(thread: LoopThread, core: Core, live: LiveSession, pid: int) -> None:
    """Nobody can use it any more; called wherever the collector comes by."""
    if os.getpid() == pid and not live.closed:
        thread.loop.call_soon_threadsafe(core.sessions.drop, live)
