"""A toolset as a Python module, built from `ast` nodes: what the model reads and a script imports.

SAFETY: no source text is ever put together from strings. Names are checked identifiers, everything
else is an ast.Constant, so that no description can leave its docstring. Deterministic.
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..runtime.text import neutralise
from .catalog import Catalog, ToolsetView
from .names import parameter_names
from .notes import docstring
from .schema import Either, Expression, Literals, Name, Subscript, TypedDictType, Types
from .tool import Tool, ToolSpec

_BRIDGE_NAMES = ("_UNSET", "_call", "_stream")
"""No tool and no parameter begins with an underscore: nothing can shadow them."""

_TYPING = ("Any", "Literal", "NotRequired", "TypedDict")


def render_catalog(catalog: Catalog) -> dict[str, str]:
    """File name to source: one module a toolset, and the package's own `__init__.py`."""
    index = "\n".join(f"{view.name}: {_first_line(view.description)}" for view in catalog.toolsets)
    package = ast.Module([_doc(f"The tools of this session.\n\n{index}".strip())], [])
    sources = {"__init__.py": _unparse(package)}
    for view in catalog.toolsets:
        sources[f"{view.name}.py"] = render_toolset(view)
    return sources


def render_bridge() -> str:
    """`tools/_bridge.py` for reading and type checking; a sandbox has its own."""
    return _BRIDGE


@functools.lru_cache(maxsize=4096)
def _render(key: _Key) -> str:
    return _unparse(_Module(key.view).tree())


def render_toolset(view: ToolsetView) -> str:
    """The source of one toolset's module."""
    return _render(_Key(view))


def signature(tool: Tool) -> str:
    """One line of a tool: `get_order(order_id: int) -> Order`."""
    types = Types(_names(tool))
    function = _Stub(tool.spec, types).function()
    returns = ast.unparse(function.returns) if function.returns is not None else "Any"
    return neutralise(f"{function.name}({ast.unparse(function.args)}) -> {returns}")


class _Key:
    """A toolset's identity for the cache: its view object, which never changes."""

    def __init__(self, view: ToolsetView) -> None:
        self.view = view

    def __hash__(self) -> int:
        return hash((self.view.name, self.view.description, tuple(map(id, self.view.tools))))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and (
            self.view.name == other.view.name
            and self.view.description == other.view.description
            and tuple(map(id, self.view.tools)) == tuple(map(id, other.view.tools))
        )


class _Module:
    def __init__(self, view: ToolsetView) -> None:
        self._view = view
        taken = [name for tool in view.tools for name in _names(tool)]
        self._types = Types([*taken, *_TYPING, "Iterator"])

    def tree(self) -> ast.Module:
        functions = [_Stub(tool.spec, self._types).function() for tool in self._view.tools]
        classes = [_typed_dict(one) for one in self._types.typed_dicts]
        body: list[ast.stmt] = [*classes, *functions]
        head: list[ast.stmt] = []
        if self._view.description.strip():
            head.append(_doc(self._view.description))
        if classes or any(hasattr(builtins, tool.spec.name) for tool in self._view.tools):
            # A TypedDict may name itself, or one that comes later; a tool may be called `list`.
            head.append(ast.ImportFrom("__future__", [ast.alias("annotations")], 0))
        return ast.Module([*head, *_imports(body), *body], [])


class _Stub:
    """One tool as a function of three lines."""

    def __init__(self, spec: ToolSpec, types: Types) -> None:
        self._spec = spec
        self._types = types
        properties = spec.input_schema.get("properties")
        self._properties = dict(properties) if isinstance(properties, Mapping) else {}
        required = spec.input_schema.get("required")
        self._required = set(required) if isinstance(required, list) else set()
        self._parameters = parameter_names(list(self._properties))

    def function(self) -> ast.FunctionDef:
        spec = self._spec
        ordered = sorted(self._properties, key=lambda name: name not in self._required)
        arguments = ast.arguments(
            posonlyargs=[],
            args=[ast.arg(self._parameters[name], self._annotation(name)) for name in ordered],
            kwonlyargs=[],
            kw_defaults=[],
            defaults=[self._default(name) for name in ordered if name not in self._required],
        )
        sent = ast.Dict(
            [ast.Constant(name) for name in ordered],
            [ast.Name(self._parameters[name]) for name in ordered],
        )
        verb = "_stream" if spec.streamed else "_call"
        call = ast.Call(ast.Name(verb), [ast.Constant(spec.qualified), sent], [])
        text = docstring(spec)
        body: list[ast.stmt] = [_doc(text, indent=4)] if text else []
        return ast.FunctionDef(
            name=spec.name,
            args=arguments,
            body=[*body, ast.Return(call)],
            decorator_list=[],
            returns=self._returns(),
            lineno=1,
        )

    def _annotation(self, name: str) -> ast.expr:
        schema = self._properties[name]
        hint = f"{self._spec.name}_{name}"
        return _expression(self._types.expression(schema, self._spec.input_schema, hint))

    def _default(self, name: str) -> ast.expr:
        schema = self._properties[name]
        if isinstance(schema, Mapping) and "default" in schema:
            literal = _literal(schema["default"])
            if literal is not None:
                return literal
        return ast.Name("_UNSET")

    def _returns(self) -> ast.expr:
        schema = self._spec.output_schema
        hint = f"{self._spec.name}_row" if self._spec.streamed else f"{self._spec.name}_result"
        result = _expression(self._types.expression(schema, schema, hint))
        if self._spec.streamed:
            return ast.Subscript(ast.Name("Iterator"), result)
        return result


