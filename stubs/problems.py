"""Validation errors told so that a model can mend them: which, which value, what instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import ErrorDetails, ValidationError

from .strict import unmarked

MAX_PROBLEMS = 20
MAX_VALUE = 60

_PLAIN = {
    "missing": "missing",
    "extra_forbidden": "there is no such parameter",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be a text",
    "bool_type": "must be True or False",
    "bytes_type": "must be bytes",
    "bytes_invalid_encoding": "must be bytes",
    "list_type": "must be a list",
    "set_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a dict",
    "model_type": "must be a dict",
    "dataclass_type": "must be a dict",
    "none_required": "must be None",
}


def told(
    error: ValidationError, subject: str = "", names: Mapping[str, str] | None = None
) -> list[str]:
    """One sentence a fault, at most 20; `names` are what the reader calls the outermost places."""
    details = error.errors(include_url=False, include_context=True)
    problems = list(dict.fromkeys(_told(item, subject, names or {}) for item in details))
    if len(problems) > MAX_PROBLEMS:
        return [*problems[:MAX_PROBLEMS], f"and {len(problems) - MAX_PROBLEMS} more"]
    return problems


def _told(item: ErrorDetails, subject: str, names: Mapping[str, str]) -> str:
    first, *rest = item["loc"] or ("",)
    place = _place([names.get(str(first), first), *rest]) or subject
    kind = item["type"]
    text = _PLAIN.get(kind) or _reworded(kind, item["msg"], item.get("ctx", {}))
    given = (
        "" if kind in ("missing", "extra_forbidden") else f", got {_short(unmarked(item['input']))}"
    )
    return f"{place}: {text}{given}" if place else f"{text}{given}"


def _reworded(kind: str, message: str, context: Mapping[str, Any]) -> str:
    if kind in ("literal_error", "enum") and "expected" in context:
        return f"must be one of {context['expected']}"
    if message.startswith("Input should be "):
        return "must be " + message.removeprefix("Input should be ")
    if message.startswith("Value error, "):
        return message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _place(location: Sequence[int | str]) -> str:
    place = ""
    for part in location:
        if isinstance(part, int):
            place += f"[{part}]"
        else:
            place += f".{part}" if place else part
    return place[:200]


def _short(value: Any) -> str:
    text = repr(value)
    if len(text) > MAX_VALUE:
        text = f"{text[: MAX_VALUE - 3]}..."
    return f"{text} ({type(value).__name__})"
