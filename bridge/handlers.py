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
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any

from ..runtime.errors import ToolError, ToolFailed
from ..stubs.tool import HandlerKind, ToolContext
from .call import ToolCall, ToolResult
from .crossing import LoopClosed, run_on
from .places import Place, StreamPlaces
from .rows import RowQueue
from .threads import DaemonPool

log = logging.getLogger("limbeck.tools")


class HandlerRunner:
    """Runs handlers; one for all executions of an executor."""

    def __init__(self, pool: DaemonPool, places: StreamPlaces | None = None) -> None:
        self._pool = pool
        self._places = places or StreamPlaces()

    async def run(self, call: ToolCall) -> ToolResult:
        """Run the call's handler. Raises ToolFailed for every exception of the handler's."""
        # SAFETY: the last check before a tool starts; an execution is revoked before its end.
        call.execution.check_open(call.name)
        arguments = _with_context(call)
        handler = functools.partial(call.tool.handler, **arguments)
        if call.tool.kind in (HandlerKind.GENERATOR, HandlerKind.ASYNC_GENERATOR):
            self._places.check(call)
            return ToolResult(rows=self._stream(call, handler))
        try:
            if call.tool.kind is HandlerKind.COROUTINE:
                value = await _on_tool_loop(call, handler)
            else:
                value = await self._pool.run(handler, owner=call.execution.id, start=call.start)
                if inspect.iscoroutine(value):
                    value = await _on_tool_loop(call, lambda: value)
        except BaseException as error:
            if _is_ours(error):
                raise
            raise _failed(call, error) from None
        call.ran = True
        return ToolResult(value=value)

    async def _stream(
        self, call: ToolCall, handler: Callable[[], Any]
    ) -> AsyncGenerator[list[Any]]:
        place = self._places.take(call)
        try:
            async with aclosing(_rows(call, handler, place)) as batches:
                async for rows in batches:
                    yield rows
        except GeneratorExit:
            raise
        except BaseException as error:
            if _is_ours(error):
                raise
            raise _failed(call, error) from None
        finally:
            if call.start.give_up():
                place.leave()  # For the producer, who will not come.
            place.leave()


async def _rows(
    call: ToolCall, handler: Callable[[], Any], place: Place
) -> AsyncGenerator[list[Any]]:
    queue = RowQueue(call)
    filling: concurrent.futures.Future[None] | None = None
    if call.tool.kind is HandlerKind.ASYNC_GENERATOR:
        filling = _submit(call, _fill_async(call, handler, queue, place))
    else:
        # A thread of its own: a stream lives as long as the script reads it.
        threading.Thread(
            target=_fill,
            args=(call, handler, queue, place),
            name=f"limbeck-{call.name}",
            daemon=True,
        ).start()
    try:
        async with aclosing(queue.batches()) as batches:
            async for rows in batches:
                yield rows
    finally:
        if filling is not None:
            filling.cancel()


def _fill(call: ToolCall, handler: Callable[[], Any], queue: RowQueue, place: Place) -> None:
    if not call.start.begin():
        return
    try:
        iterator = handler()
    except BaseException as error:
        queue.fail(error)
    else:
        queue.fill_from(iterator)
    finally:
        place.leave()


async def _fill_async(
    call: ToolCall, handler: Callable[[], Any], queue: RowQueue, place: Place
) -> None:
    if not call.start.begin():
        return
    try:
        await queue.fill_from_async(handler())
    finally:
        place.leave()


async def _on_tool_loop(call: ToolCall, handler: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    try:
        return await run_on(call.execution.tool_loop, _contained(call, handler))
    except asyncio.CancelledError:
        call.start.give_up()
        raise
    except LoopClosed:
        raise _loop_closed() from None


async def _contained(call: ToolCall, handler: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """What would end the loop that it runs on becomes an ordinary failure."""
    if not call.start.begin():
        return None  # Nobody waits any more.
    try:
        return await handler()
    except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
        raise RuntimeError(f"the handler raised {type(error).__name__}") from error


def _submit(call: ToolCall, coroutine: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
    try:
        return asyncio.run_coroutine_threadsafe(coroutine, call.execution.tool_loop)
    except RuntimeError:
        coroutine.close()
        raise _loop_closed() from None


def _loop_closed() -> ToolFailed:
    text = "the application's event loop is closed; the tool was not run"
    return ToolFailed("loop_closed", text)


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
