"""What the gate must never accept, found by a reader of its own: no code is shared with the gate.

Written from the table of refusals: names, attributes, imports, builtins, definitions, classes.
Strict where the gate is, lenient where the gate decides at run time.
"""

from __future__ import annotations

import ast
import sys


def words(text: str) -> set[str]:
    return set(text.split())


# The methods of the data model that classes may define and scripts may call, by their topics.
CALLABLE = words("""
    __init__ __new__ __post_init__ __call__ __repr__ __str__ __bytes__ __format__ __hash__
    __bool__ __len__ __length_hint__ __contains__ __iter__ __next__ __reversed__
    __getitem__ __setitem__ __delitem__ __missing__ __getattr__ __dir__ __get__ __set__
    __delete__ __set_name__ __init_subclass__ __class_getitem__ __enter__ __exit__
    __await__ __aiter__ __anext__ __aenter__ __aexit__ __lt__ __le__ __eq__ __ne__
    __gt__ __ge__ __neg__ __pos__ __abs__ __invert__ __complex__ __int__ __float__
    __index__ __round__ __trunc__ __floor__ __ceil__ __fspath__ __copy__ __deepcopy__
""")
OPERATIONS = words("add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor")
CALLABLE |= {f"__{kind}{name}__" for name in OPERATIONS for kind in ("", "r", "i")}
CALLABLE -= {"__idivmod__"}

READ = CALLABLE | words("""
    __name__ __qualname__ __doc__ __module__ __members__ __cause__ __context__
    __suppress_context__ __notes__ __match_args__ __version__ __class__ __dict__
""")
WRITE = words("__name__ __qualname__ __doc__ __cause__ __context__ __suppress_context__")
LOADED = words("__name__ __doc__ __debug__ __all__ __version__ __author__ __class__")
INSIDE = words("""
    tb_frame tb_next f_back f_builtins f_code f_globals f_locals f_trace co_code co_consts
    gi_frame gi_code gi_yieldfrom cr_await cr_frame cr_code cr_origin ag_await ag_frame ag_code
    mro get_stack get_coro print_stack get_loop subprocess_exec subprocess_shell
    enable_load_extension load_extension setconfig
""")
POWERFUL = words("eval exec compile globals locals breakpoint input help")
MODULES = words("""
    subprocess socket ctypes importlib builtins gc inspect pickle marshal signal code runpy
    multiprocessing threading weakref posix _thread limbeck grpc RestrictedPython json.decoder
    concurrent.futures.thread os.path.os collections.sys
""")
HIDDEN = {
    "os": {"system", "popen", "fork", "kill", "environb", "open", "fdopen", "symlink", "chdir"},
    "sys": {"modules", "settrace", "setprofile", "_getframe", "exc_info", "path", "stdin"},
    "json": {"codecs", "decoder", "scanner"},
    "typing": {"get_type_hints", "ForwardRef", "sys"},
    "enum": {"EnumType", "EnumMeta", "global_enum"},
    "functools": {"singledispatch"},
    "io": {"FileIO", "open", "TextIOWrapper"},
}


def is_dunder(name: str) -> bool:
    return name[:2] == "__" == name[-2:] and len(name) > 4


def findings(source: str) -> list[str]:
    """What is wrong with a program, in words; nothing for one that may run."""
    return list(_Reader(ast.parse(source)).found)


