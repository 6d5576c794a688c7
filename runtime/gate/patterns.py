"""The patterns of match statements: they load attributes without an attribute in the source."""

from __future__ import annotations

# ruff: noqa: N802, N815, SIM905 - visit_NAME is the protocol of ast.NodeVisitor
import ast
from typing import Any

from . import names
from .visitor import Visitor

_BUILTIN_CLASSES = frozenset(
    "bool bytearray bytes dict float frozenset int list set str tuple complex object".split()
)
"""Classes whose positional pattern is the value itself."""


class PatternPolicy(Visitor):
    """The part of the policy that sees match statements."""

    _cases = 0

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        """Evaluate the classes of positional patterns before the match, through a check.

        SAFETY: `case C(x)` loads the attributes that C.__match_args__ names, whatever they are.
        Evaluated once, the class cannot be another one when the pattern is tried.
        """
        checks: list[ast.stmt] = []
        for inner in _classes(node):
            if self.is_plain_class(inner.cls):
                continue
            name = f"{names.CAPTURED}{self._cases}"
            self._cases += 1
            checked = self.call(names.MATCHED, [self.visit(inner.cls)], inner.cls)
            target = ast.copy_location(ast.Name(name, ast.Store()), inner.cls)
            checks.append(ast.copy_location(ast.Assign([target], checked), node))
            inner.cls = ast.copy_location(_Checked(name, ast.Load()), inner.cls)
        return [*checks, self.node_contents_visit(node)]

    def is_plain_class(self, node: ast.expr) -> bool:
        """Is it a builtin class that the script never binds?"""
        return any(self.is_builtin(node, name) for name in _BUILTIN_CLASSES)

    def visit__Checked(self, node: _Checked) -> ast.AST:
        """A class that visit_Match has checked."""
        return ast.copy_location(ast.Name(node.id, ast.Load()), node)

    def visit_match_case(self, node: Any) -> Any:
        return self.node_contents_visit(node)

    visit_MatchValue = visit_MatchSingleton = visit_MatchSequence = visit_match_case
    visit_MatchOr = visit_match_case

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:
        for index, name in enumerate(node.kwd_attrs):
            self.check_attribute(node, name)
            if name in names.COMPUTED:
                hint = "match the class, then look at the attribute"
                self.error(node, f"the attribute {name!r} cannot stand in a pattern", hint)
            node.kwd_attrs[index] = self.attribute(name)
        return self.node_contents_visit(node)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> ast.AST:
        node.rest = self.check_binding(node, node.rest)
        return self.node_contents_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar | ast.MatchAs) -> ast.AST:
        node.name = self.check_binding(node, node.name)
        return self.node_contents_visit(node)

    visit_MatchAs = visit_MatchStar


class _Checked(ast.Name):
    """A temporary of visit_Match; no parser makes it."""


def _classes(node: ast.Match) -> list[ast.MatchClass]:
    return [
        inner
        for case in node.cases
        for inner in ast.walk(case.pattern)
        if isinstance(inner, ast.MatchClass) and inner.patterns
    ]
