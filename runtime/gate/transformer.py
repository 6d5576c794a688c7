"""The policy over the syntax tree: every node is allowed, changed or refused here.

A subclass of RestrictedPython's transformer, whose unknown nodes are refused: a newer Python adds
nothing silently. Its rewriting visits are all overridden: plain attribute, item and iteration
operations are compiled as they stand and cost nothing.
"""

from __future__ import annotations

import ast
import difflib
import string
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from RestrictedPython.transformer import RestrictingNodeTransformer

from .faults import MAX_FAULTS, Fault
from .modules import ALLOWED_MODULES, SUBSTITUTES, is_package, public_names
from .names import (
    CLASS_DUNDERS,
    DEFINABLE_DUNDERS,
    MODULE_DUNDERS,
    PREFIX,
    compiled_attribute,
    is_dunder,
    refused_attribute,
    refused_name,
)

_REFUSED_BUILTINS = {
    "eval": "write the code itself; for data use json.loads",
    "exec": "write the code itself",
    "compile": "write the code itself",
    "globals": "keep your own dict",
    "locals": "keep your own dict",
    "input": "nobody is there to answer; put the value in the script",
    "breakpoint": "print what you want to see",
    "exit": "use sys.exit()",
    "quit": "use sys.exit()",
    "__import__": "use an import statement",
    "__file__": "the script has no file",
    "__builtins__": "the built-in functions are there without it",
}

_LOADABLE_DUNDERS = frozenset({"__name__", "__class__", "__debug__", "__doc__"})

_EXCEPT_STAR_SAFE = sys.version_info >= (3, 13, 2)
"""Before it a lying exception group confuses types inside the interpreter."""

_OVERRIDDEN_HERE = "the class keyword metaclass is not available"


class _Scope:
    """A function's or class's body, or the script's own."""

    def __init__(self, kind: str, name: str = "", private: frozenset[str] = frozenset()) -> None:
        self.kind = kind
        self.name = name
        self.private = private
        """Private names that a class body binds: attributes, in truth."""


