"""The builtins of a script: an explicit table, with the guards among them."""

from __future__ import annotations

# ruff: noqa: SIM905 - a table of words reads best as text
import builtins
from collections.abc import Callable, Collection, Mapping
from typing import Any

from . import names
from .classes import build_class
from .files import guarded_open
from .freezing import freeze
from .guards import BUILTINS
from .libraries import importer

_PLAIN = """
    False None True Ellipsis NotImplemented __debug__
    abs aiter all anext any ascii bin bool bytearray bytes callable chr classmethod complex dict
    divmod enumerate filter float format frozenset hash hex id int isinstance issubclass iter len
    list map max memoryview min next object oct ord pow print property range repr reversed round
    set slice sorted staticmethod str sum super tuple zip
""".split()

_ERRORS = [
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
]


def script_builtins(
    show: Callable[[object], None],
    extra: Mapping[str, object],
    open_modules: Collection[str] = (),
) -> dict[str, Any]:
    """The builtins of a gated script, fresh; `extra` are names that the caller adds."""
    table = {name: getattr(builtins, name) for name in [*_PLAIN, *_ERRORS]}
    table.update(extra)
    for value in extra.values():
        freeze(value)
    table.update(BUILTINS)
    table.update({"open": guarded_open, "__build_class__": build_class})
    table.update({"__import__": importer(open_modules), names.SHOW: _showing(show)})
    return table


def open_builtins(show: Callable[[object], None], extra: Mapping[str, object]) -> dict[str, Any]:
    """Python's own builtins, for a script without the gate."""
    return {**vars(builtins), **extra, names.SHOW: _showing(show)}


def _showing(show: Callable[[object], None]) -> Callable[[object], None]:
    def show_unless_none(value: object) -> None:
        if value is not None:
            show(value)

    return show_unless_none
