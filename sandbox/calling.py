"""One execution as its caller waits for it: in a plain thread, or on the caller's own loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any

from ..runtime.errors import ConfigurationError
from .activity import OnActivity
from .core import Core, Request
from .face import CLOSE_SECONDS
from .loop import LoopThread, tool_loop
from .output import OnOutput
from .result import ExecutionResult


@dataclass(frozen=True, slots=True)
class Listeners:
    """Who hears of an execution while it runs."""

    output: OnOutput | None = None
    activity: OnActivity | None = None


def execute(
    thread: LoopThread, core: Core, listeners: Listeners, **request: Any
) -> ExecutionResult:
    """Run it and wait in this thread, in which listeners are called; what they raise cancels."""
    # Results and printed text take one way, so that text never comes after its result.
    inbox: SimpleQueue[Any] = SimpleQueue()
    cancel = asyncio.Event()
    asked = Request(
        tool_loop=tool_loop().loop,
        cancel=cancel,
        on_output=_through(listeners.output, inbox.put),
        on_activity=_through(listeners.activity, inbox.put),
        **request,
    )
    future = thread.submit(core.execute(asked))
    future.add_done_callback(inbox.put)
    try:
        while (item := inbox.get()) is not future:
            item()
    except BaseException:
        thread.loop.call_soon_threadsafe(cancel.set)
        concurrent.futures.wait([future], timeout=CLOSE_SECONDS)
        raise
    result: ExecutionResult = future.result()
    return result


async def execute_async(
    thread: LoopThread, core: Core, listeners: Listeners, **request: Any
) -> ExecutionResult:
    """Run it and await it on this loop, on which listeners are called; a cancel kills first."""
    loop = asyncio.get_running_loop()
    cancel = asyncio.Event()
    relay = _Relay(loop, lambda: thread.loop.call_soon_threadsafe(cancel.set))
    asked = Request(
        tool_loop=loop,
        cancel=cancel,
        on_output=_through(listeners.output, relay),
        on_activity=_through(listeners.activity, relay),
        **request,
    )
    running = asyncio.wrap_future(thread.submit(core.execute(asked)))
    try:
        result: ExecutionResult = await asyncio.shield(running)
    except asyncio.CancelledError:
        thread.loop.call_soon_threadsafe(cancel.set)
        await asyncio.wait([running], timeout=CLOSE_SECONDS)
        raise
    if relay.error is not None:
        raise relay.error
    return result


def refuse_running_loop(what: str) -> None:
    """Raise where waiting would block an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ConfigurationError(
        "executor",
        f"{what} would block the event loop that runs here",
        "use AsyncExecutor and await it.",
    )


def _through(
    listener: Callable[..., None] | None, bring: Callable[[Callable[[], None]], object]
) -> Callable[..., None] | None:
    """What limbeck's loop calls so that the listener is called where it belongs."""
    if listener is None:
        return None

    def tell(*told: Any) -> None:
        bring(partial(listener, *told))

    return tell


class _Relay:
    """Brings what is told to the caller's loop; what a listener raises cancels the execution."""

    def __init__(self, loop: asyncio.AbstractEventLoop, cancel: Callable[[], object]) -> None:
        self._loop = loop
        self._cancel = cancel
        self.error: BaseException | None = None

    def __call__(self, told: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(self._deliver, told)

    def _deliver(self, told: Callable[[], None]) -> None:
        if self.error is not None:
            return
        try:
            told()
        except Exception as error:
            self.error = error
            self._cancel()
