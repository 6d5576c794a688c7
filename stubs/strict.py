"""A tool's arguments read from JSON without a coercion that changes what was said.

pydantic's strict mode for JSON still takes some values for others: a text for bytes, bytes for a
text, true for the number 1 of a Literal or an Enum, a number in quotes for a time, a whole number
beyond the floats for infinity. The schema that pydantic made is rebuilt with checks at those nodes.

Bytes come as a text behind a mark that no script can guess, so that what takes a text takes no
bytes, and what takes anything takes bytes as they are.
"""

from __future__ import annotations

import binascii
import json
import re
import secrets
from collections.abc import Callable, Iterable
from enum import Enum
from functools import cached_property
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticKnownError, SchemaValidator, core_schema

from ..runtime import payload

_MARK = f"\0{secrets.token_hex(16)}:"

_NO_SCHEMAS = frozenset(
    {"cls", "config", "ctx", "default", "default_factory", "discriminator", "expected", "function"}
    | {"generic_origin", "members", "metadata", "missing", "ref", "serialization"}
)
"""Keys of a core schema that hold no schema."""

_NUMBER = re.compile(r"\s*[+-]?\d+(\.\d*)?\s*\Z")
_TIMES = ("date", "datetime")
_IS_TIME = {"limbeck": "time"}


class Reader:
    """Reads JSON as a model's instances."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._schema = model.__pydantic_core_schema__
        self._plain = _validator(_rebuilt(self._schema, _CHECKS))

    @cached_property
    def _with_bytes(self) -> SchemaValidator:
        return _validator(_rebuilt(self._schema, {**_CHECKS, **_BYTES_CHECKS}))

    def read(self, raw: bytes) -> Any:
        """The model's instance. Raises payload.PayloadError, or pydantic's ValidationError."""
        value = payload.decode_strict(raw)
        if b'"$' not in raw:
            return self._plain.validate_json(raw, strict=True)
        marked = json.dumps(value, default=_marked).encode()
        return self._with_bytes.validate_json(marked, strict=True)


def unmarked(value: Any) -> Any:
    """The value with its bytes as bytes again."""
    if isinstance(value, str):
        if value.startswith(_MARK):
            return binascii.a2b_base64(value[len(_MARK) :])
    elif isinstance(value, list):
        return [unmarked(item) for item in value]
    elif isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items()}
    return value


def _marked(data: bytes) -> str:
    return _MARK + binascii.b2a_base64(data, newline=False).decode()


def _validator(schema: Any) -> SchemaValidator:
    # Otherwise a model inside keeps the validator that it was made with.
    return SchemaValidator(schema, _use_prebuilt=False)


def _rebuilt(node: Any, checks: dict[str, Callable[[Any], Any]]) -> Any:
    """A core schema with checks around the nodes of some types."""
    if isinstance(node, list | tuple):
        return type(node)(_rebuilt(item, checks) for item in node)
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    if not isinstance(kind, str):
        return {name: _rebuilt(item, checks) for name, item in node.items()}
    made = {
        key: item if key in _NO_SCHEMAS else _rebuilt(item, checks) for key, item in node.items()
    }
    return checks[kind](made) if kind in checks else made


def _before(node: Any, check: Callable[[Any], Any]) -> Any:
    """The node behind a check; whatever refers to the node now refers to both."""
    reference = node.pop("ref", None)
    return core_schema.no_info_before_validator_function(check, node, ref=reference)


def _bytes(node: Any) -> Any:
    def check(value: Any) -> Any:
        data = unmarked(value) if isinstance(value, str) else value
        if isinstance(data, str):
            raise PydanticKnownError("bytes_type")
        return data

    return _before(node, check)


def _text(node: Any) -> Any:
    def check(value: Any) -> Any:
        if isinstance(value, str) and value.startswith(_MARK):
            raise PydanticKnownError("string_type")
        return value

    return _before(node, check)


def _anything(node: Any) -> Any:
    return _before(node, unmarked)


def _float(node: Any) -> Any:
    return {"allow_inf_nan": False, **node}


def _literal(node: Any) -> Any:
    if any(isinstance(value, Enum) for value in node["expected"]):
        return node
    return _one_of(node, node["expected"], "literal_error")


def _enum(node: Any) -> Any:
    return _one_of(node, [member.value for member in node["members"]], "enum")


def _one_of(node: Any, values: Iterable[Any], error: Any) -> Any:
    known = [value for value in values if isinstance(value, bool | int | float)]
    if not known:
        return node
    expected = " or ".join(map(repr, values))

    def check(value: Any) -> Any:
        # 1, 1.0 and True are equal, and yet three values.
        equal = [one for one in known if isinstance(value, bool | int | float) and one == value]
        if equal and type(value) not in map(type, equal):
            raise PydanticKnownError(error, {"expected": expected})
        return value

    return _before(node, check)


def _time(node: Any) -> Any:
    reference = node.pop("ref", None)
    inner = SchemaValidator(node)
    wrong: Any = f"{node['type']}_type"

    def read(value: Any) -> Any:
        if not isinstance(value, str) or _NUMBER.match(value):
            raise PydanticKnownError(wrong)
        # As JSON: a value of Python's own would have to be a time already.
        return inner.validate_json(json.dumps(value), strict=True)

    return core_schema.no_info_plain_validator_function(read, ref=reference, metadata=_IS_TIME)


def _union(node: Any) -> Any:
    options = [one for one in node["choices"] if isinstance(one, dict)]
    is_text = any(one["type"] in ("str", "function-before") for one in options)
    if is_text and any(one.get("metadata") is _IS_TIME for one in options):
        # A text that reads as a time is what the annotation names first.
        return {**node, "mode": "left_to_right"}
    return node


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "bytes": _bytes,
    "float": _float,
    "literal": _literal,
    "enum": _enum,
    "union": _union,
    **dict.fromkeys(_TIMES, _time),
}
_BYTES_CHECKS: dict[str, Callable[[Any], Any]] = {"str": _text, "any": _anything}
