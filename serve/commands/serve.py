"""`limbeck serve`: the MCP door, on standard input and output."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import click

from ...runtime.errors import ConfigurationError
from ...sandbox.executor import AsyncExecutor
from ..options import fail, load_catalog, load_configuration, sandbox_options, tool_options


@click.command("serve")
@tool_options
@sandbox_options
@click.option("--warm", default=1, show_default=True, help="Sandboxes that are kept ready.")
@click.option(
    "--single-use",
    is_flag=True,
    help="A sandbox for each call: no variables or files of the call before.",
)
def command(
    tools: tuple[str, ...],
    scopes: tuple[str, ...],
    config_path: Path | None,
    gate: str | None,
    backend: str | None,
    limits: tuple[str, ...],
    warm: int,
    single_use: bool,
) -> None:
    """Serve execute_code over MCP (stdio) with --tools behind it.

    The connection is a session: variables, imports and files in /workspace are there in the next
    call.
    """
    try:
        if importlib.util.find_spec("mcp") is None:
            raise ConfigurationError(
                "limbeck serve", "the MCP SDK is missing", "pip install 'limbeck[mcp]'."
            )
        configuration = load_configuration(config_path, gate=gate, backend=backend, limits=limits)
        executor = AsyncExecutor(
            load_catalog(tools), scopes=scopes, warm=warm, **configuration.executor_options()
        )
    except ConfigurationError as error:
        fail(error, as_json=False)
    # Slow to import, and an extra.
    from ..mcp_server import serve_stdio

    sessions = configuration.sessions and not single_use
    asyncio.run(serve_stdio(executor, sessions=sessions))
