"""Options that several commands share, and the executor that they make."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

from ..runtime.errors import ConfigurationError
from ..runtime.text import neutralise
from ..sandbox.executor import Executor
from ..stubs.catalog import Catalog
from ..stubs.sources.python import load_toolsets
from . import config

EXIT_USAGE = 2

Command = Callable[..., Any]


def tool_options(command: Command) -> Command:
    """--tools, --scope and --config."""
    for option in (
        click.option(
            "--config",
            "config_path",
            type=click.Path(path_type=Path),
            help="Configuration file (TOML).",
        ),
        click.option("--scope", "scopes", multiple=True, help="A scope that scripts may use."),
        click.option(
            "--tools",
            "tools",
            multiple=True,
            metavar="MODULE_OR_FILE[:NAME]",
            help="Where toolsets are; may be given several times.",
        ),
    ):
        command = option(command)
    return command


def sandbox_options(command: Command) -> Command:
    """--gate, --backend and --limit."""
    for option in (
        click.option(
            "--limit", "limits", multiple=True, metavar="KEY=VALUE", help="memory=512MiB, wall=120"
        ),
        click.option("--backend", type=click.Choice(["auto", "bubblewrap", "docker"])),
        click.option("--gate", type=click.Choice(["on", "off"])),
    ):
        command = option(command)
    return command


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON alone.")


def load_catalog(tools: tuple[str, ...]) -> Catalog:
    """The catalog of everything that --tools names."""
    return Catalog.of(*(toolset for name in tools for toolset in load_toolsets(name)))


def load_configuration(
    path: Path | None,
    *,
    gate: str | None = None,
    backend: str | None = None,
    limits: tuple[str, ...] = (),
) -> config.Configuration:
    """The configuration with the command line's options over it."""
    ignored = config.ignored_file()
    if ignored is not None and path is None:
        click.echo(f"{config.NAME} in this folder is not read; use --config to name it.", err=True)
    values = _limit_values(limits) or None
    return config.load(path).with_values(gate=gate, backend=backend, limits=values)


def make_executor(
    tools: tuple[str, ...], scopes: tuple[str, ...], configuration: config.Configuration
) -> Executor:
    """The executor of a command."""
    return Executor(load_catalog(tools), scopes=scopes, **configuration.executor_options())


def read_script(path: str) -> str:
    """The text of a script; `-` is standard input."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(path, error.strerror or str(error)) from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError(path, f"not UTF-8: {error}", "save it as UTF-8.") from None


def fail(error: ConfigurationError, as_json: bool) -> NoReturn:
    """Report a usage or configuration error and leave with exit code 2."""
    if as_json:
        details = {
            "code": "configuration",
            "key": error.key,
            "message": error.problem,
            "hint": error.hint,
        }
        click.echo(json.dumps({"error": details}))
    else:
        click.echo(f"limbeck: {neutralise(str(error))}", err=True)
    sys.exit(EXIT_USAGE)


def not_yet(name: str) -> NoReturn:
    """An option that the contract names and that this version does not have."""
    raise ConfigurationError(name, "not in this version")


def _limit_values(limits: tuple[str, ...]) -> dict[str, str]:
    values = {}
    for item in limits:
        key, equals, value = item.partition("=")
        if not equals:
            raise ConfigurationError("--limit", f"{item!r} is no KEY=VALUE", "write wall=120.")
        values[key.strip()] = value
    return values
