"""A function's contract: its parameters as a pydantic model, its result as a type adapter.

The arguments model has fields p0, p1, ... with the parameters' names as aliases, so that no name of
a parameter can clash with an attribute of pydantic's.
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, get_args, get_origin

from pydantic import ConfigDict, Field, TypeAdapter, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo

from ..runtime.errors import ConfigurationError
from .context import ToolContext
from .docstring import read_docstring
from .handler import docstring_of, function_of, parameters_of
from .strict import Reader
from .typeddicts import twin


class HandlerKind(StrEnum):
    """How a handler is run."""

    PLAIN = "plain"
    COROUTINE = "coroutine"
    GENERATOR = "generator"
    ASYNC_GENERATOR = "async_generator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What a function's signature and docstring say."""

    kind: HandlerKind
    description: str
    parameters: tuple[str, ...]
    """Names that the model may send, in order."""
    always: frozenset[str]
    """Parameters without a default of Python's own: the model's default is handed over."""
    context_parameter: str | None
    reader: Reader
    adapter: TypeAdapter[Any]
    """Of the result, or of one row."""
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    """None when nothing is declared."""


_CONFIG = ConfigDict(
    extra="forbid", val_json_bytes="base64", ser_json_bytes="base64", protected_namespaces=()
)
_ROW_TYPES = (
    collections.abc.Iterator,
    collections.abc.Iterable,
    collections.abc.Generator,
    collections.abc.AsyncIterator,
    collections.abc.AsyncIterable,
    collections.abc.AsyncGenerator,
)


def derive(function: Callable[..., Any], tool: str) -> Contract:
    """Read a function's contract. Raises ConfigurationError, which names tool and parameter."""
    kind = _kind(function_of(function))
    hints = _hints(function_of(function), tool)
    doc = read_docstring(docstring_of(function))
    parameters: list[str] = []
    context_parameter: str | None = None
    fields: dict[str, Any] = {}
    always: list[str] = []
    for parameter in parameters_of(function, tool):
        annotation = hints.get(parameter.name, Any)
        if _is_context(annotation):
            context_parameter = parameter.name
            continue
        _check_kind(parameter, tool)
        annotation, info = _field(parameter, annotation, doc.parameters.get(parameter.name))
        if parameter.default is parameter.empty or isinstance(parameter.default, FieldInfo):
            always.append(parameter.name)
        fields[f"p{len(parameters)}"] = (annotation, info)
        _check_type(annotation, f"{tool}: parameter {parameter.name!r}")
        parameters.append(parameter.name)
    result = _result_type(kind, hints.get("return", inspect.Signature.empty))
    declared = result is not inspect.Signature.empty
    adapter = _adapter(result if declared else Any, f"{tool}: the result")
    try:
        model = create_model("Arguments", __config__=_CONFIG, **fields)
        input_schema = model.model_json_schema()
        output_schema = adapter.json_schema(mode="serialization") if declared else None
    except (PydanticUserError, PydanticSchemaGenerationError, TypeError) as error:
        raise ConfigurationError(tool, f"no JSON Schema for it: {_first_line(error)}") from None
    return Contract(
        kind=kind,
        description=doc.description,
        parameters=tuple(parameters),
        always=frozenset(always),
        context_parameter=context_parameter,
        reader=Reader(model),
        adapter=adapter,
        input_schema=_tidy(input_schema),
        output_schema=None if output_schema is None else _tidy(output_schema),
    )


def _kind(function: Callable[..., Any]) -> HandlerKind:
    if inspect.isasyncgenfunction(function):
        return HandlerKind.ASYNC_GENERATOR
    if inspect.iscoroutinefunction(function):
        return HandlerKind.COROUTINE
    if inspect.isgeneratorfunction(function):
        return HandlerKind.GENERATOR
    return HandlerKind.PLAIN


def _hints(function: Callable[..., Any], tool: str) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        return {name: twin(hint) for name, hint in hints.items()}
    except Exception as error:
        raise ConfigurationError(
            tool,
            f"its annotations cannot be read: {_first_line(error)}",
            "define the types at the top of the module.",
        ) from None


def _is_context(annotation: Any) -> bool:
    if annotation is ToolContext:
        return True
    union = get_origin(annotation) in (typing.Union, types.UnionType)
    return union and ToolContext in get_args(annotation)


def _check_kind(parameter: inspect.Parameter, tool: str) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
        raise ConfigurationError(
            tool,
            f"the parameter {stars}{parameter.name} has no schema",
            "name each parameter, or take a list or a dict.",
        )
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise ConfigurationError(
            tool,
            f"the parameter {parameter.name!r} is positional-only",
            "leave out the / in its signature.",
        )


def _field(
    parameter: inspect.Parameter, annotation: Any, description: str | None
) -> tuple[Any, FieldInfo]:
    """The model's field: its type and what pydantic is told of it."""
    default = parameter.default
    options: dict[str, Any] = {"alias": parameter.name}
    if description is not None:
        options["description"] = description
    if not isinstance(default, FieldInfo):
        if default is not parameter.empty:
            options["default"] = default
        return annotation, Field(**options)
    # `n: int = Field(5, ge=1)`: its constraints belong to the type.
    if default.default_factory is not None:
        options["default_factory"] = default.default_factory
    elif not default.is_required():
        options["default"] = default.default
    return Annotated[annotation, default], Field(**options)


def _check_type(annotation: Any, what: str) -> None:
    _adapter(annotation, what)


def _adapter(annotation: Any, what: str) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(annotation)
    except (PydanticUserError, PydanticSchemaGenerationError, TypeError) as error:
        raise ConfigurationError(
            what,
            f"pydantic cannot describe its type: {_first_line(error)}",
            "use plain types, dataclasses, TypedDicts, Enums or pydantic models.",
        ) from None


def _result_type(kind: HandlerKind, annotation: Any) -> Any:
    if kind not in (HandlerKind.GENERATOR, HandlerKind.ASYNC_GENERATOR):
        return annotation
    base = annotation.__origin__ if get_origin(annotation) is Annotated else annotation
    if get_origin(base) in _ROW_TYPES and get_args(base):
        return get_args(base)[0]
    return inspect.Signature.empty


def _tidy(schema: Any) -> Any:
    """Without the titles that pydantic makes up from names: they only cost tokens."""
    if isinstance(schema, dict):
        return {
            key: _tidy_children(value) if key in ("properties", "$defs") else _tidy(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str))
        }
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    return schema


def _tidy_children(children: Any) -> Any:
    """Under these keys a "title" is a name, not a title."""
    if not isinstance(children, dict):
        return children
    return {name: _tidy(schema) for name, schema in children.items()}


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
