"""Generated: every binding form x every reserved name, every place of an expression x a dunder."""

from __future__ import annotations

import ast

import pytest
from RestrictedPython.transformer import RestrictingNodeTransformer

from limbeck.runtime import gate
from limbeck.runtime.gate import libraries, modules, names
from limbeck.runtime.gate.table import script_builtins
from limbeck.runtime.gate.transformer import Policy

BINDINGS = [
    "{n} = 1",
    "{n}: int = 1",
    "{n}: int",
    "{n} += 1",
    "a = {n} = 1",
    "a, ({n}, *b) = 1, (2, 3)",
    "[*{n}] = [1]",
    "({n} := 1)",
    "[1 for x in [1] if ({n} := x)]",
    "[{n} for {n} in [1]]",
    "{{x for x, {n} in []}}",
    "{{x: 1 for x, *{n} in []}}",
    "list(1 for {n} in [])",
    "for {n} in []: pass",
    "for a, {n} in []: pass",
    "with open('x') as {n}: pass",
    "with open('x') as (a, {n}): pass",
    "import json as {n}",
    "import {n}",
    "from json import loads as {n}",
    "from json import {n}",
    "from tools import {n}",
    "import tools.{n}",
    "from tools.{n} import x",
    "def {n}(): pass",
    "async def {n}(): pass",
    "class {n}: pass",
    "def f({n}): pass",
    "def f({n}=1): pass",
    "def f({n}, /): pass",
    "def f(*, {n}): pass",
    "def f(*{n}): pass",
    "def f(**{n}): pass",
    "lambda {n}: 1",
    "lambda {n}, /: 1",
    "lambda *, {n}=1: 1",
    "lambda *{n}: 1",
    "lambda **{n}: 1",
    "def f():\n    global {n}",
    "def f():\n    a = 1\n    def g():\n        nonlocal {n}",
    "try: pass\nexcept ValueError as {n}: pass",
    "match 1:\n    case {n}: pass",
    "match 1:\n    case int() as {n}: pass",
    "match 1:\n    case [*{n}]: pass",
    "match 1:\n    case {{'a': {n}}}: pass",
    "match 1:\n    case {{**{n}}}: pass",
    "match 1:\n    case object(x={n}): pass",
    "match 1:\n    case object({n}=1): pass",
    "del {n}",
    "f({n}=1)",
    "class A(B, {n}=1): pass",
    "async def f():\n    async for {n} in x: pass",
    "async def f():\n    async with x as {n}: pass",
    "def f():\n    {n} = 1",
    "class A:\n    def f(self): {n} = 1",
    "x.{n}",
    "x.{n} = 1",
    "x.{n} += 1",
    "del x.{n}",
    "for x.{n} in []: pass",
    "with x as y.{n}: pass",
    "(x.{n}, y) = 1, 2",
    "print({n})",
    "class A:\n    __slots__ = ('{n}',)",
    "class A:\n    __match_args__ = ('{n}',)",
]
RESERVED = [
    names.SHOW,
    names.ATTRIBUTE,
    names.TYPE,
    "_lb_x",
    "__builtins__",
    "__import__",
    "__build_class__",
    "__globals__",
    "__getattribute__",
]
PLACES = [
    "{e}",
    "x = {e}",
    "x: {e} = 1",
    "x += {e}",
    "x[{e}]",
    "x[{e}:]",
    "x[:{e}:1]",
    "x[{e}] = 1",
    "x[{e}] += 1",
    "del x[{e}]",
    "f({e})",
    "f(k={e})",
    "f(*{e})",
    "f(**{e})",
    "{e}()",
    "{e}.x",
    "{e}.x = 1",
    "{e}[0]",
    "-{e}",
    "not {e}",
    "1 + {e}",
    "1 < 2 < {e}",
    "x and {e}",
    "1 if {e} else 2",
    "{e} if x else 2",
    "1 if x else {e}",
    "[{e}]",
    "({e}, 1)",
    "{{{e}}}",
    "{{{e}: 1}}",
    "{{1: {e}}}",
    "{{**{e}}}",
    "[*{e}]",
    "[{e} for x in y]",
    "[x for x in {e}]",
    "[x for x in y for z in {e}]",
    "[x for x in y if {e}]",
    "{{{e}: 1 for x in y}}",
    "{{1: {e} for x in y}}",
    "({e} for x in y)",
    "(x := {e})",
    "lambda: {e}",
    "lambda x={e}: 1",
    "lambda *, x={e}: 1",
    "f'{{{e}}}'",
    "f'{{1:{{{e}}}}}'",
    "f'{{{e}=}}'",
    "def f(x={e}): pass",
    "def f(*, x={e}): pass",
    "def f(x: {e}): pass",
    "def f(*x: {e}): pass",
    "def f() -> {e}: pass",
    "@{e}\ndef f(): pass",
    "@{e}\nclass A: pass",
    "class A({e}): pass",
    "class A(x={e}): pass",
    "class A:\n    x = {e}",
    "class A:\n    x: {e}",
    "class A:\n    def f(self): return {e}",
    "def f(): return {e}",
    "def f(): yield {e}",
    "def f(): yield from {e}",
    "async def f(): await {e}",
    "await {e}",
    "if {e}: pass",
    "while {e}: pass",
    "for x in {e}: pass",
    "with {e}: pass",
    "with {e} as y: pass",
    "assert {e}",
    "assert 1, {e}",
    "raise {e}",
    "raise x from {e}",
    "try: pass\nexcept {e}: pass",
    "match {e}:\n    case 1: pass",
    "match 1:\n    case 1 if {e}: pass",
    "match 1:\n    case {p}: pass",
    "match 1:\n    case {{{p}: 1}}: pass",
    "match 1:\n    case {p}(): pass",
    "match 1:\n    case {p}(1): pass",
    "match 1:\n    case [1 | {p}]: pass",
    "match 1:\n    case object(a={p}): pass",
    "async def f():\n    async for x in {e}: pass",
    "async def f():\n    async with {e}: pass",
    "async def f():\n    [x async for x in {e}]",
]


