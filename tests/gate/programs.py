"""Programs of every node of the language, made from a string of bytes: the fuzzer's material.

Each byte is one choice, and the end of the bytes chooses the simplest form, so that a failing
program shrinks with its bytes. Names are ordinary for the most part, so that many programs pass.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any


def words(text: str) -> list[str]:
    return text.split()


ORDINARY = words("a b x self value _x __y _ print items format obj")
HOSTILE = words("""
    __globals__ __class__ __dict__ __init__ __subclasses__ __getattr__ __del__ __setattr__
    __builtins__ __import__ __name__ __doc__ __slots__ __match_args__ __getattribute__ __reduce__
    __len__ __file__ gi_frame f_back tb_frame mro _lb_x _lb__x _lb_show raw parser eval exec
    globals vars dir type compile getattr setattr object open super get_loop load_extension
    _missing_ _put ImportError metaclass
""")
MODULES = words("""
    json math os sys typing enum io collections.abc os.path xml.etree.ElementTree functools
    subprocess socket builtins json.decoder os.path.os tools tools.orders tools._bridge ctypes
    limbeck.runtime importlib pickle __main__ concurrent.futures dataclasses sqlite3
""")
IMPORTED = words("loads path system modules get_type_hints Enum EnumType decoder FileIO * _x a")


def program(data: bytes) -> str:
    """The source text that the bytes choose."""
    module = ast.Module(_Maker(data).body(0, least=1, most=4), [])
    return ast.unparse(ast.fix_missing_locations(module))


class _Maker:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def below(self, bound: int) -> int:
        if self._at >= len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1] % bound

    def choose(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]

    def name(self) -> str:
        return self.choose(HOSTILE) if self.below(24) == 23 else self.choose(ORDINARY)

    def many(self, make: Callable[[], Any], most: int = 3, least: int = 0) -> list[Any]:
        return [make() for _ in range(least + self.below(most + 1 - least))]

    def maybe(self, make: Callable[[], Any]) -> Any:
        return make() if self.below(3) == 2 else None

    # Expressions.

    def expr(self, depth: int) -> ast.expr:
        if depth > 4 or self.below(4) == 0:
            return self.leaf()
        made: ast.expr = self.choose(_EXPRESSIONS)(self, depth + 1)
        return made

    def leaf(self) -> ast.expr:
        if self.below(2):
            return ast.Constant(
                self.choose([1, "text", None, 2.5, b"b", ..., True, "{0.__class__}"])
            )
        return ast.Name(self.name(), ast.Load())

    def exprs(self, depth: int) -> list[ast.expr]:
        return self.many(lambda: self.expr(depth))

    def target(self, depth: int) -> ast.expr:
        kind = self.below(6)
        if kind == 1:
            return ast.Attribute(self.expr(depth + 1), self.name(), ast.Store())
        if kind == 2:
            return ast.Subscript(self.expr(depth + 1), self.expr(depth + 1), ast.Store())
        if kind == 3 and depth < 4:
            return ast.Tuple(self.many(lambda: self.target(depth + 1), least=1), ast.Store())
        return ast.Name(self.name(), ast.Store())

    def keyword(self, depth: int) -> ast.keyword:
        return ast.keyword(None if self.below(5) == 4 else self.name(), self.expr(depth))

    def arguments(self, depth: int) -> ast.arguments:
        def arg() -> ast.arg:
            return ast.arg(self.name(), self.maybe(lambda: self.expr(depth)))

        args = self.many(arg)
        return ast.arguments(
            posonlyargs=self.many(arg, 1),
            args=args,
            vararg=self.maybe(arg),
            kwonlyargs=[],
            kw_defaults=[],
            kwarg=self.maybe(arg),
            defaults=[self.expr(depth) for _ in args[: self.below(2)]],
        )

    def comprehensions(self, depth: int) -> list[ast.comprehension]:
        def one() -> ast.comprehension:
            conditions = self.many(lambda: self.expr(depth), 1)
            return ast.comprehension(self.target(depth), self.expr(depth), conditions, 0)

        return self.many(one, 2, least=1)

    # Patterns.

    def pattern(self, depth: int) -> ast.pattern:
        kind = self.below(8) if depth < 4 else 0
        inner = lambda: self.pattern(depth + 1)  # noqa: E731
        if kind == 1:
            value = ast.Attribute(ast.Name(self.name(), ast.Load()), self.name(), ast.Load())
            return ast.MatchValue(value)
        if kind == 2:
            return ast.MatchSequence(self.many(inner))
        if kind == 3:
            keys = self.many(lambda: ast.Constant(self.below(200)))
            return ast.MatchMapping(keys, [inner() for _ in keys], self.maybe(self.name))
        if kind == 4:
            named = self.many(self.name, 2)
            cls = ast.Name(self.name(), ast.Load())
            return ast.MatchClass(cls, self.many(inner, 2), named, [inner() for _ in named])
        if kind == 5:
            return ast.MatchOr([ast.MatchValue(ast.Constant(1)), ast.MatchSingleton(None)])
        if kind == 6:
            return ast.MatchAs(ast.MatchValue(ast.Constant("k")), self.name())
        return ast.MatchAs(None, self.name())

    # Statements.

    def body(self, depth: int, *, least: int = 1, most: int = 3) -> list[ast.stmt]:
        return self.many(lambda: self.stmt(depth), most, least)

    def stmt(self, depth: int) -> ast.stmt:
        simple = depth > 3 or self.below(2) == 0
        made: ast.stmt = self.choose(_SIMPLE if simple else _COMPOUND)(self, depth + 1)
        return made

    def alias(self, names: Sequence[str]) -> ast.alias:
        return ast.alias(self.choose(names), self.maybe(self.name))

    def import_from(self) -> ast.stmt:
        names = [self.alias(IMPORTED) for _ in range(1 + self.below(2))]
        if any(alias.name == "*" for alias in names):
            names = [ast.alias("*", None)]
        return ast.ImportFrom(self.choose(MODULES), names, 1 if self.below(12) == 11 else 0)

    def handler(self, depth: int) -> ast.ExceptHandler:
        kind = ast.Name(self.choose(["ValueError", "ImportError", "x"]), ast.Load())
        return ast.ExceptHandler(kind, self.maybe(self.name), self.body(depth))

    def function(self, depth: int) -> ast.stmt:
        kind = ast.AsyncFunctionDef if self.below(4) == 3 else ast.FunctionDef
        return kind(
            name=self.name(),
            args=self.arguments(depth),
            body=self.body(depth),
            decorator_list=self.many(lambda: self.expr(depth), 1),
            returns=self.maybe(lambda: self.expr(depth)),
            type_params=[],
        )

    def a_class(self, depth: int) -> ast.stmt:
        return ast.ClassDef(
            name=self.name(),
            bases=self.many(lambda: self.expr(3), 2),
            keywords=self.many(lambda: self.keyword(3), 1) if self.below(4) == 3 else [],
            body=self.body(depth),
            decorator_list=self.many(lambda: self.expr(3), 1),
            type_params=[],
        )


_LOAD = ast.Load()
_EXPRESSIONS: list[Callable[[_Maker, int], ast.expr]] = [
    lambda m, d: ast.Attribute(m.expr(d), m.name(), _LOAD),
    lambda m, d: ast.Call(m.expr(d), m.exprs(d), m.many(lambda: m.keyword(d), 1)),
    lambda m, d: ast.Subscript(m.expr(d), m.expr(d), _LOAD),
    lambda m, d: ast.Subscript(m.expr(d), ast.Slice(m.expr(d), m.maybe(lambda: m.expr(d))), _LOAD),
    lambda m, d: ast.BinOp(m.expr(d), m.choose([ast.Add(), ast.Mod(), ast.MatMult()]), m.expr(d)),
    lambda m, d: ast.BoolOp(ast.And(), [m.expr(d), m.expr(d)]),
    lambda m, d: ast.UnaryOp(m.choose([ast.Not(), ast.USub()]), m.expr(d)),
    lambda m, d: ast.Compare(m.expr(d), [m.choose([ast.In(), ast.Is(), ast.Lt()])], [m.expr(d)]),
    lambda m, d: ast.IfExp(m.expr(d), m.expr(d), m.expr(d)),
    lambda m, d: ast.Lambda(m.arguments(d), m.expr(d)),
    lambda m, d: ast.List([*m.exprs(d), ast.Starred(m.expr(d), _LOAD)], _LOAD),
    lambda m, d: ast.Tuple(m.exprs(d), _LOAD),
    lambda m, d: ast.Set([m.expr(d), m.expr(d)]),
    lambda m, d: ast.Dict([m.expr(d), None], [m.expr(d), m.expr(d)]),
    lambda m, d: ast.ListComp(m.expr(d), m.comprehensions(d)),
    lambda m, d: ast.DictComp(m.expr(d), m.expr(d), m.comprehensions(d)),
    lambda m, d: ast.GeneratorExp(m.expr(d), m.comprehensions(d)),
    lambda m, d: ast.NamedExpr(ast.Name(m.name(), ast.Store()), m.expr(d)),
    lambda m, d: ast.JoinedStr([ast.Constant("t"), ast.FormattedValue(m.expr(d), -1, None)]),
    lambda m, d: ast.Await(m.expr(d)),
    lambda m, d: ast.Yield(m.maybe(lambda: m.expr(d))),
    lambda m, d: ast.Call(
        ast.Attribute(ast.Name("object", _LOAD), "__setattr__", _LOAD), m.exprs(d), []
    ),
]
_SIMPLE: list[Callable[[_Maker, int], ast.stmt]] = [
    lambda m, d: ast.Expr(m.expr(d)),
    lambda m, d: ast.Assign([m.target(d)], m.expr(d)),
    lambda m, d: ast.AugAssign(m.choose([m.target(4)]), ast.Add(), m.expr(d)),
    lambda m, d: ast.AnnAssign(ast.Name(m.name(), ast.Store()), m.expr(d), m.expr(d), 1),
    lambda m, d: ast.Delete([ast.Name(m.name(), ast.Del())]),
    lambda m, d: ast.Import([m.alias(MODULES)]),
    lambda m, d: m.import_from(),
    lambda m, d: ast.Return(m.expr(d)),
    lambda m, d: ast.Raise(m.expr(d), m.maybe(lambda: m.expr(d))),
    lambda m, d: ast.Assert(m.expr(d), None),
    lambda m, d: ast.Global([m.name()]),
    lambda m, d: ast.Pass(),
]
_COMPOUND: list[Callable[[_Maker, int], ast.stmt]] = [
    lambda m, d: m.function(d),
    lambda m, d: m.a_class(d),
    lambda m, d: ast.If(m.expr(d), m.body(d), m.many(lambda: m.stmt(d), 1)),
    lambda m, d: ast.For(m.target(d), m.expr(d), m.body(d), []),
    lambda m, d: ast.While(m.expr(d), m.body(d), []),
    lambda m, d: ast.With([ast.withitem(m.expr(d), m.maybe(lambda: m.target(d)))], m.body(d)),
    lambda m, d: ast.Try(m.body(d), [m.handler(d)], [], m.many(lambda: m.stmt(d), 1)),
    lambda m, d: ast.TryStar(m.body(d), [m.handler(d)], [], []),
    lambda m, d: ast.Match(
        m.expr(d), m.many(lambda: ast.match_case(m.pattern(d), None, m.body(d)), 2, least=1)
    ),
]
