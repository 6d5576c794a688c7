"""The one tool as each SDK takes it: a definition, a handler, a plain function.

code = CodeTool(executor)
code.tool_spec("anthropic")            # {"name": "execute_code", ...}
code.handle(name, arguments)           # the text that goes back to the model
code.as_tool()                         # a typed function for SDKs that take one
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal

from ..runtime import gate
from ..runtime.errors import ConfigurationError
from ..sandbox.backend import Limits
from ..sandbox.executor import Executor
from ..sandbox.session_faces import Session
from ..stubs.catalog import Catalog
from ..stubs.describe import TOOL_NAME, describe, input_schema

Style = Literal["anthropic", "openai", "openai-responses", "mcp"]


class CodeTool:
    """execute_code, backed by an executor."""

    def __init__(
        self, executor: Executor, *, session: Session | None = None, budget: int = 6_000
    ) -> None:
        """All calls run in `session`, of this executor, when there is one.

        `budget` bounds the description, in characters, however many tools there are.
        """
        self._runner = session or executor
        settings = executor.settings
        self.description = description(
            self._runner.catalog,
            settings.limits,
            gated=settings.gate,
            open_modules=settings.open_modules,
            budget=budget,
            keeps_state=session is not None,
        )
        """What the model reads of the tool."""

    def tool_spec(self, style: Style) -> dict[str, Any]:
        """The definition in the form of an API."""
        return tool_spec(self.description, style)

    def handle(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Run a model's call of the tool; the answer is always a text for the model."""
        code = _code(name, arguments)
        if isinstance(code, _Misuse):
            return code.text
        return self._runner.execute_code(code).for_model()

    def as_tool(self) -> Callable[[str], str]:
        """A plain typed function, for SDKs that derive a tool from one."""

        def execute_code(code: str) -> str:
            return self.handle(TOOL_NAME, {"code": code})

        execute_code.__doc__ = f"{self.description}\n\nArgs:\n    code: {_CODE}"
        return execute_code


_CODE: str = input_schema()["properties"]["code"]["description"]


def description(
    catalog: Catalog,
    limits: Limits,
    *,
    gated: bool,
    open_modules: Collection[str] = (),
    budget: int = 6_000,
    keeps_state: bool = False,
) -> str:
    """What the model reads of execute_code; `keeps_state` when its calls are those of a session."""
    shown = {
        "time": f"{limits.wall:g} s",
        "memory": f"{limits.memory // 1024**2} MiB",
        "printout": f"{limits.output_kept // 1024} KiB",
    }
    modules = (
        *sorted(open_modules),
        *(gate.ALLOWED_MODULES if gated else ("the whole standard library",)),
    )
    return describe(catalog, limits=shown, modules=modules, budget=budget, keeps_state=keeps_state)


def tool_spec(text: str, style: Style) -> dict[str, Any]:
    """A definition with `text` as its description, in the form of an API."""
    schema = input_schema()
    function = {"name": TOOL_NAME, "description": text, "parameters": schema}
    if style == "anthropic":
        return {"name": TOOL_NAME, "description": text, "input_schema": schema}
    if style == "openai":
        return {"type": "function", "function": {**function, "strict": True}}
    if style == "openai-responses":
        return {"type": "function", **function, "strict": True}
    if style == "mcp":
        return {"name": TOOL_NAME, "description": text, "inputSchema": schema}
    known = "anthropic, openai, openai-responses, mcp"
    raise ConfigurationError("style", f"{style!r} is not known", f"the styles are: {known}.")


class _Misuse:
    def __init__(self, text: str) -> None:
        self.text = text


def _code(name: str, arguments: Mapping[str, Any] | str) -> str | _Misuse:
    if name != TOOL_NAME:
        return _Misuse(f"There is no tool {name[:100]!r}. The one tool is {TOOL_NAME}.")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError as error:
            return _Misuse(f'The arguments are not JSON ({error}). Send {{"code": "..."}}.')
    if not isinstance(arguments, Mapping) or not isinstance(arguments.get("code"), str):
        return _Misuse(f'{TOOL_NAME} takes one argument, a text: {{"code": "print(1)"}}.')
    unknown = [key for key in arguments if key != "code"]
    if unknown:
        return _Misuse(f"{TOOL_NAME} takes only `code`; leave out {', '.join(map(str, unknown))}.")
    code: str = arguments["code"]
    return code
