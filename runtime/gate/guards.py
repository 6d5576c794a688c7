"""What a script computes at run time and could name anything with: checked by the same table.

Plain attribute, item and iteration operations have no guard and cost nothing.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
import inspect
import os
import string
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any

from .names import PREFIX, compiled_attribute, is_dunder, refused_attribute

_MISSING = object()

READ_ROOTS = ("/workspace", "/tmp", "/data", "/tools")  # noqa: S108 - paths inside the sandbox
WRITE_ROOTS = ("/workspace", "/tmp")  # noqa: S108 - paths inside the sandbox


def attribute_name(name: object) -> str:
    """The compiled form of a computed attribute's name. Raises AttributeError or TypeError."""
    if type(name) is not str:
        raise TypeError(f"attribute name must be a text, not {type(name).__name__}")
    problem = refused_attribute(name)
    if problem is not None:
        raise AttributeError(problem)
    return compiled_attribute(name)


def guarded_getattr(item: Any, name: str, default: Any = _MISSING) -> Any:
    """getattr, for names that a script may use."""
    if name in ("format", "format_map"):
        return format_method(item, name)
    compiled = attribute_name(name)
    if default is _MISSING:
        return getattr(item, compiled)
    return getattr(item, compiled, default)


def guarded_setattr(item: Any, name: str, value: Any) -> None:
    """setattr, for names that a script may use."""
    setattr(item, attribute_name(name), value)


def guarded_delattr(item: Any, name: str) -> None:
    """delattr, for names that a script may use."""
    delattr(item, attribute_name(name))


def guarded_hasattr(item: Any, name: str) -> bool:
    """hasattr; what a script may not use is not there."""
    try:
        return hasattr(item, attribute_name(name))
    except AttributeError:
        return False


def guarded_type(item: Any) -> Any:
    """type with one argument; a metaclass is not handed out."""
    kind = type(item)
    return type if issubclass(kind, type) else kind


def guarded_vars(item: Any = _MISSING) -> dict[str, Any]:
    """vars of an object: a copy, without what is private to others."""
    if item is _MISSING:
        raise TypeError("vars() without an object is not available: keep your own dict")
    return {
        key.removeprefix(PREFIX): value
        for key, value in vars(item).items()
        if not key.startswith("_") or key.startswith(PREFIX)
    }


def guarded_dir(item: Any = _MISSING) -> list[str]:
    """dir of an object: its public names."""
    if item is _MISSING:
        raise TypeError("dir() without an object is not available")
    return [name for name in dir(item) if not name.startswith("_")]


def guarded_open(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
    """open, for files that the sandbox gives a script."""
    if not isinstance(file, str | os.PathLike):
        raise TypeError("open() takes a path")
    path = os.path.realpath(os.fspath(file))
    roots = READ_ROOTS if set(mode) <= set("rbt") else WRITE_ROOTS
    if not any(path == root or path.startswith(f"{root}/") for root in roots):
        what = "read" if roots is READ_ROOTS else "written"
        raise PermissionError(f"{file!s} cannot be {what}: files are under {', '.join(roots)}")
    if "opener" in options:
        raise TypeError("open() takes no opener here")
    return builtins.open(path, mode, *arguments, **options)


class _Formatter(string.Formatter):
    """str.format whose fields go through the guarded getattr."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        first, rest = string._string.formatter_field_name_split(field_name)  # type: ignore[attr-defined]
        value = self.get_value(first, args, kwargs)
        for is_attribute, key in rest:
            value = guarded_getattr(value, key) if is_attribute else value[key]
        return value, first


def format_method(item: Any, name: str) -> Any:
    """`x.format` and `x.format_map`, read as attributes."""
    if isinstance(item, str):
        if name == "format":
            return functools.partial(_format, item)
        return functools.partial(_format_map, item)
    if isinstance(item, type) and issubclass(item, str):
        return _format if name == "format" else _format_map
    value = getattr(item, name)
    owner = getattr(value, "__self__", None)
    if isinstance(owner, str) and not isinstance(value, FunctionType | MethodType):
        return format_method(owner, name)  # super().format, and the like
    return value


def _format(template: str, /, *arguments: Any, **named: Any) -> str:
    return _Formatter().vformat(_checked_text(template), arguments, named)


def _format_map(template: str, mapping: Mapping[str, Any], /) -> str:
    return _Formatter().vformat(_checked_text(template), (), mapping)


def _checked_text(template: str) -> str:
    if not isinstance(template, str):
        raise TypeError("format needs a text")
    return str.__str__(template)


def attrgetter(*names: str) -> Callable[[Any], Any]:
    """operator.attrgetter, for names that a script may use."""
    paths = [[attribute_name(part) for part in name.split(".")] for name in names]
    if not paths:
        raise TypeError("attrgetter expected at least 1 argument, got 0")

    def get(item: Any) -> Any:
        values = tuple(functools.reduce(getattr, path, item) for path in paths)
        return values[0] if len(values) == 1 else values

    return get


def methodcaller(name: str, /, *arguments: Any, **named: Any) -> Callable[[Any], Any]:
    """operator.methodcaller, for names that a script may use."""
    attribute_name(name)

    def call(item: Any) -> Any:
        return guarded_getattr(item, name)(*arguments, **named)

    return call


def update_wrapper(wrapper: Any, wrapped: Any, *_: Any, **__: Any) -> Any:
    """functools.update_wrapper: texts alone, onto functions alone."""
    if isinstance(wrapper, FunctionType) and isinstance(wrapped, FunctionType | MethodType):
        for name in ("__name__", "__qualname__", "__doc__"):
            value = getattr(wrapped, name, None)
            if type(value) is str:
                setattr(wrapper, name, value)
    return wrapper


def wraps(wrapped: Any, *_: Any, **__: Any) -> Callable[[Any], Any]:
    """functools.wraps."""
    return lambda wrapper: update_wrapper(wrapper, wrapped)


def dataclass(cls: Any = None, /, **options: Any) -> Any:
    """dataclasses.dataclass, on classes of the script's own: it writes code from their names."""

    def decorate(cls: Any) -> Any:
        if not isinstance(cls, type) or cls.__module__ != "__main__":
            raise TypeError("dataclass() takes a class of the script")
        for name in inspect.get_annotations(cls):
            if type(name) is not str or not name.isidentifier() or is_dunder(name):
                raise TypeError(f"{name!r} cannot be a field")
        return dataclasses.dataclass(cls, **options)

    return decorate if cls is None else decorate(cls)


BUILTINS: dict[str, Callable[..., Any]] = {
    "getattr": guarded_getattr,
    "setattr": guarded_setattr,
    "delattr": guarded_delattr,
    "hasattr": guarded_hasattr,
    "vars": guarded_vars,
    "dir": guarded_dir,
    "open": guarded_open,
    f"{PREFIX}format": format_method,
    f"{PREFIX}type": guarded_type,
    f"{PREFIX}vars": guarded_vars,
}
"""In the place of a built-in function, or called by compiled code."""

IN_MODULES: dict[str, Callable[..., Any]] = {
    "attrgetter": attrgetter,
    "methodcaller": methodcaller,
    "update_wrapper": update_wrapper,
    "wraps": wraps,
    "dataclass": dataclass,
}
"""In the place of a module's name."""
