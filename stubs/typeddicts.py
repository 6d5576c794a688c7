"""`typing.TypedDict` for pydantic on Python 3.11, which takes only that of typing_extensions.

Authors write the one of the standard library. Before 3.12 each is rebuilt, also inside other types,
as its twin; a recursive one refers to its own twin.
"""

from __future__ import annotations

import functools
import operator
import sys
import types
import typing
from typing import Annotated, Any, get_args, get_origin

import typing_extensions


def twin(annotation: Any) -> Any:
    """The annotation with every `typing.TypedDict` in it as pydantic takes it."""
    if sys.version_info >= (3, 12):
        return annotation
    return _convert(annotation, {})


def _convert(annotation: Any, made: dict[Any, Any]) -> Any:
    if typing.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return made[annotation] if annotation in made else _rebuild(annotation, made)
    arguments = get_args(annotation)
    if not arguments or get_origin(annotation) is typing.Literal:
        return annotation
    if get_origin(annotation) is Annotated:
        inner = _convert(annotation.__origin__, made)
        return Annotated[(inner, *annotation.__metadata__)]
    converted = tuple(
        argument if isinstance(argument, list) else _convert(argument, made)
        for argument in arguments
    )
    if converted == arguments:
        return annotation
    if isinstance(annotation, types.UnionType):
        return functools.reduce(operator.or_, converted)
    if isinstance(annotation, types.GenericAlias):
        return types.GenericAlias(get_origin(annotation), converted)
    return annotation.copy_with(converted)


def _rebuild(source: Any, made: dict[Any, Any]) -> Any:
    make: Any = typing_extensions.TypedDict
    target = make(source.__name__, {})
    made[source] = target
    target.__module__, target.__doc__ = source.__module__, source.__doc__
    hints = typing.get_type_hints(source, include_extras=True)
    required = {name for name, hint in hints.items() if _is_required(source, name, hint)}
    target.__annotations__ = {name: _convert(hint, made) for name, hint in hints.items()}
    target.__required_keys__ = frozenset(required)
    target.__optional_keys__ = frozenset(hints) - required
    return target


def _is_required(source: Any, name: str, hint: Any) -> bool:
    # Under `from __future__ import annotations` the class itself does not know.
    origin = get_origin(hint)
    if origin is typing.NotRequired:
        return False
    return origin is typing.Required or name in source.__required_keys__
