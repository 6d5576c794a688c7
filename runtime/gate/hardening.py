"""What is closed in the library itself, once, before a script can import it.

Some of the library compiles or looks up what an object says that a script holds and may change at
any moment, so that a check before the call comes too early. The sandbox's own process closes them
at the source; the host, which only reads scripts, never comes here.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from . import names


def _harden_fields() -> None:
    """The name of a dataclass field is a plain identifier, whoever sets it, whenever.

    SAFETY: @dataclass compiles source text made of the names of the fields, those of base classes
    too, and a script holds the Field objects.
    """
    slot: Any = dataclasses.Field.__dict__["name"]

    def set_name(field: Any, name: Any) -> None:
        if name is not None:
            _check_identifier(name)
        slot.__set__(field, name)

    kind: Any = dataclasses.Field
    kind.name = property(slot.__get__, set_name)


def _check_identifier(name: Any) -> None:
    if type(name) is not str or not name.isidentifier():
        raise TypeError(f"the field name {name!r} is not an identifier")
    if names.is_dunder(name) or (names.attribute_problem(name) and not names.is_reserved(name)):
        raise TypeError(f"the field name {name!r} is not available")


def _harden_enum() -> None:
    """`Enum("E", members)` takes members, no special methods of the class that it makes."""
    kind: Any = type(enum.Enum)
    create = kind._create_

    def _create_(cls: Any, class_name: Any, names: Any, **options: Any) -> Any:
        # The library takes the module from a frame, and there is one more now.
        options["module"] = options.get("module") or "__main__"
        return create(cls, class_name, _members(names), **options)

    kind._create_ = _create_


def _members(given: Any) -> list[Any]:
    """The members in a list of ours: what is checked is what is used."""
    if given is None:
        return []
    if isinstance(given, str):
        given = str(given).replace(",", " ").split()
    pairs = given.items() if isinstance(given, Mapping) else given
    return [_member(item) for item in pairs]


def _member(item: Any) -> Any:
    if isinstance(item, str):
        return _checked_member(item)
    name, value = item
    return _checked_member(name), value


def _checked_member(name: Any) -> str:
    if type(name) is not str or names.is_dunder(name):
        raise TypeError(f"the member name {name!r} is not available")
    return name


_HARDEN: dict[str, Callable[[], None]] = {"dataclasses": _harden_fields, "enum": _harden_enum}


@cache
def harden(module: str) -> None:
    """Close what is open in a module of the library; once a process."""
    if module in _HARDEN:
        _HARDEN[module]()