@pytest.mark.parametrize("form", BINDINGS)
def test_no_form_binds_or_names_what_is_reserved(form):
    for name in RESERVED:
        source = form.format(n=name)
        assert gate.vet(source), source


@pytest.mark.parametrize(
    "form", [form for form in BINDINGS if "import" not in form and "nonlocal" not in form]
)
def test_every_form_takes_an_ordinary_name(form):
    source = form.format(n="ordinary")
    assert [fault.message for fault in gate.vet(source)] == [], source


@pytest.mark.parametrize("place", PLACES)
def test_no_place_hides_a_dunder(place):
    for attribute in ("__globals__", "__subclasses__", "gi_frame", "_lb_x"):
        inner = f"x.{attribute}"
        source = place.format(e=inner, p=inner)
        assert gate.vet(source), source
    assert gate.vet(place.format(e="x.y", p="x.y")) == []


def test_no_guard_can_be_spelt_by_mangling():
    guards = script_builtins(print, {})
    spelt = [name for name in guards if name.startswith(names.PREFIX)]
    assert len(spelt) >= 7
    assert not [name for name in spelt if "__" in name]


def test_every_node_is_known_or_refused():
    kinds = [kind for base in (ast.stmt, ast.expr, ast.pattern) for kind in base.__subclasses__()]
    for kind in kinds:
        if kind.__module__ == "ast":
            known = kind.__name__ in KNOWN_NODES
            assert hasattr(Policy, f"visit_{kind.__name__}") is known, kind


def test_unknown_node_is_refused():
    class Novel(ast.expr):
        _fields = ()

    tree = ast.parse("x = 1")
    tree.body[0].value = ast.copy_location(Novel(), tree.body[0].value)
    policy = Policy(tree, ["x = 1"])
    policy.visit(tree)
    assert [fault.message for fault in policy.faults] == ["Novel is not allowed"]


KNOWN_NODES = set(
    """FunctionDef AsyncFunctionDef ClassDef Return Delete Assign AugAssign AnnAssign For AsyncFor
    While If With AsyncWith Match Raise Try TryStar Assert Import ImportFrom Global Nonlocal Expr
    Pass Break Continue TypeAlias BoolOp NamedExpr BinOp UnaryOp Lambda IfExp Dict Set ListComp
    SetComp DictComp GeneratorExp Await Yield YieldFrom Compare Call FormattedValue JoinedStr
    Constant Attribute Subscript Starred Name List Tuple Slice MatchValue MatchSingleton
    MatchSequence MatchMapping MatchClass MatchStar MatchAs MatchOr""".split()  # noqa: SIM905
)
"""Statements, expressions and patterns of Python 3.11 to 3.13."""
REWRITING = {"Subscript", "Attribute", "Call", "AugAssign", "Assign", "For", "With", "ClassDef"}


@pytest.mark.parametrize("kind", sorted(REWRITING))
def test_every_rewriting_visit_is_overridden(kind):
    method = f"visit_{kind}"
    assert getattr(Policy, method) is not getattr(RestrictingNodeTransformer, method)


@pytest.mark.parametrize("module", sorted(set(modules.NAMES) - {"__future__"}))
def test_every_module_of_the_table_is_served(module):
    importer = libraries.importer()
    served = importer(module)
    for part in module.split(".")[1:]:
        served = getattr(served, part)
    assert served.__name__ == f"sandbox.{module}"
    public = {name for name in vars(served) if not name.startswith("_")}
    assert public <= modules.exposed(module)
    allowed = libraries.available(module)
    assert set(allowed) <= public
    if modules.NAMES[module]:
        assert len(allowed) * 2 >= len(modules.NAMES[module])


def test_fingerprint_is_that_of_the_sources():
    assert gate.fingerprint() == gate.fingerprint()
    assert len(gate.fingerprint()) == 32
