"""What every part of the policy shares: the walk, the faults, the scopes, the names."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from RestrictedPython.transformer import RestrictingNodeTransformer

from . import names
from .advice import ATTRIBUTES
from .faults import MAX_LINE, Fault
from .scopes import bound_anywhere, module_aliases

T = TypeVar("T", bound=ast.AST)

_LEAVES = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
"""Nodes without contents and without a danger, whatever their class."""


@dataclass(frozen=True, slots=True)
class Scope:
    kind: str
    """"module", "class" or "function"."""
    class_name: str = ""
    """Of the innermost class around, through functions; it mangles `__x`."""
    private: frozenset[str] = frozenset()
    """Private names that a class body binds."""


class Visitor(RestrictingNodeTransformer):
    """Collects the faults of one tree, and rewrites it in place."""

    def __init__(
        self, tree: ast.Module, lines: Sequence[str], open_modules: Collection[str] = ()
    ) -> None:
        super().__init__()
        self.open_modules = frozenset(open_modules)
        self.faults: list[Fault] = []
        self._lines = lines
        self.bound = bound_anywhere(tree)
        self.modules = module_aliases(tree)
        self.scope = Scope("module")

    # What RestrictedPython calls.

    def node_contents_visit(self, node: T) -> T:
        """Visit the contents; contexts and operators are leaves without a danger."""
        for field in node._fields:
            self.visit_field(node, field)
        return node

    def error(self, node: ast.AST, info: str, hint: str = "") -> None:
        """Record a fault at the node."""
        line = getattr(node, "lineno", 0)
        source = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        start = source.encode("utf-8", "replace")[: getattr(node, "col_offset", 0)]
        column = len(start.decode("utf-8", "replace")) + 1 if line else 0
        self.faults.append(
            Fault(
                line=line,
                column=column,
                message=info,
                hint=hint,
                source_line=source.rstrip()[:MAX_LINE],
            )
        )

    def not_allowed(self, node: ast.AST) -> None:
        """Refuse a whole kind of node."""
        self.error(node, f"{type(node).__name__} is not allowed", "write it in an older form")

    def visit_fields(self, node: ast.AST, *fields: str) -> None:
        for field in fields:
            if hasattr(node, field):
                self.visit_field(node, field)

    def visit_field(self, node: ast.AST, field: str) -> None:
        value = getattr(node, field, None)
        if isinstance(value, list):
            value[:] = self._visit_all(value)
        elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
            setattr(node, field, self.visit(value))

    def _visit_all(self, items: list[Any]) -> Iterator[Any]:
        for item in items:
            if not isinstance(item, ast.AST) or isinstance(item, _LEAVES):
                yield item
                continue
            result = self.visit(item)
            if isinstance(result, list):
                yield from result
            elif result is not None:
                yield result

    @contextmanager
    def inside(self, scope: Scope) -> Iterator[None]:
        outer, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = outer

    def function_scope(self) -> Scope:
        return Scope("function", self.scope.class_name)

    # Names.

    def check_binding(self, node: ast.AST, name: str | None) -> str | None:
        """Check a name that is bound; return the name under which it is compiled."""
        if name is None or name[0] != "_":
            return name
        if names.is_reserved(name):
            self.error(node, f"the name {name!r} is reserved", "choose another name")
        elif names.is_dunder(name) and not self._may_bind(name):
            hint = ATTRIBUTES.get(name, "choose a name without the double underscores")
            self.error(node, f"the name {name!r} belongs to the language", hint)
        return self.class_level_name(name)

    def _may_bind(self, name: str) -> bool:
        if self.scope.kind == "class":
            return name in names.SAFE_METHODS or name == "__doc__"
        return self.scope.kind == "module" and name in names.MODULE_STORES

    def class_level_name(self, name: str) -> str:
        if name in self.scope.private:
            return names.private(names.mangled(name, self.scope.class_name))
        return name

    def check_plain_name(self, node: ast.AST, name: str | None) -> None:
        """Check a parameter, a keyword, a global: never renamed, never a dunder."""
        if name is None or name[0] != "_":
            return
        if names.is_reserved(name):
            self.error(node, f"the name {name!r} is reserved", "choose another name")
        elif names.is_dunder(name):
            hint = "choose a name without the double underscores"
            self.error(node, f"the name {name!r} belongs to the language", hint)

    def is_builtin(self, node: ast.AST, name: str) -> bool:
        """Is it the builtin of that name, which the script never binds?"""
        return isinstance(node, ast.Name) and node.id == name and name not in self.bound

    def check_attribute(self, node: ast.AST, name: str, *, store: bool = False) -> None:
        """Refuse an attribute name that leads into the interpreter."""
        problem = names.attribute_problem(name, store=store)
        if problem:
            hint = ATTRIBUTES.get(name, "work with the value's public attributes")
            self.error(node, f"the attribute {name!r} is not available, {problem}", hint)

    def attribute(self, name: str) -> str:
        """The attribute name as it is compiled."""
        if not names.is_private(name) or names.is_reserved(name):
            return name
        return names.private(names.mangled(name, self.scope.class_name))

    def call(self, guard: str, arguments: list[ast.expr], place: ast.expr) -> ast.Call:
        """A call of a guard in the place of an expression."""
        func = ast.Name(guard, ast.Load())
        new = ast.copy_location(ast.Call(func, arguments, []), place)
        ast.copy_location(func, place)
        for argument in arguments:
            if not hasattr(argument, "lineno"):
                ast.copy_location(argument, place)
        return new
