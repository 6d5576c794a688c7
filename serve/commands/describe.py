"""`limbeck describe`: the definition of the one tool, as a model gets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import click

from ...runtime.errors import ConfigurationError
from ..definitions import Style, description, tool_spec
from ..options import fail, load_catalog, load_configuration, tool_options


@click.command("describe")
@tool_options
@click.option("--gate", type=click.Choice(["on", "off"]))
@click.option("--style", type=click.Choice(get_args(Style)), help="Print the JSON of an API.")
@click.option("--budget", default=6_000, show_default=True, help="Characters at most.")
def command(
    tools: tuple[str, ...],
    scopes: tuple[str, ...],
    config_path: Path | None,
    gate: str | None,
    style: Style | None,
    budget: int,
) -> None:
    """Print what a model reads of execute_code with --tools."""
    try:
        configuration = load_configuration(config_path, gate=gate)
        catalog = load_catalog(tools)
        text = description(
            catalog.visible(scopes) if scopes else catalog,
            configuration.executor_options()["limits"],
            gated=configuration.gate == "on",
            open_modules=configuration.open_modules,
            budget=budget,
        )
    except ConfigurationError as error:
        fail(error, as_json=style is not None)
    click.echo(json.dumps(tool_spec(text, style), indent=2) if style else text)