class Policy(RestrictingNodeTransformer):
    """Vets a tree and changes it into what is compiled. Faults are collected, never raised."""

    def __init__(self, source: str, bound: frozenset[str]) -> None:
        """`bound`: every name that the script binds somewhere."""
        super().__init__()
        self.faults: list[Fault] = []
        self._lines = source.splitlines()
        self._bound = bound
        self._scopes = [_Scope("module")]

    # -- faults -------------------------------------------------------------------------------

    def error(self, node: ast.AST, info: str) -> None:
        """Called by RestrictedPython for what it does not know."""
        kind = type(node).__name__
        self.refuse(node, f"{kind} is not available", "write it in another way")

    def warn(self, node: ast.AST, info: str) -> None:
        """RestrictedPython's warnings say nothing that its errors do not."""

    def refuse(self, node: Any, message: str, hint: str = "") -> None:
        """Note a fault at a node."""
        line = getattr(node, "lineno", 0)
        source = self._lines[line - 1].strip()[:200] if 0 < line <= len(self._lines) else ""
        column = getattr(node, "col_offset", -1) + 1
        fault = Fault(line=line, column=column, message=message, hint=hint, source_line=source)
        if len(self.faults) < MAX_FAULTS and fault not in self.faults:
            self.faults.append(fault)

    # -- names --------------------------------------------------------------------------------

    @property
    def _scope(self) -> _Scope:
        return self._scopes[-1]

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load):
            self._check_load(node)
            if self._scope.kind == "class" and node.id in self._scope.private:
                node.id = compiled_attribute(node.id, self._scope.name)
        else:
            node.id = self._bind(node, node.id)
        return node

    def _check_load(self, node: ast.Name) -> None:
        name = node.id
        problem = refused_name(name)
        if problem is not None:
            self.refuse(node, problem, "choose another name")
        elif name in _REFUSED_BUILTINS and name not in self._bound:
            self.refuse(node, f"{name} is not available", _REFUSED_BUILTINS[name])
        elif is_dunder(name) and name not in _LOADABLE_DUNDERS | MODULE_DUNDERS | CLASS_DUNDERS:
            self.refuse(node, f"the name {name} is not available", "choose another name")

    def _bind(self, node: ast.AST, name: str) -> str:
        """Check a name that is bound in any form; the name under which it is compiled."""
        problem = refused_name(name)
        if problem is not None:
            self.refuse(node, problem, "choose another name")
        elif is_dunder(name):
            allowed = {"class": CLASS_DUNDERS, "module": MODULE_DUNDERS}.get(self._scope.kind, ())
            if name not in allowed and not (
                self._scope.kind == "class" and name in DEFINABLE_DUNDERS
            ):
                self.refuse(node, f"the name {name} cannot be bound", "choose another name")
        elif self._scope.kind == "class" and name in self._scope.private:
            return compiled_attribute(name, self._scope.name)
        return name

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        node.names = [self._bind(node, name) for name in node.names]
        return node

    visit_Nonlocal = visit_Global

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._bind_plain(node, node.arg)
        return self.node_contents_visit(node)

    def _bind_plain(self, node: ast.AST, name: str) -> str:
        """A name that is never a class attribute: a parameter, a caught exception."""
        if refused_name(name) is not None or is_dunder(name):
            self.refuse(node, f"the name {name} cannot be bound", "choose another name")
        return name

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        if node.arg is not None and (refused_name(node.arg) or is_dunder(node.arg)):
            self.refuse(node, f"the keyword {node.arg} is not available", "choose another name")
        return self.node_contents_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        if node.name is not None:
            node.name = self._bind(node, node.name)
        return self.node_contents_visit(node)

    # -- attributes ---------------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.node_contents_visit(node)
        if isinstance(node.ctx, ast.Load):
            guarded = self._guarded_attribute(node)
            if guarded is not None:
                return guarded
        problem = refused_attribute(node.attr, defining=False)
        if problem is None and is_dunder(node.attr) and not isinstance(node.ctx, ast.Load):
            problem = f"the attribute {node.attr} cannot be set"
        if problem is not None:
            self.refuse(node, problem, "use what the object offers by its public names")
        node.attr = compiled_attribute(node.attr, self._class_name())
        return node

    def _guarded_attribute(self, node: ast.Attribute) -> ast.AST | None:
        """The few attributes that are computed at run time: a call of a guard instead."""
        if node.attr in ("format", "format_map"):
            if _is_plain_template(node.value):
                return None
            arguments = [node.value, ast.Constant(node.attr)]
            return self._guard("format", node, arguments)
        guard = {"__class__": "type", "__dict__": "vars"}.get(node.attr)
        return None if guard is None else self._guard(guard, node, [node.value])

    def _guard(self, name: str, node: ast.AST, arguments: list[ast.expr]) -> ast.AST:
        call = ast.Call(ast.Name(f"{PREFIX}{name}", ast.Load()), arguments, [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def _class_name(self) -> str | None:
        return next((one.name for one in reversed(self._scopes) if one.kind == "class"), None)

    # -- definitions --------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        name = self._defined(node)
        self._visit_outside(node)
        self._scopes.append(_Scope("function"))
        self._visit_arguments(node.args)
        node.body = self._visit_all(node.body)
        self._scopes.pop()
        node.name = name
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def _defined(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
        name = node.name
        if is_dunder(name):
            if self._scope.kind != "class" or name not in DEFINABLE_DUNDERS:
                self.refuse(node, f"{name} cannot be defined", "choose another name")
            return name
        return self._bind(node, name)

    def _visit_outside(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """What is evaluated where the function is defined, not where it runs."""
        node.decorator_list = self._visit_all(node.decorator_list)
        if node.returns is not None:
            node.returns = self.visit(node.returns)
        arguments = node.args
        arguments.defaults = self._visit_all(arguments.defaults)
        arguments.kw_defaults = [
            None if default is None else self.visit(default) for default in arguments.kw_defaults
        ]
        for parameter in _parameters(arguments):
            if parameter.annotation is not None:
                parameter.annotation = self.visit(parameter.annotation)
        for parameter in getattr(node, "type_params", ()):
            self.visit(parameter)

    def _visit_arguments(self, arguments: ast.arguments) -> None:
        for parameter in _parameters(arguments):
            parameter.arg = self._bind_plain(parameter, parameter.arg)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        arguments = node.args
        arguments.defaults = self._visit_all(arguments.defaults)
        arguments.kw_defaults = [
            None if default is None else self.visit(default) for default in arguments.kw_defaults
        ]
        self._scopes.append(_Scope("function"))
        self._visit_arguments(arguments)
        node.body = self.visit(node.body)
        self._scopes.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        name = self._defined(node)
        node.decorator_list = self._visit_all(node.decorator_list)
        node.bases = self._visit_all(node.bases)
        for keyword in node.keywords:
            if keyword.arg == "metaclass":
                self.refuse(node, _OVERRIDDEN_HERE, "inherit from ABC, Enum or a base class")
            elif keyword.arg is None:
                self.refuse(node, "class keywords from a dict are not available", "name each")
        node.keywords = self._visit_all(node.keywords)
        for parameter in getattr(node, "type_params", ()):
            self.visit(parameter)
        self._scopes.append(_Scope("class", node.name, _private_names(node.body)))
        for statement in node.body:
            self._check_class_dunders(statement)
        node.body = self._visit_all(node.body)
        self._scopes.pop()
        node.name = name
        return node

    def _check_class_dunders(self, statement: ast.stmt) -> None:
        """`__slots__` and `__match_args__` name attributes: texts alone, by the same table."""
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            return
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        if not names & {"__slots__", "__match_args__"}:
            return
        items = getattr(statement.value, "elts", [statement.value])
        for item in items:
            text = getattr(item, "value", None)
            if not isinstance(item, ast.Constant) or not isinstance(text, str):
                self.refuse(item, "names of attributes must be written out", "use a tuple of texts")
            elif refused_attribute(text) is not None or is_dunder(text):
                self.refuse(item, f"the attribute {text} is not available", "choose another name")
            else:
                item.value = compiled_attribute(text, self._scope.name)

    def _visit_all(self, nodes: list[Any]) -> list[Any]:
        visited: list[Any] = []
        for node in nodes:
            made = self.visit(node)
            visited.extend(made if isinstance(made, list) else [made])
        return visited

    # -- imports ------------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> ast.AST:
        for alias in node.names:
            self._check_module(node, alias.name)
            bound = alias.asname or alias.name.partition(".")[0]
            self._bind_plain(node, bound)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.level:
            self.refuse(node, "relative imports are not available", "a script has no package")
            return node
        module = node.module or ""
        if not self._check_module(node, module):
            return node
        if any(alias.name == "*" for alias in node.names):
            return self._star(node, module)
        for alias in node.names:
            self._check_imported(node, module, alias.name)
            self._bind_plain(node, alias.asname or alias.name)
        return node

    def _star(self, node: ast.ImportFrom, module: str) -> ast.AST:
        names = public_names(module)
        if names is None:
            self.refuse(node, "import * is not available here", "import each name")
        else:
            node.names = [ast.alias(name) for name in names]
        return node

    def _check_module(self, node: ast.AST, name: str) -> bool:
        root = name.partition(".")[0]
        if name in ALLOWED_MODULES or name == "__future__" or is_package(name):
            return True
        if root == "tools":
            private = [part for part in name.split(".") if part.startswith("_")]
            if private:
                self.refuse(node, f"the module {name} is not available", "import a toolset")
            return not private
        self.refuse(node, f"the module {name} is not available", _substitute(name))
        return False

    def _check_imported(self, node: ast.AST, module: str, name: str) -> None:
        if module.partition(".")[0] == "tools":
            if name.startswith("_"):
                self.refuse(node, f"{module}.{name} is not available", "import a toolset")
            return
        names = public_names(module) or ()
        if name in names or f"{module}.{name}" in ALLOWED_MODULES:
            return
        near = difflib.get_close_matches(name, names, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "it is not in the table of names"
        self.refuse(node, f"{module}.{name} is not available", hint)

    # -- statements and patterns --------------------------------------------------------------

    def visit_TryStar(self, node: ast.AST) -> ast.AST:
        if not _EXCEPT_STAR_SAFE:
            hint = "catch ExceptionGroup and loop over its .exceptions"
            self.refuse(node, "except* is not available on this Python", hint)
        return self.node_contents_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs) -> ast.AST:
        if node.name is not None:
            node.name = self._bind(node, node.name)
        return self.node_contents_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> ast.AST:
        if node.name is not None:
            node.name = self._bind(node, node.name)
        return node

    def visit_MatchMapping(self, node: ast.MatchMapping) -> ast.AST:
        if node.rest is not None:
            node.rest = self._bind(node, node.rest)
        return self.node_contents_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:
        for name in node.kwd_attrs:
            problem = refused_attribute(name)
            if problem is not None or is_dunder(name):
                self.refuse(node, f"the attribute {name} is not available", "match another")
        node.kwd_attrs = [compiled_attribute(name, self._class_name()) for name in node.kwd_attrs]
        return self.node_contents_visit(node)

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self.node_contents_visit(node)

    def _as_it_stands(self, node: ast.AST) -> ast.AST:
        return self.node_contents_visit(node)


_AS_IT_STANDS = (
    "Subscript", "Slice", "ListComp", "SetComp", "GeneratorExp", "DictComp", "comprehension",
    "Assign", "AugAssign", "AnnAssign", "Call", "For", "AsyncFor", "While", "With", "AsyncWith",
    "withitem", "Try", "Await", "NamedExpr", "Starred", "Match", "match_case", "MatchValue",
    "MatchSingleton", "MatchSequence", "MatchOr", "Yield", "YieldFrom", "Delete", "Raise",
    "Assert", "Expr", "Return", "FormattedValue", "JoinedStr", "If", "IfExp",
)  # fmt: skip
"""Nodes whose contents are visited and which are compiled as they are."""

for _kind in _AS_IT_STANDS:
    setattr(Policy, f"visit_{_kind}", Policy._as_it_stands)


def bound_names(tree: ast.AST) -> frozenset[str]:
    """Every plain name that a script binds somewhere, in any form."""
    return frozenset(_bindings(tree))


def _bindings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.alias(name=name, asname=asname):
                yield asname or name.partition(".")[0]
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name


def _private_names(body: Iterable[ast.stmt]) -> frozenset[str]:
    """Names with an underscore that a class body binds itself, functions within left aside."""
    found: set[str] = set()
    ready: list[ast.AST] = list(body)
    while ready:
        node = ready.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        ready.extend(ast.iter_child_nodes(node))
    return frozenset(name for name in found if compiled_attribute(name) != name)


def _parameters(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from arguments.posonlyargs
    yield from arguments.args
    yield from arguments.kwonlyargs
    for one in (arguments.vararg, arguments.kwarg):
        if one is not None:
            yield one


def _is_plain_template(node: ast.expr) -> bool:
    """A literal whose fields name no attribute and no item."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    try:
        fields = list(string.Formatter().parse(node.value))
    except ValueError:
        return True  # It fails in the same way at run time.
    return all(
        not any(mark in f"{name}{spec}" for mark in ".[{") for _, name, spec, _ in fields if name
    )


def _substitute(name: str) -> str:
    known = SUBSTITUTES.get(name) or SUBSTITUTES.get(name.partition(".")[0])
    if known is not None:
        return known
    near = difflib.get_close_matches(name, ALLOWED_MODULES, n=2, cutoff=0.75)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"the modules are: tools, {', '.join(ALLOWED_MODULES)}"
