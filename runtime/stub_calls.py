"""A stub's call with the wrong arguments: every fault at once, as the host would tell it.

Python itself names one fault at a time. A leaf module: nothing but this is in its globals.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from .errors import InvalidArguments


def checked(
    function: FunctionType, tool: str, call: Callable[[str, dict[str, Any]], Any]
) -> Callable[..., Any]:
    """The stub, whose binding errors become InvalidArguments; `call` asks the host for the rest."""

    @functools.wraps(function)
    def stub(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            # Without a deeper frame the function was never entered: its arguments did not fit.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
        return _misfit(function, tool, call, args, kwargs)

    return stub


def _misfit(
    function: FunctionType,
    tool: str,
    call: Callable[[str, dict[str, Any]], Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    parameters = inspect.signature(function).parameters
    names = list(parameters)
    problems = []
    if len(args) > len(names):
        problems.append(f"{len(args)} arguments without a name, there are {len(names)} parameters")
    given = dict(zip(names, args, strict=False))
    problems += [f"{name}: given twice" for name in kwargs if name in given]
    arguments = {**given, **kwargs}
    unknown = [name for name in kwargs if name not in names]
    wire = _wire_names(function, names)
    if not problems and not set(unknown) & set(wire.values()):
        # The host knows the types too, and refuses what is missing or unknown.
        return call(tool, {wire.get(name, name): value for name, value in arguments.items()})
    problems += [f"{name}: there is no such parameter" for name in unknown]
    problems += [
        f"{name}: missing"
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty and name not in arguments
    ]
    raise InvalidArguments(tool, problems, names)


def _wire_names(function: FunctionType, names: list[str]) -> dict[str, str]:
    """The parameters' names in the stub to those on the wire: what its body would send."""
    sent: dict[str, str] = {}

    def send(tool: str, arguments: dict[str, str]) -> None:
        sent.update((name, wire) for wire, name in arguments.items())

    # The same code, sending to us.
    probe = FunctionType(function.__code__, {"_call": send, "_stream": send})
    probe(*names)
    return sent
