"""The seam of the tools: Tool, ToolSpec, Toolset and the decorators.

    orders = Toolset("orders", "Orders of the shop.")

    @orders.tool(effect="read")
    def get_order(order_id: int) -> Order:
        \"\"\"Look an order up by its number.\"\"\"

One source of truth: the function. Name, description, input and output schema come from it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Self, TypeVar, Unpack, overload

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from ..runtime import payload
from ..runtime.errors import ConfigurationError, InvalidArguments, ResultInvalid
from .context import ToolContext as ToolContext
from .contract import Contract, derive
from .contract import HandlerKind as HandlerKind
from .effect import Effect as Effect
from .handler import check_callable, handler_name, origin
from .names import member_name, module_name, parameter_names
from .options import Options, checked
from .problems import told
from .strict import Reader

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool's contract, without its handler: what is shown, checked and decided."""

    toolset: str
    name: str
    """As the stub names it: an identifier."""
    description: str
    input_schema: dict[str, Any]
    """JSON Schema of the arguments, an object."""
    output_schema: dict[str, Any] | None
    """JSON Schema of the result, or of one row when streamed; None when nothing is declared."""
    effect: Effect = Effect.DESTRUCTIVE
    scopes: frozenset[str] = frozenset()
    """All of them are needed."""
    approval: str = "default"
    """default, ask or deny: an author may only tighten what the effect asks for."""
    timeout: float | None = None
    """Seconds; None is the operator's default."""
    max_calls: int | None = None
    cooldown_seconds: float | None = None
    side_effects: str = ""
    version: str = ""
    idempotent: bool = False
    streamed: bool = False

    @property
    def qualified(self) -> str:
        """ "orders.get_order": the name on the wire."""
        return f"{self.toolset}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A contract with the handler that keeps it."""

    spec: ToolSpec
    handler: Callable[..., Any] = field(repr=False)
    kind: HandlerKind
    context_parameter: str | None
    parameters: tuple[str, ...]
    always: frozenset[str] = frozenset()
    """Parameters that are handed over even when they were not sent."""
    reader: Reader = field(repr=False)
    adapter: TypeAdapter[Any] = field(repr=False)

    def read_arguments(self, raw: bytes) -> dict[str, Any]:
        """The handler's keyword arguments from a sandbox's JSON, strictly.

        "123" is never 123. Raises InvalidArguments with every fault at once.
        """
        try:
            arguments = self.reader.read(raw)
        except payload.PayloadError as error:
            raise self._misfit([str(error)]) from None
        except ValidationError as error:
            raise self._misfit(told(error, names=self._shown())) from None
        sent = arguments.model_fields_set
        return {
            name: getattr(arguments, f"p{index}")
            for index, name in enumerate(self.parameters)
            if f"p{index}" in sent or name in self.always
        }

    def _shown(self) -> dict[str, str]:
        """The parameters as the script's author sees them, by the names on the wire."""
        return parameter_names(self.parameters)

    def _misfit(self, problems: list[str]) -> InvalidArguments:
        return InvalidArguments(self.spec.qualified, problems, list(self._shown().values()))

    def write_result(self, value: Any) -> bytes:
        """The payload of a handler's value, checked against the declared type.

        Raises ResultInvalid.
        """
        return self._write(value, "the result")

    def write_row(self, value: Any) -> bytes:
        """The payload of one row of a streamed result. Raises ResultInvalid."""
        return self._write(value, "a row")

    def _write(self, value: Any, subject: str) -> bytes:
        adapter = self.adapter
        try:
            try:
                checked = adapter.validate_python(value, strict=True)
            except ValidationError:
                # What is no instance may be the plain form of one: a dict of a model.
                checked = adapter.validate_json(to_json(value, bytes_mode="base64"), strict=True)
            plain = adapter.dump_python(checked, by_alias=True, warnings="error")
            return payload.encode(plain, default=to_jsonable_python)
        except ValidationError as error:
            raise ResultInvalid(self.spec.qualified, told(error, subject)) from None
        except (PydanticSerializationError, payload.PayloadError, ValueError, TypeError) as error:
            problem = f"{subject}: {(str(error).splitlines() or [''])[0][:300]}"
            raise ResultInvalid(self.spec.qualified, [problem]) from None


