"""What an author hands in as a tool: the function behind it, and a name for it.

A function, a coroutine function, a generator of either kind; a bound method, a static method, a
`functools.partial`, an object with `__call__`. What cannot be one is refused with what to do.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..runtime.errors import ConfigurationError


def check_callable(handler: Any) -> None:
    """Raise ConfigurationError for what cannot be a tool at all."""
    if isinstance(handler, classmethod):
        raise ConfigurationError(
            "a class method", "it cannot be called by itself", "add it by its class: Orders.get."
        )
    if isinstance(handler, type):
        raise ConfigurationError(
            f"the class {handler.__name__}",
            "a class is not a tool",
            "add a function that makes one, or the methods of an object.",
        )
    if not callable(handler):
        raise ConfigurationError(
            f"an object of class {type(handler).__name__}",
            "it cannot be called",
            "add a function.",
        )


def handler_name(handler: Any) -> str:
    """The name that a handler has of its own. Raises ConfigurationError when it has none."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    name = getattr(handler, "__name__", None)
    if isinstance(name, str) and name != "<lambda>":
        return name
    what = "a lambda" if name else f"an object of class {type(handler).__name__}"
    raise ConfigurationError(
        what, "it has no name that a script could call", 'name it: add(..., name="get_order").'
    )


def function_of(handler: Any) -> Callable[..., Any]:
    """The function that has the handler's annotations and docstring."""
    while True:
        if isinstance(handler, functools.partial):
            handler = handler.func
        elif isinstance(handler, staticmethod):
            handler = handler.__func__
        elif inspect.isroutine(handler) or hasattr(handler, "__wrapped__"):
            return handler  # type: ignore[no-any-return]
        else:
            return handler.__call__  # type: ignore[no-any-return]


def parameters_of(handler: Callable[..., Any], tool: str) -> list[inspect.Parameter]:
    """The parameters that are left to the caller. Raises ConfigurationError."""
    function = function_of(handler)
    if inspect.isbuiltin(function):
        raise ConfigurationError(
            tool,
            "it is written in C and has no annotations",
            "write a function with annotations that calls it.",
        )
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            tool,
            f"its parameters cannot be read: {error}",
            "write a function with annotations that calls it.",
        ) from None
    _check_bound(function, parameters, tool)
    bound = _given(handler)
    return [parameter for parameter in parameters if parameter.name not in bound]


def docstring_of(handler: Callable[..., Any]) -> str:
    """The docstring of the function, or of the class whose object is called."""
    function = function_of(handler)
    if getattr(function, "__name__", "") != "__call__":
        return inspect.getdoc(function) or ""
    # getdoc would find the one of `type`, that of every class.
    own = function.__doc__ or type(getattr(function, "__self__", None)).__doc__
    return inspect.cleandoc(own or "")


def origin(handler: Callable[..., Any]) -> str:
    """Where a handler comes from, for a person."""
    function = function_of(handler)
    module = getattr(function, "__module__", "?")
    return f"{module}.{getattr(function, '__qualname__', repr(function))}"


def _check_bound(
    function: Callable[..., Any], parameters: list[inspect.Parameter], tool: str
) -> None:
    owner = getattr(function, "__qualname__", "").rpartition(".")[0]
    if not owner or owner.endswith("<locals>") or not parameters:
        return
    first = parameters[0]
    if first.name in ("self", "cls") and first.annotation is first.empty:
        raise ConfigurationError(
            tool,
            f"a method of {owner.rpartition('.')[2]} without its object",
            "add the method of an object: add(Orders().get_order).",
        )


def _given(handler: Any) -> set[str]:
    """What a partial has given by keyword: it is neither shown nor to be overridden."""
    given: set[str] = set()
    while isinstance(handler, functools.partial):
        given |= set(handler.keywords)
        handler = handler.func
    return given
