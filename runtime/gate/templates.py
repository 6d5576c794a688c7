"""str.format without the attribute walk: fields go through the getattr guard.

A template that names no attribute and no item runs as plain str.format.
"""

from __future__ import annotations

import string
from _string import (  # type: ignore[import-not-found]
    formatter_field_name_split,
    formatter_parser,
)
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_METHOD: type[Any] = type("".format)
_FORMAT: Callable[..., str] = str.__dict__["format"]
_FORMAT_MAP: Callable[..., str] = str.__dict__["format_map"]


def is_plain(template: str) -> bool:
    """Does no field of the template name an attribute or an item? Broken ones count as plain."""
    try:
        parts = list(formatter_parser(template))
    except ValueError:
        return True
    return not any(
        field is not None and ("." in field or "[" in field or "{" in (spec or ""))
        for _, field, spec, _ in parts
    )


class _Formatter(string.Formatter):
    def __init__(self, load: Callable[[Any, str], Any]) -> None:
        self._load = load

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        first, rest = formatter_field_name_split(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, key in rest:
            value = self._load(value, key) if is_attribute else value[key]
        return value, first


def guard(value: Any, load: Callable[[Any, str], Any]) -> Any:
    """The safe twin of a str.format or str.format_map in any form; any other value as it is."""
    if value is _FORMAT:
        return lambda template, /, *args, **kwargs: _format(load, template, args, kwargs)
    if value is _FORMAT_MAP:
        return lambda template, mapping, /: _format(load, template, (), mapping, mapped=True)
    if type(value) is _METHOD and isinstance(value.__self__, str):
        template = str.__str__(value.__self__)
        if value.__name__ == "format":
            return lambda *args, **kwargs: _format(load, template, args, kwargs)
        if value.__name__ == "format_map":
            return lambda mapping, /: _format(load, template, (), mapping, mapped=True)
    return value


def format_fields(load: Callable[[Any, str], Any], template: str, fields: Any) -> str:
    """Fill the fields of a template by name."""
    return _format(load, template, (), fields, mapped=True)


def _format(
    load: Callable[[Any, str], Any],
    template: str,
    args: Sequence[Any],
    kwargs: Any,
    *,
    mapped: bool = False,
) -> str:
    template = str.__str__(template)
    if not is_plain(template):
        return _Formatter(load).vformat(template, args, kwargs)
    return _FORMAT_MAP(template, kwargs) if mapped else _FORMAT(template, *args, **kwargs)
