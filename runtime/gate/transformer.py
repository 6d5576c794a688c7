"""The policy: what a script may say, and the few places that are compiled to a guarded call.

A subclass of RestrictedPython's transformer. Its way of failing closed is kept: a node without a
visit method is refused, so that a newer Python adds nothing silently. Its rewriting is not kept:
attributes, items, loops and calls run as plain Python writes them. What is computed at run time
(getattr and its family, str.format, type, vars) goes through guards.py.
"""

from __future__ import annotations

import ast
import sys
from typing import Any

from . import names
from .advice import NAMES
from .imports import ImportPolicy
from .patterns import PatternPolicy
from .scopes import class_bindings
from .templates import is_plain
from .visitor import Scope

_NO_ARGUMENTS = {
    "dir": "name the object: dir(thing)",
    "vars": "keep the values in a dict of your own",
}
_SHOWN_ARGUMENT = {"__getattr__": 1, "__set_name__": 2}
"""Methods that are told an attribute's name: the position of that argument."""


class Policy(ImportPolicy, PatternPolicy):
    """The whole policy over one tree; `faults` holds what it found."""

    # Names and attributes.

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not isinstance(node.ctx, ast.Load):
            node.id = self.check_binding(node, node.id) or node.id
        else:
            self._check_load(node)
            node.id = self.class_level_name(node.id)
        return node

    def _check_load(self, node: ast.Name) -> None:
        name = node.id
        if name in NAMES and name not in self.bound:
            self.error(node, f"{name!r} is not available", NAMES[name])
        elif names.is_reserved(name):
            self.error(node, f"the name {name!r} is reserved", "choose another name")
        elif names.is_dunder(name) and not self._may_load(name):
            self.error(node, f"the name {name!r} belongs to the language", "leave it out")

    def _may_load(self, name: str) -> bool:
        if self.scope.kind == "class" and name in names.SAFE_METHODS:
            return True
        return name in names.MODULE_LOADS or name in names.MODULE_STORES

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        for name in node.names:
            self.check_plain_name(node, name)
        return node

    visit_Nonlocal = visit_Global

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.check_module_attribute(node)
        is_load = isinstance(node.ctx, ast.Load)
        self.visit_field(node, "value")
        if is_load and node.attr == "__class__":
            return self.call(names.TYPE, [node.value], node)
        if is_load and node.attr == "__dict__":
            return self.call(names.VARS, [node.value], node)
        self.check_attribute(node, node.attr, store=not is_load)
        if is_load and node.attr in names.COMPUTED and not _is_plain(node):
            return self.call(names.ATTRIBUTE, [node.value, ast.Constant(node.attr)], node)
        node.attr = self.attribute(node.attr)
        return node

    # Expressions.

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return self.node_contents_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        func = node.func
        if isinstance(func, ast.Name) and func.id not in self.bound:
            self._check_builtin_call(node, func.id)
        if _is_object_setattr(func) and "object" not in self.bound and len(node.args) == 3:
            node.func = ast.copy_location(ast.Name(names.SET, ast.Load()), func)
            self.visit_fields(node, "args", "keywords")
            return node
        return self.node_contents_visit(node)

    def _check_builtin_call(self, node: ast.Call, name: str) -> None:
        if name in _NO_ARGUMENTS and not node.args and not node.keywords:
            self.error(node, f"{name}() without an argument is not available", _NO_ARGUMENTS[name])
        elif name == "type" and len(node.args) + len(node.keywords) > 1:
            self.error(node, "type() makes no classes here", "use a class statement")

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        self.check_plain_name(node, node.arg)
        return self.node_contents_visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.visit_field(node, "args")
        with self.inside(self.function_scope()):
            self.visit_field(node, "body")
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        self.check_plain_name(node, node.arg)
        return self.node_contents_visit(node)

    def _comprehension(self, node: Any) -> Any:
        self.visit_field(node.generators[0], "iter")
        with self.inside(self.function_scope()):
            for index, generator in enumerate(node.generators):
                self.visit_fields(generator, *(("iter",) if index else ()), "target", "ifs")
            self.visit_fields(node, "key", "value", "elt")
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Await(self, node: ast.Await) -> ast.AST:
        return self.node_contents_visit(node)

    # Statements.

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self.node_contents_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        if self.scope.kind == "class" and any(map(_is_class_list, node.targets)):
            return self._class_list(node)
        return self.node_contents_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if self.scope.kind == "class" and _is_class_list(node.target):
            return self._class_list(node)
        return self.node_contents_visit(node)

    def _class_list(self, node: Any) -> Any:
        """`__slots__` or `__match_args__`: names of attributes, so they must be literal."""
        value = node.value
        items = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
        if len(getattr(node, "targets", [node.target] if hasattr(node, "target") else [])) != 1:
            self.error(node, "this name cannot be assigned together with others", "assign it alone")
        for item in items:
            if not isinstance(item, ast.Constant) or type(item.value) is not str:
                self.error(node, "__slots__ and __match_args__ must be literal names", "write them")
                continue
            self.check_attribute(node, item.value, store=True)
            item.value = self.attribute(item.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        target = node.target
        # SAFETY: the load half of `x.format += y` would hand the bare method to y.__radd__.
        if isinstance(target, ast.Attribute) and target.attr in names.COMPUTED:
            attr = target.attr
            hint = f"write x.{attr} = x.{attr} + y"
            self.error(node, f"the attribute {attr!r} cannot be assigned in place", hint)
        return self.node_contents_visit(node)

    def _plain(self, node: Any) -> Any:
        return self.node_contents_visit(node)

    visit_For = visit_AsyncFor = visit_With = visit_AsyncWith = visit_NamedExpr = _plain
    visit_comprehension = visit_TypeAlias = _plain

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.visit_field(node, "type")
        node.name = self.check_binding(node, node.name)
        self.visit_field(node, "body")
        return node

    def visit_TryStar(self, node: Any) -> Any:
        if sys.version_info >= (3, 13, 2):
            return self.node_contents_visit(node)
        # SAFETY: older interpreters crash on a group whose split() returns no tuple.
        hint = "catch ExceptionGroup and loop over .exceptions"
        self.error(node, "except* is not safe on this Python", hint)
        return None

    # Definitions.

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        original = node.name
        node.name = self.check_binding(node, original) or original
        is_method = self.scope.kind == "class"
        self.visit_fields(node, "decorator_list", "type_params", "args", "returns")
        with self.inside(self.function_scope()):
            self.visit_field(node, "body")
        if is_method and original in _SHOWN_ARGUMENT:
            _show_name(node, _SHOWN_ARGUMENT[original])
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        original = node.name
        bindings = class_bindings(node)
        node.name = self.check_binding(node, original) or original
        self._check_class_keywords(node)
        self.visit_fields(node, "decorator_list", "type_params", "bases", "keywords")
        private = frozenset(name for name in bindings if names.is_private(name))
        with self.inside(Scope("class", original, private)):
            self.visit_field(node, "body")
        return node

    def _check_class_keywords(self, node: ast.ClassDef) -> None:
        for keyword in node.keywords:
            if keyword.arg in (None, "metaclass"):
                hint = "inherit from ABC, or use a class decorator"
                self.error(node, "classes cannot choose their metaclass", hint)
        for base in node.bases:
            if self.is_builtin(base, "type"):
                self.error(base, "metaclasses are not available", "use a class decorator")

    def visit_type_parameter(self, node: Any) -> Any:
        """Visit a type parameter: Python 3.12 and later."""
        self.check_plain_name(node, node.name)
        return self.node_contents_visit(node)

    visit_TypeVar = visit_ParamSpec = visit_TypeVarTuple = visit_type_parameter


def _is_plain(node: ast.Attribute) -> bool:
    """Needs no guard: the method of a literal, or the constructor of the script's own base."""
    value = node.value
    if node.attr == "__init__":
        return isinstance(value, ast.Call) and not value.args and _is_name(value.func, "super")
    return (
        node.attr == "format"
        and isinstance(value, ast.Constant)
        and isinstance(value.value, str)
        and is_plain(value.value)
    )


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_object_setattr(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "__setattr__"
        and isinstance(node.value, ast.Name)
        and node.value.id == "object"
    )


def _is_class_list(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("__slots__", "__match_args__")


def _show_name(node: ast.FunctionDef | ast.AsyncFunctionDef, position: int) -> None:
    """Let the method see the name that the script wrote, not the compiled one."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    if position >= len(arguments):
        return
    name = arguments[position].arg
    first = node.body[0]
    call = ast.Call(ast.Name(names.SHOWN, ast.Load()), [ast.Name(name, ast.Load())], [])
    new = ast.Assign([ast.Name(name, ast.Store())], call)
    node.body.insert(0, ast.fix_missing_locations(ast.copy_location(new, first)))