class Toolset:
    """A named group of tools; a module of that name in the script."""

    def __init__(self, name: str, description: str = "") -> None:
        """Raises ConfigurationError when the name cannot be a module's."""
        self.name = module_name(name)
        self.description = description
        self._tools: dict[str, Tool] = {}

    @property
    def tools(self) -> tuple[Tool, ...]:
        """In the order of their making."""
        return tuple(self._tools.values())

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self._tools)

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(self, /, **options: Any) -> Callable[[F], F]: ...

    def tool(self, function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
        """Decorate a function: it becomes a tool and stays what it is. Options as in `add`."""

        def decorate(function: F) -> F:
            self.add(function, **options)
            return function

        return decorate if function is None else decorate(function)

    def add(self, function: Callable[..., Any], **options: Unpack[Options]) -> Tool:
        """Make a tool of a function; the options are those of `Options`.

        Args:
            function: Plain, coroutine, or generator function of either kind; also a bound method,
                a `functools.partial` or an object with `__call__`.
            options: `name`, `effect`, `scopes` and so on.

        Raises:
            ConfigurationError: It names toolset, function and parameter.
        """
        check_callable(function)
        tool_name = member_name(options.pop("name", None) or handler_name(function))
        qualified = f"{self.name}.{tool_name}"
        if tool_name in self._tools:
            other = origin(self._tools[tool_name].handler)
            raise ConfigurationError(
                qualified, f"two tools of that name: {other} and {origin(function)}"
            )
        contract = derive(function, qualified)
        made = _tool(_spec(self.name, tool_name, contract, options), function, contract)
        self._tools[tool_name] = made
        return made

    @classmethod
    def from_functions(cls, name: str, functions: Iterable[Callable[..., Any]]) -> Self:
        """A toolset of functions, with the options of their `@tool`, if they have one."""
        functions = list(functions)
        made = cls(name)
        for function in functions:
            made.add(function, **getattr(function, "__limbeck_tool__", {}))
        return made

    @classmethod
    def from_module(cls, module: ModuleType) -> Self:
        """A toolset of a module's functions that are marked with `@tool`."""
        functions = [
            value
            for value in vars(module).values()
            if hasattr(value, "__limbeck_tool__") and value.__module__ == module.__name__
        ]
        made = cls.from_functions(module.__name__.rpartition(".")[2], functions)
        made.description = inspect.getdoc(module) or ""
        return made


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(**options: Any) -> Callable[[F], F]: ...


def tool(function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
    """Mark a function, so that its module can be loaded as a toolset. Options as in Toolset.add."""

    def decorate(function: F) -> F:
        try:
            function.__limbeck_tool__ = options  # type: ignore[attr-defined]
        except AttributeError:
            raise ConfigurationError(
                repr(function)[:80],
                "it cannot be marked as a tool",
                "mark the function itself, or hand this to Toolset.add.",
            ) from None
        return function

    return decorate if function is None else decorate(function)


def _spec(toolset: str, name: str, contract: Contract, options: Mapping[str, Any]) -> ToolSpec:
    fields = checked(options, f"{toolset}.{name}")
    if fields.get("description") is None:
        fields["description"] = contract.description
    return ToolSpec(
        toolset=toolset,
        name=name,
        input_schema=contract.input_schema,
        output_schema=contract.output_schema,
        streamed=contract.kind in (HandlerKind.GENERATOR, HandlerKind.ASYNC_GENERATOR),
        **fields,
    )


def _tool(spec: ToolSpec, function: Callable[..., Any], contract: Contract) -> Tool:
    return Tool(
        spec=spec,
        handler=function,
        kind=contract.kind,
        context_parameter=contract.context_parameter,
        parameters=contract.parameters,
        always=contract.always,
        reader=contract.reader,
        adapter=contract.adapter,
    )
