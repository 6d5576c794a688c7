"""JSON Schema to a tree of Python type expressions. Pure; odd input becomes Any, never an error.

    {"type": "array", "items": {"$ref": "#/$defs/Order"}}  ->  Listing(Named("Order"))

Objects with properties become named TypedDicts, collected in `Types` in the order of their need.
"""

from __future__ import annotations

import hashlib
import json
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

MAX_DEPTH = 12
"""Levels of a type expression; deeper is Any."""

MAX_LITERALS = 50
"""Values of one enum that are written out; more are told as their type."""


MAX_OPTIONS = 50
"""Types of one union; more is Any. Each is a level of the parser's stack."""


@dataclass(frozen=True, slots=True)
class Name:
    """A plain name: int, Any, None, or a TypedDict's."""

    name: str


@dataclass(frozen=True, slots=True)
class Subscript:
    """`list[int]`, `dict[str, Any]`."""

    base: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Literals:
    """`Literal[...]` of str, int, bool or None."""

    values: tuple[str | int | bool | None, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """`A | B`, without repetition."""

    options: tuple[Expression, ...]


Expression = Name | Subscript | Literals | Either

ANY = Name("Any")
NONE = Name("None")

_SCALARS = {
    "string": Name("str"),
    "integer": Name("int"),
    "number": Name("float"),
    "boolean": Name("bool"),
    "null": NONE,
}


@dataclass(slots=True, kw_only=True)
class TypedDictType:
    """A TypedDict to write out."""

    name: str
    fields: list[tuple[str, Expression, bool, str]] = field(default_factory=list)
    """Key, type, whether it is required, description."""
    description: str = ""

    @property
    def functional(self) -> bool:
        """Whether some key is no identifier, so that the class form cannot hold it."""
        return any(not key.isidentifier() or keyword.iskeyword(key) for key, *_ in self.fields)


class Types:
    """The TypedDicts of one module: unique names, one for the same schema wherever it stands."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        """`taken`: names that the module uses otherwise."""
        self._taken = set(taken)
        self._by_key: dict[str, str] = {}
        self.typed_dicts: list[TypedDictType] = []

    def expression(self, schema: Any, root: Any, hint: str) -> Expression:
        """The type of a schema; `root` resolves its references, `hint` names its TypedDicts."""
        return self._convert(schema, root, hint, 0)

    def _convert(self, schema: Any, root: Any, hint: str, depth: int) -> Expression:
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
            return ANY
        if isinstance(schema.get("$ref"), str):
            return self._reference(schema["$ref"], root, hint, depth)
        if "const" in schema:
            return _literals([schema["const"]])
        if isinstance(schema.get("enum"), list):
            return _literals(schema["enum"])
        for word in ("anyOf", "oneOf"):
            if isinstance(schema.get(word), list) and schema[word]:
                return either(
                    self._convert(option, root, hint, depth + 1) for option in schema[word]
                )
        if isinstance(schema.get("allOf"), list) and len(schema["allOf"]) == 1:
            return self._convert(schema["allOf"][0], root, hint, depth + 1)
        return self._typed(schema, root, hint, depth)

    def _typed(self, schema: Mapping[str, Any], root: Any, hint: str, depth: int) -> Expression:
        kind = schema.get("type")
        if isinstance(kind, list):
            return either(
                self._convert({**schema, "type": one}, root, hint, depth + 1) for one in kind
            )
        if kind == "array":
            return self._array(schema, root, hint, depth)
        if kind == "object" or (kind is None and isinstance(schema.get("properties"), Mapping)):
            return self._object(schema, root, hint, depth)
        if kind == "string" and schema.get("format") in ("binary", "base64", "base64url"):
            return Name("bytes")
        return _SCALARS.get(kind, ANY) if isinstance(kind, str) else ANY

    def _array(self, schema: Mapping[str, Any], root: Any, hint: str, depth: int) -> Expression:
        prefix = schema.get("prefixItems")
        if isinstance(prefix, list) and prefix:
            # What crosses the bridge is a list, whatever its items' places mean.
            items = either(self._convert(item, root, hint, depth + 1) for item in prefix)
            return Subscript("list", (items,))
        return Subscript("list", (self._convert(schema.get("items"), root, hint, depth + 1),))

    def _object(self, schema: Mapping[str, Any], root: Any, hint: str, depth: int) -> Expression:
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and properties:
            return Name(self._typed_dict(schema, root, hint, depth))
        values = schema.get("additionalProperties")
        inner = self._convert(values, root, hint, depth + 1) if values is not False else ANY
        return Subscript("dict", (Name("str"), inner))

    def _typed_dict(self, schema: Mapping[str, Any], root: Any, hint: str, depth: int) -> str:
        key = _key(schema, root)
        if key is not None and key in self._by_key:
            return self._by_key[key]
        made = TypedDictType(name=self._name(hint), description=_text(schema.get("description")))
        if key is not None:
            self._by_key[key] = made.name
        required = schema.get("required")
        needed = set(required) if isinstance(required, list) and _all_text(required) else set()
        for name, inner in schema["properties"].items():
            if not isinstance(name, str):
                continue
            kind = self._convert(inner, root, f"{made.name}_{name}", depth + 1)
            description = _text(inner.get("description")) if isinstance(inner, Mapping) else ""
            made.fields.append((name, kind, name in needed, description))
        self.typed_dicts.append(made)
        return made.name

    def _reference(self, reference: str, root: Any, hint: str, depth: int) -> Expression:
        target = _resolve(reference, root)
        if target is None:
            return ANY
        name = reference.rpartition("/")[2]
        # Each hop costs depth, so that a reference to itself ends as Any.
        return self._convert(target, root, name or hint, depth + 1)

    def _name(self, hint: str) -> str:
        base = class_name(hint)
        name, number = base, 2
        while name in self._taken:
            name, number = f"{base}{number}", number + 1
        self._taken.add(name)
        return name


def either(options: Any) -> Expression:
    """A union, flattened, without repetition, None last."""
    flat: list[Expression] = []
    for option in options:
        flat.extend(option.options if isinstance(option, Either) else (option,))
    unique = list(dict.fromkeys(flat))
    if ANY in unique or not unique or len(unique) > MAX_OPTIONS:
        return ANY
    ordered = [option for option in unique if option != NONE]
    ordered += [NONE] if NONE in unique else []
    return ordered[0] if len(ordered) == 1 else Either(tuple(ordered))


def class_name(text: str) -> str:
    """A CamelCase class name from any text."""
    words = re.split(r"[^0-9A-Za-z]+|(?<=[a-z0-9])(?=[A-Z])", text)
    name = "".join(word[:1].upper() + word[1:] for word in words if word)
    if not name or not (name[0].isalpha()):
        name = f"T{name}"
    return f"{name}_" if keyword.iskeyword(name) or name in _RESERVED else name


_RESERVED = frozenset({"Any", "Literal", "TypedDict", "NotRequired", "Iterator", "None"})


def _literals(values: Sequence[Any]) -> Expression:
    if not values or len(values) > MAX_LITERALS:
        return either(map(_type_of, values)) if values else ANY
    if all(value is None or isinstance(value, str | bool | int) for value in values):
        # 1 and True are equal and yet two values.
        unique = tuple({(type(value), value): value for value in values}.values())
        return NONE if unique == (None,) else Literals(unique)
    return either(map(_type_of, values))


def _type_of(value: Any) -> Expression:
    if value is None:
        return NONE
    for cls in (bool, int, float, str):
        if isinstance(value, cls):
            return Name(cls.__name__)
    return ANY


def _resolve(reference: str, root: Any) -> Any:
    if not reference.startswith("#"):
        return None
    target = root
    for part in reference[1:].split("/")[1:]:
        part = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping) and part in target:
            target = target[part]
        else:
            return None
    return target


def _key(schema: Mapping[str, Any], root: Any) -> str | None:
    """What makes two TypedDicts one: the same keys, with the same types and needs.

    References count as what they reach, each once, so that recursion ends. None when the schema is
    too deep to tell.
    """
    parts = [schema.get("properties"), schema.get("required")]
    reached: dict[str, Any] = {}
    waiting = _references(parts)
    while waiting:
        reference = waiting.pop()
        if reference not in reached:
            reached[reference] = _resolve(reference, root)
            waiting += _references(reached[reference])
    try:
        text = json.dumps([parts, reached], sort_keys=True, default=repr)
    except (RecursionError, TypeError, ValueError):
        return None
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _references(value: Any) -> list[str]:
    """Every reference that stands in a schema, however deep."""
    found = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            if isinstance(item.get("$ref"), str):
                found.append(item["$ref"])
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _all_text(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)
