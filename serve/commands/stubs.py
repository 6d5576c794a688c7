"""`limbeck stubs`: the stub modules that a model sees and a sandbox imports."""

from __future__ import annotations

from pathlib import Path

import click

from ...runtime.errors import ConfigurationError
from ...stubs.render import render_bridge, render_catalog
from ..options import fail, load_catalog, tool_options


@click.command("stubs")
@tool_options
@click.option("--out", type=click.Path(path_type=Path), help="Write a package `tools` here.")
def command(
    tools: tuple[str, ...],
    scopes: tuple[str, ...],
    config_path: Path | None,
    out: Path | None,
) -> None:
    """Print the stub modules of --tools, or write them as a package that type-checks."""
    try:
        catalog = load_catalog(tools)
        sources = render_catalog(catalog.visible(scopes) if scopes else catalog)
        if out is not None:
            _write(out / "tools", {**sources, "_bridge.py": render_bridge()})
            return
    except ConfigurationError as error:
        fail(error, as_json=False)
    for name, source in sources.items():
        click.echo(f"# tools/{name}\n{source}")


def _write(folder: Path, sources: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, source in sources.items():
            (folder / name).write_text(source, "utf-8")
    except OSError as error:
        raise ConfigurationError(str(folder), error.strerror or str(error)) from None
    click.echo(f"{len(sources)} files in {folder}")
