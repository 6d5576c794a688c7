"""Writes the parts of the documents that the code knows best: `make docs`.

A block between `<!-- NAME -->` and `<!-- /NAME -->` is replaced; tests/test_docs.py says when one
is stale.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from limbeck.bridge.budget import Budget
from limbeck.runtime.errors import TOOL_ERRORS, ToolError
from limbeck.runtime.gate import ALLOWED_MODULES
from limbeck.sandbox.backend import Limits
from limbeck.sandbox.result import Status
from limbeck.serve.commands.run import EXIT_CODES
from limbeck.serve.config import Configuration, PolicySection

ROOT = Path(__file__).parent.parent


def modules() -> str:
    """What a script may import."""
    return ", ".join(f"`{name}`" for name in ALLOWED_MODULES) + "."


def limits() -> str:
    """A table of the limits' defaults."""
    rows = [f"| `{item.name}` | {_shown(item.default)} |" for item in fields(Limits)]
    return "\n".join(["| limit | default |", "|---|---|", *rows])


def budget() -> str:
    """A table of the budget's defaults."""
    rows = [f"| `{item.name}` | {_shown(item.default)} |" for item in fields(Budget)]
    return "\n".join(["| budget | default |", "|---|---|", *rows])


def errors() -> str:
    """A table of what a script can catch."""
    rows = [
        f"| `{cls.__name__}` | `{code}` | {(cls.__doc__ or '').splitlines()[0]} |"
        for code, cls in TOOL_ERRORS.items()
        if cls is not ToolError
    ]
    return "\n".join(["| class | code | meaning |", "|---|---|---|", *rows])


def statuses() -> str:
    """A table of statuses and the command line's exit codes."""
    rows = [f"| `{status}` | {EXIT_CODES[status]} |" for status in Status]
    return "\n".join(["| status | exit code of `limbeck run` |", "|---|---|", *rows])


def keys() -> str:
    """The keys of limbeck.toml."""
    top = [name for name in Configuration.model_fields if name != "policy"]
    policy = [f"policy.{name}" for name in PolicySection.model_fields]
    return ", ".join(f"`{name}`" for name in [*top, *policy]) + "."


def commands() -> str:
    """`limbeck --help`."""
    done = subprocess.run(
        [sys.executable, "-m", "limbeck", "--help"], capture_output=True, text=True, check=True
    )
    text = re.sub(r"Usage: .*? \[", "Usage: limbeck [", done.stdout, count=1)
    return f"```\n{text.rstrip()}\n```"


BLOCKS: dict[str, Callable[[], str]] = {
    one.__name__: one for one in (modules, limits, budget, errors, statuses, keys, commands)
}


def fill(text: str) -> str:
    """A document with its blocks as the code has them now."""

    def replaced(match: re.Match[str]) -> str:
        name = match.group(1)
        return f"<!-- {name} -->\n{BLOCKS[name]()}\n<!-- /{name} -->"

    names = "|".join(BLOCKS)
    return re.sub(rf"<!-- ({names}) -->.*?<!-- /\1 -->", replaced, text, flags=re.DOTALL)


def documents() -> list[Path]:
    """Every document that may have a block."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def _shown(value: object) -> str:
    if value is None:
        return "wall x cpu + 5 s"
    if isinstance(value, int) and value >= 1024 and value % 1024 == 0:
        for unit, size in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
            if value % size == 0:
                return f"{value // size} {unit}"
    return f"{value:,}"


if __name__ == "__main__":
    for path in documents():
        path.write_text(fill(path.read_text()))
