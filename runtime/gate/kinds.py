"""What `type(x)` answers: real classes, but stand-ins for those that lead out.

A metaclass makes classes from any namespace; the type of a stream opens files; the types of
functions, frames and modules belong to the interpreter. A stand-in has their name, compares equal
to itself and works in isinstance; it cannot be called or inherited from.
"""

from __future__ import annotations

import io
import types
from types import GenericAlias
from typing import Any, Never

from .freezing import freeze, is_of_library

_INSIDE = frozenset(
    value
    for name, value in vars(types).items()
    if (name.endswith("Type") or name == "GenericAlias")
    and isinstance(value, type)
    and name
    not in ("NoneType", "EllipsisType", "NotImplementedType", "MappingProxyType", "UnionType")
)
_PLAIN_HOLDERS = frozenset(
    {memoryview, types.SimpleNamespace, types.FunctionType, types.ModuleType}
)
_REAL: dict[StandIn, type] = {}
_STAND_INS: dict[type, StandIn] = {}
_MODULE = type.__dict__["__module__"].__get__


class StandIn:
    """A class that scripts can name and compare, and nothing more."""

    __slots__ = ("__name__", "__qualname__")

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __repr__(self) -> str:
        return f"<class {self.__name__!r}>"

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, _REAL[self])

    def __subclasscheck__(self, cls: Any) -> bool:
        return issubclass(cls, _REAL[self])

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: Any) -> Never:
        raise TypeError(f"a class cannot inherit from {self.__name__!r} here")

    def __call__(self, *args: Any, **values: Any) -> Any:
        raise TypeError(f"{self.__name__!r} objects cannot be made by a script")


class _Type(StandIn):
    """`type` itself: of one argument, and in annotations."""

    __slots__ = ()

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, type | StandIn)

    def __call__(self, *args: Any, **values: Any) -> Any:
        if len(args) != 1 or values:
            raise TypeError("type() takes one argument here; use a class statement")
        return shown_type(args[0])

    def __getitem__(self, item: Any) -> Any:
        return GenericAlias(self, item)  # type: ignore[arg-type]


TYPE = _Type("type")
_REAL[TYPE] = type
_STAND_INS[type] = TYPE


def shown_type(value: Any) -> Any:
    """The class of a value, as a script may see it."""
    return shown_class(TYPE if isinstance(value, StandIn) else type(value))


def shown_class(cls: Any) -> Any:
    """A class as a script may see it; anything else as it is."""
    if not isinstance(cls, type):
        return cls
    if not _leads_out(cls):
        freeze(cls)
        return cls
    if cls not in _STAND_INS:
        stand_in = StandIn(cls.__name__)
        _REAL[stand_in] = cls
        _STAND_INS[cls] = stand_in
    return _STAND_INS[cls]


def _leads_out(cls: type) -> bool:
    if cls in _INSIDE or issubclass(cls, type):
        return True
    return issubclass(cls, io.IOBase) and not issubclass(cls, io.StringIO | io.BytesIO)


def is_looked_at(cls: type) -> bool:
    """Has the class attributes that the guard of computed loads is there for?"""
    return issubclass(cls, str | AttributeError | io.IOBase)


_SUPER_SELF = super.__dict__["__self__"].__get__
"""Of a super object: what it speaks for."""


def owner(value: Any) -> type:
    """The class whose attributes a value shows: its own; itself; that of a super's object."""
    kind = type(value)
    if issubclass(kind, super):
        value = _SUPER_SELF(value)
        kind = type(value)
    return value if issubclass(kind, type) else kind


def speaks_for_itself(cls: type) -> bool:
    """Is an attribute of its instances certainly their own, and no way into the interpreter?

    SAFETY: much of the library shows the attributes of another object as its own: aliases, bound
    methods, wrappers of files.
    """
    if is_script_class(cls):
        return not issubclass(cls, AttributeError | io.IOBase)
    return cls in _PLAIN_HOLDERS or not is_of_library(cls)


def is_script_class(cls: type) -> bool:
    """Was it made by a class statement of the script?"""
    return bool(_MODULE(cls) == "__main__")
