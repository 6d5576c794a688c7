"""One execution as its caller waits for it: in a plain thread, or on the caller's own loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from ..runtime.errors import ConfigurationError
from .core import Core, Request
from .face import CLOSE_SECONDS
from .loop import LoopThread, tool_loop
from .output import OnOutput
from .result import ExecutionResult


def execute(
    thread: LoopThread, core: Core, on_output: OnOutput | None, **request: Any
) -> ExecutionResult:
    """Run it and wait in this thread, in which `on_output` is called; what that raises cancels."""
    # Results and printed text take one way, so that text never comes after its result.
    inbox: SimpleQueue[Any] = SimpleQueue()
    cancel = asyncio.Event()
    asked = Request(
        tool_loop=tool_loop().loop,
        cancel=cancel,
        on_output=(lambda stream, text: inbox.put((stream, text))) if on_output else None,
        **request,
    )
    future = thread.submit(core.execute(asked))
    future.add_done_callback(inbox.put)
    try:
        while (item := inbox.get()) is not future:
            assert on_output is not None
            on_output(*item)
    except BaseException:
        thread.loop.call_soon_threadsafe(cancel.set)
        concurrent.futures.wait([future], timeout=CLOSE_SECONDS)
        raise
    result: ExecutionResult = future.result()
    return result


async def execute_async(
    thread: LoopThread, core: Core, on_output: OnOutput | None, **request: Any
) -> ExecutionResult:
    """Run it and await it on this loop, on which `on_output` is called; a cancel kills first."""
    loop = asyncio.get_running_loop()
    cancel = asyncio.Event()
    relay = _Relay(loop, on_output, lambda: thread.loop.call_soon_threadsafe(cancel.set))
    asked = Request(
        tool_loop=loop,
        cancel=cancel,
        on_output=relay if on_output is not None else None,
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


class _Relay:
    """Brings printed text to the caller's loop; what its callback raises cancels the execution."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_output: OnOutput | None,
        cancel: Callable[[], object],
    ) -> None:
        self._loop = loop
        self._on_output = on_output
        self._cancel = cancel
        self.error: BaseException | None = None

    def __call__(self, stream: str, text: str) -> None:
        self._loop.call_soon_threadsafe(self._deliver, stream, text)

    def _deliver(self, stream: str, text: str) -> None:
        if self._on_output is None or self.error is not None:
            return
        try:
            self._on_output(stream, text)
        except Exception as error:
            self.error = error
            self._cancel()
