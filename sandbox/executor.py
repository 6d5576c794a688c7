"""The two faces of one core: `AsyncExecutor` for a program with a loop, `Executor` for one without.

with Executor([orders], scopes={"orders:read"}) as executor:
    result = executor.execute_code("from tools import orders\\nprint(orders.get_order(4521))")
    print(result.for_model())
    with executor.session(user="ada") as session:  # what a script leaves is there for the next
        session.execute_code("total = 6 * 7")
        session.execute_code("print(total)")
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, Self

from ..bridge.session import Principal
from .activity import OnActivity
from .calling import Listeners, execute, execute_async, refuse_running_loop
from .face import CLOSE_SECONDS, Face
from .inputs import Data, check_inputs
from .output import OnOutput
from .result import ExecutionResult
from .session_faces import AsyncSession, Session

__all__ = ["AsyncExecutor", "Executor"]


class Executor(Face):
    """Runs scripts for a program without an event loop; any thread may use it."""

    def execute_code(
        self,
        script: str,
        *,
        wall: float | None = None,
        limits: Mapping[str, Any] | None = None,
        data: Data = (),
        user: str | None = None,
        tenant: str | None = None,
        on_output: OnOutput | None = None,
        on_activity: OnActivity | None = None,
    ) -> ExecutionResult:
        """Run one script to its end, whatever that is.

        Args:
            script: Python source, or Markdown with one fenced block of it.
            wall: Seconds; the same as `limits={"wall": ...}`.
            limits: Limits of this execution that are lower than the executor's own.
            data: Files and folders that the script reads under /data: paths, or a mapping of names
                to paths, bytes or files open in binary mode. They are copied.
            user: On whose behalf; handlers see it in their ToolContext.
            tenant: Likewise.
            on_output: Called in this thread with ("stdout" | "stderr" | "progress", text) while
                the script runs; what it raises cancels the execution and is raised here.
            on_activity: Called likewise with an Activity, the calls so far, four times a second.

        Raises:
            ConfigurationError: Called from a running event loop, after a fork, or when closed.
        """
        refuse_running_loop("Executor.execute_code")
        narrowed, inputs = self._narrowed(wall, limits), check_inputs(data)
        return execute(
            *self._ready(),
            Listeners(on_output, on_activity),
            script=script,
            limits=narrowed,
            inputs=inputs,
            principal=Principal(user=user, tenant=tenant),
        )

    def session(
        self,
        *,
        user: str | None = None,
        tenant: str | None = None,
        principal: Principal | None = None,
        scopes: Collection[str] | None = None,
        limits: Mapping[str, Any] | None = None,
        idle: float | None = None,
        life: float | None = None,
    ) -> Session:
        """Begin a session: scripts that go on where the one before ended, as in a notebook.

        Args:
            user: On whose behalf, in all its scripts.
            tenant: Likewise.
            principal: Both in one.
            scopes: Some of the executor's; by default all of them.
            limits: Limits of each execution that are lower than the executor's own.
            idle: Seconds after which its state is lost when nobody uses it.
            life: Seconds after which it is lost in any case, between two scripts.

        Raises:
            ConfigurationError: Called from a running event loop, after a fork, or when closed; a
                scope or a limit that the executor does not have.
        """
        refuse_running_loop("Executor.session")
        options = self._session_options(principal, user, tenant, scopes, limits, idle, life)
        thread, core = self._ready()
        return Session(thread, core, thread.submit(core.open_session(**options)).result())

    def close(self) -> None:
        """Cancel what runs, end the sessions and release everything."""
        future = self._submit_close()
        if future is not None:
            future.result(timeout=CLOSE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncExecutor(Face):
    """Runs scripts for a program with an event loop; its coroutine tools run on that loop."""

    async def execute_code(
        self,
        script: str,
        *,
        wall: float | None = None,
        limits: Mapping[str, Any] | None = None,
        data: Data = (),
        user: str | None = None,
        tenant: str | None = None,
        on_output: OnOutput | None = None,
        on_activity: OnActivity | None = None,
    ) -> ExecutionResult:
        """Run one script to its end, as `Executor.execute_code` does.

        `on_output` and `on_activity` are called on this loop. Cancelling the await kills the
        sandbox first, and waits until nothing of it runs.
        """
        narrowed, inputs = self._narrowed(wall, limits), check_inputs(data)
        return await execute_async(
            *self._ready(),
            Listeners(on_output, on_activity),
            script=script,
            limits=narrowed,
            inputs=inputs,
            principal=Principal(user=user, tenant=tenant),
        )

    def session(
        self,
        *,
        user: str | None = None,
        tenant: str | None = None,
        principal: Principal | None = None,
        scopes: Collection[str] | None = None,
        limits: Mapping[str, Any] | None = None,
        idle: float | None = None,
        life: float | None = None,
    ) -> AsyncSession:
        """Begin a session, as `Executor.session` does: `async with executor.session() as one`."""
        options = self._session_options(principal, user, tenant, scopes, limits, idle, life)
        thread, core = self._ready()
        return AsyncSession(thread, core, thread.submit(core.open_session(**options)).result())

    async def close(self) -> None:
        """Cancel what runs, end the sessions and release everything."""
        future = self._submit_close()
        if future is not None:
            await asyncio.wait_for(asyncio.wrap_future(future), CLOSE_SECONDS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
