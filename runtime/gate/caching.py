"""functools.cached_property for scripts.

SAFETY: the library's reads and writes whatever name it was told in the `__dict__` of whatever it
is asked about: `__builtins__` of a module, private state of a library's object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .guards import attribute_name


class cached_property:  # noqa: N801 - as in functools
    """A method that is called once for each instance; its value takes its place."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self.func = func
        self.attrname: str | None = None
        self.__doc__ = func.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        if self.attrname not in (None, name):
            raise TypeError(
                "Cannot assign the same cached_property to two different names "
                f"({self.attrname!r} and {name!r})."
            )
        self.attrname = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if self.attrname is None:
            raise TypeError("a cached property must be defined in a class")
        name = attribute_name(self.attrname, store=True)
        values = getattr(instance, "__dict__", None)
        if type(values) is not dict:
            raise TypeError(f"no __dict__ to keep the cached property {name!r} in")
        if name not in values:
            values[name] = self.func(instance)
        return values[name]
