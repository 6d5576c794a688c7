"""`limbeck image`: the docker backend's image."""

from __future__ import annotations

import asyncio
import json
import sys

import click

from ...runtime.errors import ConfigurationError, SandboxUnavailable
from ...sandbox.docker import DockerBackend
from ...sandbox.image import abi, load_declaration, tag
from ...sandbox.provision import prepare_runtime
from ..options import fail, json_option

EXIT_UNAVAILABLE = 5


@click.group("image")
def command() -> None:
    """Build the image that the docker backend's sandboxes are made from."""


@command.command("build")
@click.option("--offline", is_flag=True, help="Without a registry, from this host's own files.")
@click.option(
    "--python-image",
    metavar="NAME@sha256:DIGEST",
    help="With a registry: the Python to build on, of limbeck's own minor version.",
)
@click.option("--packages", help="Offline: a virtual environment whose packages go in too.")
@json_option
def build(offline: bool, python_image: str | None, packages: str | None, as_json: bool) -> None:
    """Build the image and give it to the engine."""
    try:
        if offline is (python_image is not None):
            raise ConfigurationError(
                "limbeck image build",
                "it is built either from a registry's Python or offline",
                "write --offline, or --python-image NAME@sha256:DIGEST.",
            )
        backend = DockerBackend(packages=packages)
        making = backend.build_image_from(python_image) if python_image else backend.build_image()
        built = asyncio.run(making)
    except ConfigurationError as error:
        fail(error, as_json)
    except SandboxUnavailable as error:
        click.echo(f"limbeck: {error}", err=True)
        sys.exit(EXIT_UNAVAILABLE)
    if as_json:
        click.echo(json.dumps(built))
    else:
        for name, value in built.items():
            click.echo(f"{name:6} {value}")


@command.command("abi")
def show_abi() -> None:
    """Print the label that an image must have to serve this version."""
    click.echo(abi(prepare_runtime()))


@command.command("name")
def show_name() -> None:
    """Print the name and tag under which this version looks for its image."""
    click.echo(tag(load_declaration(), prepare_runtime()))
