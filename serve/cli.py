"""The command line: a table of commands, each loaded when it is called.

Exit codes: ok 0; error, killed 1; usage or configuration 2; refused 3; timeout, memory, cpu,
output, pids, cancelled 4; unavailable 5.
"""

from __future__ import annotations

from importlib import import_module

import click

from .. import __version__

_COMMANDS = {
    "run": "Run a script and print what it prints.",
    "vet": "Say what the language gate thinks of a script; nothing runs.",
    "stubs": "Print, or write, the stub modules that a model sees.",
    "describe": "Print the definition of the one tool, execute_code.",
    "doctor": "Say which sandbox works here, and how to mend what does not.",
    "serve": "Serve execute_code over MCP, on standard input and output.",
    "image": "Build the image of the docker backend.",
    "bench": "Measure: speed against floors.",
}


class _LazyGroup(click.Group):
    """Knows every command's name and help without importing it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(f".commands.{cmd_name}", __package__)
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="limbeck")
def main() -> None:
    """One tool for an agent: ordinary Python in a sandbox, policy on the host."""
