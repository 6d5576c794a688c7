"""The built-in names of a script under the gate: explicit, with guards where names are computed."""

from __future__ import annotations

import builtins
from types import GenericAlias
from typing import Any

from .guards import BUILTINS, guarded_type
from .importing import make_importer

_PLAIN = [
    "abs", "aiter", "all", "anext", "any", "ascii", "bin", "bool", "bytearray", "bytes",
    "callable", "chr", "classmethod", "complex", "dict", "divmod", "enumerate", "filter",
    "float", "format", "frozenset", "hash", "hex", "id", "int", "isinstance", "issubclass",
    "iter", "len", "list", "map", "max", "memoryview", "min", "next", "object", "oct",
    "ord", "pow", "print", "property", "range", "repr", "reversed", "round", "set", "slice",
    "sorted", "staticmethod", "str", "sum", "super", "tuple", "zip", "NotImplemented",
    "Ellipsis", "__build_class__", "__debug__",
]  # fmt: skip

_EXCEPTIONS = [
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
]


class _TypeMeta(type):
    def __instancecheck__(cls, item: object) -> bool:
        return isinstance(item, type)


class _Type(metaclass=_TypeMeta):
    """`type` with one argument: it makes no classes, and hands out no metaclass."""

    def __new__(cls, item: object) -> Any:
        return guarded_type(item)

    def __class_getitem__(cls, item: Any) -> GenericAlias:
        return GenericAlias(type, item)


def gated_builtins() -> dict[str, Any]:
    """A fresh table for one run."""
    table = {name: getattr(builtins, name) for name in [*_PLAIN, *_EXCEPTIONS]}
    return {**table, **BUILTINS, "type": _Type, "__import__": make_importer()}
