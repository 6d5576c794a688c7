"""The end of the pipeline: runs a tool's handler, whatever kind it is.

Plain functions and generators run in daemon threads; coroutines and async generators on the
caller's loop. Only a ToolFailed that the handler raises reaches the script; anything else is
logged on the host and becomes a ToolFailed that says nothing of it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import hashlib
import inspect
import logging
import threading
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from typing import Any

from ..runtime.errors import ToolError, ToolFailed
from ..stubs.tool import HandlerKind, ToolContext
from .call import ToolCall, ToolResult
from .rows import RowQueue
from .threads import DaemonPool

log = logging.getLogger("limbeck.tools")


class HandlerRunner:
    """Runs handlers; one for all executions of an executor."""

    def __init__(self, pool: DaemonPool) -> None:
        self._pool = pool

    async def run(self, call: ToolCall) -> ToolResult:
        """Run the call's handler. Raises ToolFailed for every exception of the handler's."""
        # SAFETY: the last check before a tool starts; an execution is revoked before its end.
        call.execution.check_open(call.name)
        arguments = _with_context(call)
        kind = call.tool.kind
        if kind is HandlerKind.GENERATOR:
            return ToolResult(rows=_translated(call, self._generator_rows(call, arguments)))
        if kind is HandlerKind.ASYNC_GENERATOR:
            return ToolResult(rows=_translated(call, _async_generator_rows(call, arguments)))
        try:
            if kind is HandlerKind.COROUTINE:
                value = await _on_tool_loop(call, call.tool.handler(**arguments))
            else:
                value = await self._pool.run(functools.partial(call.tool.handler, **arguments))
                if inspect.iscoroutine(value):
                    value = await _on_tool_loop(call, value)
        except BaseException as error:
            if _is_ours(error):
                raise
            raise _failed(call, error) from None
        call.ran = True
        return ToolResult(value=value)

    async def _generator_rows(
        self, call: ToolCall, arguments: dict[str, Any]
    ) -> AsyncGenerator[list[Any]]:
        queue = RowQueue(call)

        def produce() -> None:
            try:
                iterator = call.tool.handler(**arguments)
            except BaseException as error:
                queue.fail(error)
            else:
                queue.fill_from(iterator)

        # A thread of its own: a stream lives as long as the script reads it.
        threading.Thread(target=produce, name=f"limbeck-{call.name}", daemon=True).start()
        async with aclosing(queue.batches()) as batches:
            async for rows in batches:
                yield rows


async def _async_generator_rows(
    call: ToolCall, arguments: dict[str, Any]
) -> AsyncGenerator[list[Any]]:
    queue = RowQueue(call)
    filling = _submit(call, queue.fill_from_async(call.tool.handler(**arguments)))
    try:
        async with aclosing(queue.batches()) as batches:
            async for rows in batches:
                yield rows
    finally:
        filling.cancel()


async def _translated(
    call: ToolCall, batches: AsyncGenerator[list[Any]]
) -> AsyncGenerator[list[Any]]:
    async with aclosing(batches):
        try:
            async for rows in batches:
                yield rows
        except GeneratorExit:
            raise
        except BaseException as error:
            if _is_ours(error):
                raise
            raise _failed(call, error) from None


async def _on_tool_loop(call: ToolCall, coroutine: Coroutine[Any, Any, Any]) -> Any:
    try:
        future = _submit(call, _contained(coroutine))
    except ToolFailed:
        coroutine.close()
        raise
    return await asyncio.wrap_future(future)


async def _contained(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What would end the loop that it runs on becomes an ordinary failure."""
    try:
        return await coroutine
    except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
        raise RuntimeError(f"the handler raised {type(error).__name__}") from error


def _submit(call: ToolCall, coroutine: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
    try:
        return asyncio.run_coroutine_threadsafe(coroutine, call.execution.tool_loop)
    except RuntimeError:
        coroutine.close()
        raise ToolFailed(
            "loop_closed", "the application's event loop is closed; the tool was not run"
        ) from None


def _is_ours(error: BaseException) -> bool:
    """Whether this very task is being cancelled; a handler may raise CancelledError too."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _failed(call: ToolCall, error: BaseException) -> ToolError:
    if isinstance(error, ToolFailed):
        error.tool = call.name
        return error
    log.error("the handler of %s failed", call.name, exc_info=error)
    failed = ToolFailed("internal_error", "the tool failed with an internal error")
    failed.tool = call.name
    return failed


def _with_context(call: ToolCall) -> dict[str, Any]:
    name = call.tool.context_parameter
    if name is None:
        return call.arguments
    execution = call.execution
    session = execution.session
    digest = hashlib.sha256(call.raw, usedforsecurity=False).hexdigest()
    seed = f"{session.id}\0{execution.id}\0{call.id}\0{call.name}\0{digest}"
    context = ToolContext(
        user=session.principal.user,
        tenant=session.principal.tenant,
        session_id=session.id,
        execution_id=execution.id,
        call_id=str(call.id),
        idempotency_key=hashlib.sha256(seed.encode()).hexdigest(),
        deadline=execution.deadline,
        report_progress=execution.on_progress or _ignore,
    )
    return {**call.arguments, name: context}


def _ignore(text: str) -> None:
    return None
