"""The imports of a script, checked against the module table before anything runs."""

from __future__ import annotations

# ruff: noqa: N802 - visit_NAME is the protocol of ast.NodeVisitor
import ast
import difflib
from typing import Any

from . import modules
from .advice import MODULES
from .libraries import available
from .visitor import Visitor


class ImportPolicy(Visitor):
    """The part of the policy that sees import statements and the attributes of modules."""

    _may_fail = False
    """Inside the body of `try: import x` with a handler for the case that there is no x."""

    def visit_Try(self, node: ast.Try) -> ast.AST:
        outer = self._may_fail
        self._may_fail = outer or any(map(_catches_import_errors, node.handlers))
        self.visit_field(node, "body")
        self._may_fail = outer
        self.visit_fields(node, "handlers", "orelse", "finalbody")
        return node

    def visit_Import(self, node: ast.Import) -> Any:
        for alias in node.names:
            known = self.check_module(alias, alias.name)
            if alias.asname is None and (known or self._may_fail):
                self.check_binding(alias, alias.name.partition(".")[0])
            elif alias.asname is not None:
                alias.asname = self.check_binding(alias, alias.asname)
        return [_one_import(node, alias) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        module = node.module or ""
        if node.level:
            self.error(node, "a script is not in a package", "import by the full name")
        elif self.check_module(node, module):
            self.check_imported_names(node, module)
        for alias in node.names:
            bound = self.check_binding(alias, alias.asname or alias.name)
            if bound != (alias.asname or alias.name):
                alias.asname = bound
        return node

    def check_imported_names(self, node: ast.ImportFrom, module: str) -> None:
        """Check what is imported from a module; a star becomes the names that it stands for."""
        if modules.is_tools(module):
            for alias in node.names:
                if alias.name == "*":
                    self.error(node, "the tools cannot be imported by a star", "name them")
                elif alias.name.startswith("_"):
                    self.error(alias, f"{alias.name!r} is not a tool", "import the public names")
            return
        if module.partition(".")[0] in self.open_modules:
            for alias in node.names:
                if alias.name == "*":
                    self.error(node, f"{module} cannot be imported by a star", "name what you need")
            return
        if node.names[0].name == "*":
            node.names = [
                ast.copy_location(ast.alias(name), node.names[0]) for name in available(module)
            ]
        for alias in node.names:
            self.check_exposed(alias, module, alias.name)

    def check_module(self, node: ast.AST, module: str) -> bool:
        """Refuse a module that is not in the table."""
        if modules.is_tools(module):
            if any(part.startswith("_") for part in module.split(".")):
                self.error(node, f"the module {module!r} is not available", "import from tools")
                return False
            return True
        if module in modules.NAMES or module.partition(".")[0] in self.open_modules:
            return True
        if not self._may_fail:
            self.error(node, f"the module {module!r} is not available", instead_of(module))
        return False

    def check_exposed(self, node: ast.AST, module: str, name: str) -> None:
        """Refuse a name that the module's table does not show."""
        exposed = modules.exposed(module)
        may_fail = self._may_fail and isinstance(node, ast.alias) and not name.startswith("_")
        if name in exposed or may_fail:
            return
        hint = MODULES.get(f"{module}.{name}") or near_names(module, name)
        self.error(node, f"{module}.{name} is not available", hint)

    def check_module_attribute(self, node: ast.Attribute) -> None:
        """Check `json.loads` where nothing but an import binds `json`."""
        module = self.module_of(node.value)
        if module and isinstance(node.ctx, ast.Load):
            self.check_exposed(node, module, node.attr)

    def module_of(self, node: ast.expr) -> str | None:
        """The module of the table that the expression certainly is."""
        if isinstance(node, ast.Name):
            name = self.modules.get(node.id, "")
        elif isinstance(node, ast.Attribute):
            name = f"{self.module_of(node.value)}.{node.attr}"
        else:
            return None
        is_checked = name in modules.NAMES and name.partition(".")[0] not in self.open_modules
        return name if is_checked and name != "__future__" else None


_IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def _catches_import_errors(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in _IMPORT_ERRORS) for kind in kinds
    )


def _one_import(node: ast.Import, alias: ast.alias) -> ast.stmt:
    """One import of its own; `import a.b as c` becomes `from a import b as c`.

    SAFETY: Python takes `b` from the very module object that the script holds as `a`, and where it
    is missing from sys.modules, under the name that the script gave to that object.
    """
    parent, _, last = alias.name.rpartition(".")
    if not parent or alias.asname is None:
        return ast.copy_location(ast.Import([alias]), node)
    taken = ast.copy_location(ast.alias(last, alias.asname), alias)
    return ast.copy_location(ast.ImportFrom(parent, [taken], 0), node)


def instead_of(module: str) -> str:
    """What to do without this module."""
    top = module.partition(".")[0]
    advice = MODULES.get(module) or MODULES.get(top)
    if advice:
        return advice
    near = difflib.get_close_matches(module, modules.ALLOWED_MODULES, n=1, cutoff=0.75)
    listed = "the modules are " + ", ".join(modules.ALLOWED_MODULES)
    return f"did you mean {near[0]}?" if near else listed


def near_names(module: str, name: str) -> str:
    """The names of the module that look like this one, or its first ones."""
    exposed = sorted(modules.exposed(module))
    near = difflib.get_close_matches(name, exposed, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"{module} has {', '.join(exposed[:12])}{' ...' if len(exposed) > 12 else ''}"