class _Reader(ast.NodeVisitor):
    def __init__(self, tree: ast.Module) -> None:
        self.found: list[str] = []
        self._classes: list[bool] = [False]
        self._bound = _bound(tree)
        self._tolerant = 0
        self.visit(tree)

    def _name(self, name: str | None, what: str, *, allowed: frozenset[str] | set[str]) -> None:
        if name and (name.startswith("_lb_") or (is_dunder(name) and name not in allowed)):
            self.found.append(f"{what} {name}")

    def _definable(self) -> set[str]:
        in_class = CALLABLE | {"__slots__", "__match_args__", "__doc__"}
        at_top = {"__all__", "__version__", "__author__", "__doc__"}
        return in_class if self._classes[-1] else at_top if len(self._classes) == 1 else set()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._name(node.id, "load", allowed=LOADED | (CALLABLE if self._classes[-1] else set()))
            if node.id in POWERFUL and node.id not in self._bound:
                self.found.append(f"builtin {node.id}")
        else:
            self._name(node.id, "binding", allowed=self._definable())

    def visit_Attribute(self, node: ast.Attribute) -> None:
        loads = isinstance(node.ctx, ast.Load)
        self._name(node.attr, "attribute", allowed=READ if loads else WRITE)
        if node.attr in INSIDE:
            self.found.append(f"attribute {node.attr}")
        self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        self._name(node.arg, "parameter", allowed=set())
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        self._name(node.arg, "keyword", allowed=set())
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        for name in node.names:
            self._name(name, "global", allowed=set())

    visit_Nonlocal = visit_Global

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._name(node.name, "binding", allowed=self._definable())
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar | ast.MatchAs) -> None:
        self._name(node.name, "binding", allowed=self._definable())
        self.generic_visit(node)

    visit_MatchAs = visit_MatchStar

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self._name(node.rest, "binding", allowed=self._definable())
        self.generic_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            self._name(name, "attribute", allowed=READ - {"__class__", "__dict__"})
            if name in INSIDE | {"format", "obj", "raw", "__init__", "__getattr__"}:
                self.found.append(f"attribute {name}")
        self.generic_visit(node)

    def _import(self, module: str, names: list[ast.alias]) -> None:
        if self._tolerant:
            return
        if module in MODULES or module.partition(".")[0] in MODULES - {"concurrent"}:
            self.found.append(f"module {module}")
        for alias in names:
            if alias.name in HIDDEN.get(module, ()):
                self.found.append(f"module name {module}.{alias.name}")

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._import(alias.name, [])
            bound = alias.asname or alias.name.partition(".")[0]
            self._name(bound, "binding", allowed=self._definable())

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self._import(node.module or "", node.names)
        if node.level:
            self.found.append("relative import")
        for alias in node.names:
            self._name(alias.asname or alias.name, "binding", allowed=self._definable())
            if alias.name == "*" and (node.module or "").partition(".")[0] == "tools":
                self.found.append("star of tools")

    def visit_Try(self, node: ast.Try) -> None:
        tolerant = any(_catches_imports(handler) for handler in node.handlers)
        self._tolerant += tolerant
        for inner in node.body:
            self.visit(inner)
        self._tolerant -= tolerant
        for inner in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(inner)

    def visit_TryStar(self, node: ast.Try) -> None:
        if sys.version_info < (3, 13, 2):
            self.found.append("except*")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        func = node.func
        if isinstance(func, ast.Name) and func.id not in self._bound:
            count = len(node.args) + len(node.keywords)
            if (func.id in ("vars", "dir") and not count) or (func.id == "type" and count > 1):
                self.found.append(f"call {func.id}")
        if _is_object_setattr(func) and "object" not in self._bound and len(node.args) == 3:
            for inner in (*node.args, *node.keywords):
                self.visit(inner)
            return
        self.generic_visit(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        if not isinstance(node, ast.Lambda):
            self._name(node.name, "binding", allowed=self._definable())
            for outer in (*node.decorator_list, *filter(None, [node.returns])):
                self.visit(outer)
        self.visit(node.args)
        self._classes.append(False)
        for inner in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(inner)
        self._classes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def _comprehension(self, node: ast.ListComp) -> None:
        self.visit(node.generators[0].iter)
        self._classes.append(False)
        for index, generator in enumerate(node.generators):
            inner = (generator.target, *generator.ifs, *((generator.iter,) if index else ()))
            for part in inner:
                self.visit(part)
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                self.visit(getattr(node, field))
        self._classes.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._name(node.name, "binding", allowed=self._definable())
        if any(keyword.arg in (None, "metaclass") for keyword in node.keywords):
            self.found.append("metaclass")
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id == "type" and "type" not in self._bound:
                self.found.append("base type")
        for outer in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(outer)
        self._classes.append(True)
        for inner in node.body:
            self.visit(inner)
        self._classes.pop()


def _is_object_setattr(node: ast.expr) -> bool:
    return ast.unparse(node) == "object.__setattr__"


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    text = ast.unparse(handler.type) if handler.type is not None else "Exception"
    return bool(
        set(text.replace("(", " ").replace(")", " ").replace(",", " ").split())
        & {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
    )


def _bound(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        for field in ("name", "asname", "arg", "rest"):
            value = getattr(node, field, None)
            if isinstance(value, str) and not isinstance(node, ast.keyword | ast.alias):
                names.add(value)
        if isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
    return names
