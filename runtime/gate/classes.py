"""Class statements: the names that classes show, and private methods that override the library's.

A script's `_split` is compiled to a name of the script's own, under which the library would never
find it. So a class gets such a method under the plain name too, where a base of the library has
one. The way back stays closed: `super()._split` is the script's own name.
"""

from __future__ import annotations

import builtins
from types import FunctionType
from typing import Any

from . import names
from .kinds import is_script_class

_METHODS = (FunctionType, staticmethod, classmethod)
_COMPILED = names.PREFIX + "_"
_DICT = type.__dict__["__dict__"].__get__
_QUALNAME = type.__dict__["__qualname__"].__get__
_MRO = type.__dict__["__mro__"].__get__


def build_class(body: Any, name: str, /, *bases: Any, **options: Any) -> Any:
    """What a class statement calls."""
    cls = builtins.__build_class__(body, names.shown(name), *bases, **options)
    if isinstance(cls, type):
        _show_qualified_name(cls)
    if bases and isinstance(cls, type):
        for compiled, value in list(_DICT(cls).items()):
            if compiled.startswith(_COMPILED) and isinstance(value, _METHODS):
                _override(cls, names.plain(compiled), value)
    return cls


def _show_qualified_name(cls: type) -> None:
    """The body's own text has the compiled one: that of a class inside a class, or of its class."""
    name = _QUALNAME(cls)
    if names.PREFIX in name:
        type.__setattr__(cls, "__qualname__", names.shown(name))


def _override(cls: type, name: str, value: Any) -> None:
    for base in _MRO(cls)[1:]:
        if isinstance(_DICT(base).get(name), _METHODS) and not is_script_class(base):
            type.__setattr__(cls, name, value)
            return
