"""`limbeck vet`: what the language gate thinks of a script, without running it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from ...runtime.errors import ConfigurationError
from ...runtime.gate import vet
from ...runtime.script import NotPython, prepare
from ...runtime.text import neutralise
from ..config import Configuration
from ..options import (
    fail,
    json_option,
    load_configuration,
    read_script,
    tool_options,
)

EXIT_REFUSED = 3


@click.command("vet")
@click.argument("script")
@tool_options
@click.option("--gate", type=click.Choice(["on", "off"]))
@json_option
def command(
    script: str,
    tools: tuple[str, ...],
    scopes: tuple[str, ...],
    config_path: Path | None,
    gate: str | None,
    as_json: bool,
) -> None:
    """Vet SCRIPT (a file, or - for standard input): every fault at once, nothing runs."""
    try:
        configuration = load_configuration(config_path, gate=gate)
        limit = configuration.executor_options()["limits"].script
        faults = _faults(read_script(script), limit, configuration)
    except ConfigurationError as error:
        fail(error, as_json)
    if as_json:
        click.echo(json.dumps({"faults": faults}))
    else:
        for fault in faults:
            click.echo(neutralise(str(fault["text"])))
        if not faults:
            click.echo("no faults")
    sys.exit(EXIT_REFUSED if faults else 0)


def _faults(text: str, limit: int, configuration: Configuration) -> list[dict[str, object]]:
    try:
        source = prepare(text, limit)
    except NotPython as error:
        text = f"{error.message} {error.hint}".strip()
        return [{"code": error.code, "message": error.message, "hint": error.hint, "text": text}]
    faults = vet(source, gate=configuration.gate == "on", open_modules=configuration.open_modules)
    return [{**asdict(fault), "text": str(fault)} for fault in faults]
