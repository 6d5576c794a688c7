"""dataclasses, named tuples and functools.wraps: they build on names that a value hands them.

SAFETY: @dataclass compiles source text made of the annotations' names, so that every one must be
a plain identifier on a class of the script's own.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass as _dataclass
from dataclasses import fields, is_dataclass
from dataclasses import replace as _replace
from types import FunctionType
from typing import Any

from . import names
from .copying import FUNCTIONS
from .guards import attribute_name, load
from .kinds import is_looked_at, is_script_class

_PRIVATE = names.PREFIX + "_"


def dataclass(cls: Any = None, /, **options: Any) -> Any:
    """dataclasses.dataclass."""
    if cls is None:
        return lambda cls: _make(cls, options)
    return _make(cls, options)


def _make(cls: Any, options: dict[str, Any]) -> Any:
    if not isinstance(cls, type) or not is_script_class(cls):
        raise TypeError("dataclass() works on classes that the script defines")
    for name in cls.__dict__.get("__annotations__", {}):  # noqa: RUF063 - its own, unevaluated
        _check_field(cls, name)
    before = cls.__dict__.get("__init__"), cls.__dict__.get("__repr__")
    made: Any = _dataclass(cls, **options)
    if any(field.name.startswith(_PRIVATE) for field in fields(made)):
        _show_private_fields(made, *before)
    return made


def _check_field(cls: type, name: Any) -> None:
    if type(name) is not str or not name.isidentifier():
        raise TypeError(f"the field name {name!r} is not an identifier")
    if names.is_dunder(name) or (name in names.COMPUTED and is_looked_at(cls)):
        raise TypeError(f"the field name {name!r} is not available")
    attribute_name(name, store=True)


def _show_private_fields(cls: type, init: Any, text: Any) -> None:
    """Let __init__ take `_x=`, and repr() show it, where these are generated."""
    made_init, made_repr = cls.__dict__.get("__init__"), cls.__dict__.get("__repr__")
    if made_init is not init and made_init is not None:

        def __init__(self: Any, *args: Any, **values: Any) -> None:  # noqa: N807
            made_init(self, *args, **_compiled(values))

        cls.__init__ = __init__  # type: ignore[misc]
    if made_repr is not text and made_repr is not None:

        def __repr__(self: Any) -> str:  # noqa: N807
            return names.shown(made_repr(self))

        cls.__repr__ = __repr__  # type: ignore[assignment]


def _compiled(values: dict[str, Any]) -> dict[str, Any]:
    return {
        names.private(key) if names.is_private(key) else key: value for key, value in values.items()
    }


def shown_fields(value: Any) -> tuple[Any, ...]:
    """dataclasses.fields, under the names that the script wrote."""
    return tuple(_shown_field(field) for field in fields(value))


def _shown_field(field: Any) -> Any:
    if not field.name.startswith(_PRIVATE):
        return field
    shown = copy(field)
    shown.name = names.plain(field.name)
    return shown


def _fields(value: Any) -> list[tuple[str, Any]]:
    # A script can change the name of a Field that it holds: each name is checked when used.
    return [(f.name, load(value, f.name)) for f in fields(value)]


def _is_instance(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type)


def asdict(value: Any, *, dict_factory: Callable[[Any], Any] = dict) -> Any:
    """dataclasses.asdict."""
    if not _is_instance(value):
        raise TypeError("asdict() should be called on dataclass instances")
    return _plain(value, lambda pairs: dict_factory([(names.shown(k), v) for k, v in pairs]))


def astuple(value: Any, *, tuple_factory: Callable[[Any], Any] = tuple) -> Any:
    """dataclasses.astuple."""
    if not _is_instance(value):
        raise TypeError("astuple() should be called on dataclass instances")
    return _plain(value, lambda pairs: tuple_factory([item for _, item in pairs]))


def _plain(value: Any, factory: Callable[[Any], Any]) -> Any:
    if _is_instance(value):
        return factory([(key, _plain(item, factory)) for key, item in _fields(value)])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[_plain(item, factory) for item in value])
    if isinstance(value, list | tuple):
        return type(value)(_plain(item, factory) for item in value)
    if isinstance(value, dict):
        pairs = ((_plain(k, factory), _plain(v, factory)) for k, v in value.items())
        if hasattr(type(value), "default_factory"):
            copied = type(value)(value.default_factory)  # type: ignore[attr-defined]
            copied.update(pairs)
            return copied
        return type(value)(pairs)
    return FUNCTIONS["deepcopy"](value)


def replace(value: Any, /, **changes: Any) -> Any:
    """dataclasses.replace."""
    if not _is_instance(value):
        raise TypeError("replace() should be called on dataclass instances")
    for field in fields(value):
        _check_field(type(value), field.name)
    return _replace(value, **_compiled(changes))


def update_wrapper(
    wrapper: Any, wrapped: Any, assigned: Iterable[str] = (), updated: Iterable[str] = ()
) -> Any:
    """functools.update_wrapper: the names and the docstring, and a function's own attributes."""
    if isinstance(wrapper, type):
        return wrapper
    for name in ("__name__", "__qualname__", "__doc__"):
        value = getattr(wrapped, name, None)
        if type(value) is str or (name == "__doc__" and value is None):
            setattr(wrapper, name, value)
    if type(wrapper) is FunctionType and type(wrapped) is FunctionType:
        wrapper.__dict__.update(wrapped.__dict__)
    return wrapper


def wraps(
    wrapped: Any, assigned: Iterable[str] = (), updated: Iterable[str] = ()
) -> Callable[[Any], Any]:
    """functools.wraps."""
    return lambda wrapper: update_wrapper(wrapper, wrapped)


def named_tuple(
    typename: str, field_names: Any, *, rename: bool = False, defaults: Any = None
) -> Any:
    """collections.namedtuple."""
    make: Any = namedtuple
    made = make(typename, field_names, rename=rename, defaults=defaults)
    made.__module__ = "__main__"
    return made
