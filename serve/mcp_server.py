"""The MCP door: a server with one tool, execute_code.

A connection is a session: its calls go on where the one before ended, one at a time; without one
each call has a sandbox of its own. Printed lines go out as progress, a cancelled call kills its
sandbox. The text of the result is the one for the model; the whole ExecutionResult is the
structured content.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from .. import __version__
from ..runtime.text import neutralise
from ..sandbox.activity import Activity
from ..sandbox.executor import AsyncExecutor
from ..sandbox.result import Status
from ..sandbox.session_faces import AsyncSession
from ..stubs.describe import TOOL_NAME
from .definitions import description
from .live import describe

MAX_PROGRESS = 500
"""Characters of one progress message."""

SILENCE_SECONDS = 5.0
"""After so long the number of calls is a progress message too."""


def make_server(
    executor: AsyncExecutor, *, session: AsyncSession | None = None, budget: int = 6_000
) -> MCPServer:
    """A server whose one tool runs scripts, all in `session` when there is one.

    SAFETY: a server with a session is for one connection: whoever calls shares its variables.
    `budget` bounds the tool's description, in characters.
    """
    settings = executor.settings
    server: MCPServer = MCPServer("limbeck", version=__version__, log_level="WARNING")
    text = description(
        (session or executor).catalog,
        settings.limits,
        gated=settings.gate,
        open_modules=settings.open_modules,
        budget=budget,
        keeps_state=session is not None,
    )
    runner = session or executor

    # Hints are what the worst tool behind it may do.
    @server.tool(
        name=TOOL_NAME,
        description=text,
        annotations=ToolAnnotations(
            title="Run a Python script",
            read_only_hint=False,
            destructive_hint=True,
            idempotent_hint=False,
            open_world_hint=True,
        ),
        structured_output=False,
    )
    async def execute_code(
        code: Annotated[str, Field(description="Python source.")], ctx: Context
    ) -> CallToolResult:
        async with _Progress(ctx) as progress:
            result = await runner.execute_code(
                code, on_output=progress.hear, on_activity=progress.hear_activity
            )
        return CallToolResult(
            content=[TextContent(type="text", text=result.for_model())],
            structured_content=result.to_dict(),
            is_error=result.status is not Status.OK,
        )

    return server


class _Progress:
    """Sends printed lines on, in order, while the script runs; the last ones before the result."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(maxsize=1_000)
        self._sent = 0
        self._silent_since = 0.0
        self._printed = False

    def hear(self, stream: str, text: str) -> None:
        """Take what was printed; a flood is thinned out, the result has it all."""
        self._printed = True
        if not self._lines.full():
            self._lines.put_nowait(neutralise(text.rstrip("\n"))[:MAX_PROGRESS])

    def hear_activity(self, activity: Activity) -> None:
        """Say now and then what a script does that prints nothing."""
        if self._printed:
            self._printed = False
            self._silent_since = activity.seconds
        if activity.seconds >= self._silent_since + SILENCE_SECONDS and not self._lines.full():
            self._silent_since = activity.seconds
            self._lines.put_nowait(describe(activity))

    async def __aenter__(self) -> _Progress:
        self._sending = asyncio.create_task(self._send())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self._lines.put(None)
            await self._sending
        else:
            self._sending.cancel()

    async def _send(self) -> None:
        while (line := await self._lines.get()) is not None:
            self._sent += 1
            await self._ctx.report_progress(self._sent, message=line)


async def serve_stdio(executor: AsyncExecutor, *, sessions: bool = True) -> None:
    """Serve on standard input and output until the client leaves: one connection, one session."""
    async with executor:
        if not sessions:
            await make_server(executor).run_stdio_async()
            return
        async with executor.session() as session:
            await make_server(executor, session=session).run_stdio_async()
