"""`limbeck run`: one script from its file to its printout and exit code."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from ...runtime.errors import ConfigurationError
from ...runtime.text import neutralise
from ...sandbox.executor import Executor
from ...sandbox.result import ExecutionResult, Status
from ..live import LiveLine
from ..options import (
    fail,
    json_option,
    load_configuration,
    make_executor,
    not_yet,
    read_script,
    sandbox_options,
    tool_options,
)

EXIT_CODES = {
    Status.OK: 0,
    Status.ERROR: 1,
    Status.KILLED: 1,
    Status.REFUSED: 3,
    Status.TIMEOUT: 4,
    Status.MEMORY: 4,
    Status.CPU: 4,
    Status.OUTPUT: 4,
    Status.PIDS: 4,
    Status.CANCELLED: 4,
    Status.UNAVAILABLE: 5,
}

_LATER = ("context", "approve", "request_text", "interaction_id")


@click.command("run")
@click.argument("script")
@tool_options
@sandbox_options
@click.option("--context", hidden=True)
@click.option("--approve", hidden=True)
@click.option("--request-text", hidden=True)
@click.option("--interaction-id", hidden=True)
@click.option(
    "--data",
    multiple=True,
    metavar="[NAME=]PATH",
    help="A file or folder that the script reads as /data/NAME; may be given several times.",
)
@json_option
def command(
    script: str,
    tools: tuple[str, ...],
    scopes: tuple[str, ...],
    config_path: Path | None,
    gate: str | None,
    backend: str | None,
    limits: tuple[str, ...],
    data: tuple[str, ...],
    as_json: bool,
    **later: object,
) -> None:
    """Run SCRIPT (a file, or - for standard input) and print what it prints."""
    try:
        for name in _LATER:
            if later[name]:
                not_yet(f"--{name.replace('_', '-')}")
        text = read_script(script)
        configuration = load_configuration(config_path, gate=gate, backend=backend, limits=limits)
        with make_executor(tools, scopes, configuration) as executor:
            result = _run(executor, text, _named(data), None if as_json else LiveLine())
    except ConfigurationError as error:
        fail(error, as_json)
    except KeyboardInterrupt:
        click.echo("[cancelled]", err=True)
        sys.exit(EXIT_CODES[Status.CANCELLED])
    _finish(result, as_json)


def _named(data: tuple[str, ...]) -> dict[str, str]:
    """Each --data by its name: NAME=PATH, or the last part of a path that exists as it is."""
    found: dict[str, str] = {}
    for item in data:
        name, equals, path = item.partition("=")
        if not equals or os.path.exists(item):
            name, path = os.path.basename(os.path.abspath(item)), item
        if name in found:
            raise ConfigurationError(
                "--data", f"two inputs have the name {name!r}", "name one: --data NAME=PATH."
            )
        found[name] = path
    return found


def _run(
    executor: Executor, text: str, data: dict[str, str], live: LiveLine | None
) -> ExecutionResult:
    if live is None:
        return executor.execute_code(text, data=data)
    try:
        return executor.execute_code(
            text,
            data=data,
            on_output=live.show,
            on_activity=live.update if live.wanted else None,
        )
    finally:
        live.erase()


def _finish(result: ExecutionResult, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result.to_dict()))
    else:
        # The printout is on the terminal already: what is left of the text for the model.
        for line in result.remarks():
            click.echo(neutralise(line), err=True)
    sys.exit(EXIT_CODES[result.status])
