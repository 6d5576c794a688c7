"""`limbeck doctor`: runs the real thing and says what to mend."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from ...runtime.errors import ConfigurationError
from ..doctor import diagnose
from ..options import fail, json_option, load_configuration

EXIT_UNAVAILABLE = 5


@click.command("doctor")
@click.option("--config", "config_path", type=click.Path(path_type=Path))
@json_option
def command(config_path: Path | None, as_json: bool) -> None:
    """Start a real sandbox here; exit code 0 when one works, 5 when none does."""
    try:
        diagnosis = diagnose(load_configuration(config_path))
    except ConfigurationError as error:
        fail(error, as_json)
    click.echo(json.dumps(diagnosis.to_dict()) if as_json else diagnosis.render())
    sys.exit(0 if diagnosis.works else EXIT_UNAVAILABLE)