def _names(tool: Tool) -> list[str]:
    return [tool.spec.name]


def _imports(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    used = {
        node.id for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name)
    }
    if "Iterator" in used:
        yield ast.ImportFrom("collections.abc", [ast.alias("Iterator")], 0)
    if typing := [name for name in _TYPING if name in used]:
        yield ast.ImportFrom("typing", [ast.alias(name) for name in typing], 0)
    if bridge := [name for name in _BRIDGE_NAMES if name in used]:
        yield ast.ImportFrom("_bridge", [ast.alias(name) for name in bridge], 1)


def _typed_dict(made: TypedDictType) -> ast.stmt:
    if made.functional:
        return _functional(made)
    body: list[ast.stmt] = [_doc(made.description, indent=4)] if made.description else []
    for key, kind, required, _ in made.fields:
        annotation = _expression(kind)
        if not required:
            annotation = ast.Subscript(ast.Name("NotRequired"), annotation)
        body.append(ast.AnnAssign(ast.Name(key), annotation, None, 1))
    return ast.ClassDef(
        name=made.name,
        bases=[ast.Name("TypedDict")],
        keywords=[],
        body=body,
        decorator_list=[],
    )


def _functional(made: TypedDictType) -> ast.stmt:
    keys: list[ast.expr | None] = []
    values: list[ast.expr] = []
    for key, kind, required, _ in made.fields:
        annotation = _quoted(kind)
        if not required:
            annotation = ast.Subscript(ast.Name("NotRequired"), annotation)
        keys.append(ast.Constant(_clean(key)))
        values.append(annotation)
    call = ast.Call(ast.Name("TypedDict"), [ast.Constant(made.name), ast.Dict(keys, values)], [])
    return ast.Assign([ast.Name(made.name)], call, lineno=1)


def _quoted(kind: Expression) -> ast.expr:
    """Evaluated where it stands, so that a name defined later must be a text."""
    return ast.Constant(ast.unparse(_expression(kind)))


def _expression(kind: Expression) -> ast.expr:
    match kind:
        case Name("None"):
            return ast.Constant(None)
        case Name(name):
            return ast.Name(name)
        case Subscript(base, arguments):
            inner = [_expression(argument) for argument in arguments]
            return ast.Subscript(ast.Name(base), inner[0] if len(inner) == 1 else ast.Tuple(inner))
        case Literals(values):
            constants: list[ast.expr] = [
                ast.Constant(_clean(value) if isinstance(value, str) else value) for value in values
            ]
            return ast.Subscript(
                ast.Name("Literal"),
                constants[0] if len(constants) == 1 else ast.Tuple(constants),
            )
        case Either(options):
            left, *rest = map(_expression, options)
            for right in rest:
                left = ast.BinOp(left, ast.BitOr(), right)
            return left


def _literal(value: Any) -> ast.expr | None:
    """A default as constants and plain containers, or None when it cannot be one."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float):
        return ast.Constant(value)
    if isinstance(value, str):
        return ast.Constant(value) if _clean(value) == value else None
    # A list or dict as a default would be shared by all calls: the tool's own default is taken.
    return None


def _doc(text: str, indent: int = 0) -> ast.Expr:
    """A docstring; its lines are indented as a person would."""
    lines = [line.rstrip() for line in _clean(text).strip().splitlines()]
    filled = "\n".join(f"{' ' * indent}{line}" if line else "" for line in lines).lstrip(" ")
    tail = f"\n{' ' * indent}" if len(lines) > 1 else ""
    return ast.Expr(ast.Constant(filled + tail))


def _clean(text: str) -> str:
    return neutralise(text)


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[0]


def _unparse(tree: ast.Module) -> str:
    source = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    # SAFETY: what was written is what will be read; a fault in unparse must not reach a sandbox.
    compile(source, "<stub>", "exec", dont_inherit=True)
    return source


_BRIDGE = '''"""Stands in for the bridge outside a sandbox, for reading and type checking."""

from collections.abc import Iterator
from typing import Any

_UNSET: Any = None


def _call(tool: str, arguments: dict[str, Any]) -> Any:
    raise RuntimeError(f"{tool} runs only in a script of limbeck's")


def _stream(tool: str, arguments: dict[str, Any]) -> Iterator[Any]:
    raise RuntimeError(f"{tool} runs only in a script of limbeck's")
'''
