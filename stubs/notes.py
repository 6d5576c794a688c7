"""What a stub's docstring says besides the description: constraints, effect, side effects."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .effect import Effect
from .names import parameter_names
from .schema import MAX_DEPTH
from .tool import ToolSpec

_BOUNDS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "above {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "below {}"),
    ("multipleOf", "a multiple of {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} items"),
    ("maxItems", "at most {} items"),
    ("pattern", "matching {}"),
    ("format", "{}"),
)


def docstring(spec: ToolSpec) -> str:
    """The whole docstring of a tool's stub: the stub is a prompt."""
    parts = [spec.description.strip(), "\n".join(_arguments(spec)), "\n".join(_effect(spec))]
    return "\n\n".join(part for part in parts if part)


def constraints(schema: Mapping[str, Any], depth: int = 0) -> list[str]:
    """The limits of a value in words: "at least 1", "matching ^W"."""
    if depth > MAX_DEPTH:
        return []
    notes = [
        phrase.format(_shown(schema[key]))
        for key, phrase in _BOUNDS
        if isinstance(schema.get(key), str | int | float) and not isinstance(schema[key], bool)
    ]
    if schema.get("uniqueItems") is True:
        notes.append("no item twice")
    for word in ("anyOf", "oneOf", "allOf"):
        options = schema.get(word)
        if isinstance(options, list):
            for option in options:
                notes += constraints(option, depth + 1) if isinstance(option, Mapping) else []
    items = schema.get("items")
    if isinstance(items, Mapping):
        notes += [f"each {note}" for note in constraints(items, depth + 1)]
    return list(dict.fromkeys(notes))


def _arguments(spec: ToolSpec) -> Iterator[str]:
    properties = spec.input_schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    lines = []
    shown = parameter_names(properties)
    for name, schema in properties.items():
        if not isinstance(schema, Mapping):
            continue
        description = schema.get("description")
        told = " ".join(description.split()) if isinstance(description, str) else ""
        notes = ", ".join(constraints(schema))
        text = f"{told} ({notes})" if told and notes else told or notes
        if text:
            lines.append(f"    {shown[name]}: {text}")
    if lines:
        yield "Args:"
        yield from lines


def _effect(spec: ToolSpec) -> Iterator[str]:
    if spec.effect is not Effect.READ:
        approval = " May need approval." if spec.effect is Effect.DESTRUCTIVE else ""
        yield f"Effect: {spec.effect}.{approval}"
    if spec.approval == "ask" and spec.effect is not Effect.DESTRUCTIVE:
        yield "Needs approval."
    if spec.side_effects:
        yield f"Side effects: {spec.side_effects}"
    if spec.approval == "deny":
        yield "Switched off: every call is denied."
    if spec.max_calls is not None:
        yield f"At most {spec.max_calls} calls a script."
    if spec.version:
        yield f"Version: {spec.version}"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
