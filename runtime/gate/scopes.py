"""Which names a script binds, and where: read from the tree before it is transformed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_STRINGS: dict[str, str] = {
    "FunctionDef": "name",
    "AsyncFunctionDef": "name",
    "ClassDef": "name",
    "arg": "arg",
    "ExceptHandler": "name",
    "MatchAs": "name",
    "MatchStar": "name",
    "MatchMapping": "rest",
    "TypeVar": "name",
    "ParamSpec": "name",
    "TypeVarTuple": "name",
}
"""Nodes that bind a name held as a string, and the field that holds it."""

_OWN_SCOPE = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)


def bound_by(node: ast.AST) -> Iterator[str]:
    """The names that this very node binds, its children apart."""
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            yield node.id
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    else:
        field = _STRINGS.get(type(node).__name__)
        name = getattr(node, field) if field else None
        if name is not None:
            yield name


def bound_anywhere(tree: ast.AST) -> frozenset[str]:
    """Every name that the script binds in any scope."""
    return frozenset(name for node in ast.walk(tree) for name in bound_by(node))


def class_bindings(node: ast.ClassDef) -> frozenset[str]:
    """The names that the class body binds as attributes of the class."""
    names: set[str] = set()
    elsewhere: set[str] = set()
    for inner in _in_scope(node.body):
        if isinstance(inner, ast.Global | ast.Nonlocal):
            elsewhere.update(inner.names)
        names.update(bound_by(inner))
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            names.add(inner.target.id)
    return frozenset(names - elsewhere)


def _in_scope(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _OWN_SCOPE):
            waiting.extend(ast.iter_child_nodes(node))


def module_aliases(tree: ast.AST) -> dict[str, str]:
    """Names that nothing but imports of one module bind, and that module."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                target = alias.name if alias.asname else alias.name.partition(".")[0]
                found.setdefault(alias.asname or target, set()).add(target)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                target = f"{node.module}.{alias.name}"
                found.setdefault(alias.asname or alias.name, set()).add(target)
        else:
            for name in bound_by(node):
                if not isinstance(node, ast.alias):
                    found.setdefault(name, set()).add("")
    return {name: next(iter(targets)) for name, targets in found.items() if len(targets) == 1}
