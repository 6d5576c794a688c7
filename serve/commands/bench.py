"""`limbeck bench`: measurements against floors in the same run."""

from __future__ import annotations

import json
import sys

import click

from ...benchmark.speed import SECTIONS, run_speed
from ..options import json_option


@click.group("bench")
def command() -> None:
    """Measure: every figure is a ratio to a floor, timed in the same run."""


@command.command("speed")
@click.option("--section", "sections", multiple=True, type=click.Choice(SECTIONS))
@click.option("--rounds", default=9, show_default=True, help="Interleaved rounds; medians count.")
@json_option
def speed(sections: tuple[str, ...], rounds: int, as_json: bool) -> None:
    """Time the bridge and the sandboxes next to what cannot be beaten."""
    on_terminal = sys.stderr.isatty()
    report = run_speed(sections or None, rounds=rounds, progress=_tell if on_terminal else None)
    if on_terminal:
        _tell("")
    click.echo(json.dumps(report.to_dict(), indent=2) if as_json else report.render())


def _tell(text: str) -> None:
    """Rewrite the one live line."""
    click.echo(f"\r{text:60}\r", nl=False, err=True)
