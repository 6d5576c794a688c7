"""The definition of the one tool: how to call the others, and which there are, within a budget.

The more tools there are, the less is said of each: whole stubs, then signatures, then one line a
tool, then names of toolsets, then as many of these as fit. The size never depends on the number of
tools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..runtime.text import neutralise
from .catalog import Catalog, ToolsetView
from .names import parameter_names
from .render import render_toolset, signature

TOOL_NAME = "execute_code"

BUDGET = 6_000
"""Characters of the whole description, unless the caller says otherwise."""

_HEAD = """\
Run a Python script in a sandbox. Only what it prints comes back: filter and sum up in the \
script, print the answer. Tools are functions of modules: `from tools import {example}`. A failed \
call raises ToolError. `from tools import call_many`: `call_many(tool, rows)` calls a tool for \
many rows, in order, faster than a loop; `tools.aio` has the tools as coroutines. Input files are \
in /data, {state} No network."""

_SINGLE = "files in /workspace last as long as the script."
_KEPT = """\
files of your own go to /workspace. Variables, imports and files are still there in your next \
call; a script that is stopped by a limit, as of time, loses them, and the result says so."""


def input_schema() -> dict[str, Any]:
    """JSON Schema of the tool's arguments."""
    code = {"type": "string", "description": "Python source."}
    return {
        "type": "object",
        "properties": {"code": code},
        "required": ["code"],
        "additionalProperties": False,
    }


def describe(
    catalog: Catalog,
    *,
    limits: Mapping[str, str],
    modules: Sequence[str],
    budget: int = BUDGET,
    keeps_state: bool = False,
) -> str:
    """What a model reads of execute_code, at most `budget` characters.

    Args:
        catalog: What the session sees.
        limits: Word to value: {"time": "60 s"}.
        modules: Names that scripts may import besides `tools`.
        budget: Characters.
        keeps_state: Whether a script goes on where the one before ended.
    """
    example = catalog.toolsets[0].name if catalog.toolsets else "..."
    head = _HEAD.format(example=example, state=_KEPT if keeps_state else _SINGLE)
    foot = "\n".join(
        line
        for line in (
            f"Limits: {', '.join(f'{word} {value}' for word, value in limits.items())}."
            if limits
            else "",
            f"Modules: {', '.join(modules)}." if modules else "",
        )
        if line
    )
    foot = _cut(foot, max(budget - len(head) - 2, 0) // 2)
    room = budget - len(head) - len(foot) - 2
    parts = [head, _index(catalog, room), foot]
    return "\n".join(part for part in parts if part)[:budget]


def _index(catalog: Catalog, room: int) -> str:
    if not catalog.toolsets:
        return "There are no tools."
    for form in (_stubs, _signatures, _lines, _counts):
        text = _within(form, catalog, room)
        if text is not None:
            return text
    return _first_names(catalog, room)


def _within(
    form: Callable[[ToolsetView], Iterator[str]], catalog: Catalog, room: int
) -> str | None:
    """The index in one form, or None as soon as it is too long."""
    lines: list[str] = []
    size = 0
    for view in catalog.toolsets:
        for line in form(view):
            size += len(line) + 1
            if size > room:
                return None
            lines.append(line)
    return "\n".join(lines)


def _stubs(view: ToolsetView) -> Iterator[str]:
    yield f"# tools/{view.name}.py\n{render_toolset(view)}"


def _signatures(view: ToolsetView) -> Iterator[str]:
    yield _title(view)
    for tool in view.tools:
        effect = "" if tool.spec.effect == "read" else f" [{tool.spec.effect}]"
        yield f"  {signature(tool)}{effect}{_summary(tool.spec.description)}"


def _lines(view: ToolsetView) -> Iterator[str]:
    yield _title(view)
    for tool in view.tools:
        names = ", ".join(parameter_names(tool.spec.input_schema.get("properties", {})).values())
        yield neutralise(f"  {tool.spec.name}({_cut(names, 80)})")


def _counts(view: ToolsetView) -> Iterator[str]:
    count = len(view.tools)
    yield f"{_title(view)} ({count} tool{'s' if count != 1 else ''}; dir({view.name}))"


def _first_names(catalog: Catalog, room: int) -> str:
    names: list[str] = []
    counts = f"{len(catalog.toolsets)} toolsets, {len(catalog)} tools"
    tail = f"and more: {counts}; dir(tools) lists them."
    left = room - len(tail) - 1
    for view in catalog.toolsets:
        if len(view.name) + 2 > left:
            break
        left -= len(view.name) + 2
        names.append(view.name)
    return f"{', '.join(names)}\n{tail}" if names else tail


def _title(view: ToolsetView) -> str:
    return f"{view.name}:{_summary(view.description, before=' ')}"


def _summary(text: str, before: str = " - ") -> str:
    first = neutralise((text.strip().splitlines() or [""])[0].strip())
    return f"{before}{_cut(first, 100)}" if first else ""


def _cut(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    return f"{text[: characters - 4]} ..." if characters > 4 else ""
