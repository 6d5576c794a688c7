"""`limbeck doctor`: runs the real thing; `--reap` removes what crashed processes left."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from ...runtime.errors import ConfigurationError
from ...runtime.text import neutralise
from ...sandbox.reaper import Reaping
from ..config import Configuration
from ..doctor import diagnose, reap
from ..options import fail, json_option, load_configuration

EXIT_UNAVAILABLE = 5


@click.command("doctor")
@click.option("--config", "config_path", type=click.Path(path_type=Path))
@click.option("--reap", "reaping", is_flag=True, help="Remove what crashed processes left.")
@json_option
def command(config_path: Path | None, reaping: bool, as_json: bool) -> None:
    """Start a real sandbox here; exit code 0 when one works, 5 when none does.

    With --reap nothing is started: what crashed processes left is removed and listed; exit code 0,
    or 1 when something could not be removed.
    """
    try:
        configuration = load_configuration(config_path)
        if reaping:
            sys.exit(_reap(configuration, as_json))
        diagnosis = diagnose(configuration)
    except ConfigurationError as error:
        fail(error, as_json)
    click.echo(json.dumps(diagnosis.to_dict()) if as_json else diagnosis.render())
    sys.exit(0 if diagnosis.works else EXIT_UNAVAILABLE)


def _reap(configuration: Configuration, as_json: bool) -> int:
    reaped = reap(configuration)
    click.echo(json.dumps(_plain(reaped)) if as_json else _table(reaped))
    return 0 if all(one.removed for one in reaped.found) else 1


def _plain(reaped: Reaping) -> dict[str, object]:
    return {
        "format": 1,
        "removed": [{"kind": one.kind, "name": one.name} for one in reaped.found if one.removed],
        "left": [{"kind": one.kind, "name": one.name} for one in reaped.found if not one.removed],
        "notes": list(reaped.notes),
    }


def _table(reaped: Reaping) -> str:
    lines = [
        f"{'removed' if one.removed else 'STILL THERE':12} {one.kind:9} {neutralise(one.name)}"
        for one in reaped.found
    ]
    lines += [f"not looked at: {neutralise(note)}" for note in reaped.notes]
    return "\n".join(lines or ["nothing was left behind"])
