"""A real bridge without a sandbox: Listener and Channel on a unix socket in one process.

The script's side runs in a thread, as the worker would run it in its own process.
"""

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from limbeck.bridge.audit import AuditLog
from limbeck.bridge.handlers import HandlerRunner
from limbeck.bridge.policy import Policy, build_pipeline
from limbeck.bridge.server import Listener
from limbeck.bridge.session import Execution, Principal, Session
from limbeck.bridge.threads import DaemonPool
from limbeck.runtime.channel import Channel
from limbeck.stubs.catalog import Catalog
from limbeck.stubs.tool import Toolset


class Bridged:
    """One execution whose script is a plain function that takes the channel."""

    def __init__(self, listener: Listener, execution: Execution, folder: Path) -> None:
        self.listener = listener
        self.execution = execution
        self.folder = folder
        self.channel: Channel | None = None

    @property
    def audit(self) -> AuditLog:
        return self.execution.session.audit

    async def attach(self) -> Channel:
        """Connect as the worker does, and get the job."""
        address = f"unix:{self.folder}/s"
        channel = await in_thread(lambda: Channel(address, "gate"))
        await self.listener.attached
        self.execution.begin()
        self.listener.serve(self.execution, "pass", gate=False)
        await in_thread(channel.wait_for_job)
        self.channel = channel
        return channel

    async def script(self, function: Callable[[Channel], Any]) -> Any:
        """Run the script's side in a thread; its value, or its exception."""
        assert self.channel is not None
        return await in_thread(lambda: function(self.channel))


@asynccontextmanager
async def bridged(
    *toolsets: Toolset,
    scopes: tuple[str, ...] = (),
    policy: Policy | None = None,
    wall: float = 60.0,
    tool_loop: asyncio.AbstractEventLoop | None = None,
    attach: bool = True,
    threads: dict[str, int] | None = None,
    clock: Callable[[], float] = time.monotonic,
):
    """A served execution over the given tools."""
    policy = policy or Policy()
    whole = Catalog.of(*toolsets)
    session = Session(
        catalog=whole.visible(scopes),
        whole=whole,
        audit=AuditLog(),
        principal=Principal(user="ada", tenant="acme"),
        budget=policy.budget,
    )
    pool = DaemonPool("test-handler", **(threads or {}))
    loop = tool_loop or asyncio.get_running_loop()
    execution = Execution(session, wall=wall, tool_loop=loop)
    listener = Listener(build_pipeline(policy, HandlerRunner(pool), clock))
    with tempfile.TemporaryDirectory(prefix="lb-") as name:
        await listener.open(Path(name), os.geteuid())
        bridge = Bridged(listener, execution, Path(name))
        try:
            if attach:
                await bridge.attach()
            yield bridge
        finally:
            execution.revoke()
            await listener.end_calls()
            await listener.close()
            if bridge.channel is not None:
                bridge.channel.close()
            pool.close()


async def in_thread(function: Callable[[], Any]) -> Any:
    """Run a function in a daemon thread of its own."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

    def run() -> None:
        try:
            value, error = function(), None
        except BaseException as raised:
            value, error = None, raised
        loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=run, daemon=True).start()
    return await future


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run a coroutine test to its end, bounded."""

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await test()

    asyncio.run(bounded())
