"""From source text to faults, or to a code object."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType

from . import names
from .faults import MAX_LINE, Fault, Refused, in_order
from .shapes import shape_of
from .transformer import Policy

_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_DEPTH = 6_000
"""Recursion limit while a tree is walked; long chains of operators are deep trees."""

_TOO_DEEP = "the script is nested too deeply"
_HINTS = {
    "'return' outside function": "print the value; a script has no caller",
    "'yield' outside function": "put it into a function",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A script that is ready to run in `script_globals`."""

    code: CodeType
    """A coroutine's code (CO_COROUTINE) when the script awaits at its top level."""


def vet(source: str, *, gate: bool = True, open_modules: Collection[str] = ()) -> list[Fault]:
    """Every fault of the script, at most 20, in order; empty when it may run. Never raises.

    Without the gate only the syntax is checked. `open_modules` are packages that the script may
    import as they are.
    """
    try:
        _compile(source, gate=gate, open_modules=open_modules, filename="<script>")
    except Refused as refusal:
        return refusal.faults
    except Exception as error:
        text = f"the script could not be read ({type(error).__name__})"
        return [Fault(line=0, column=0, message=text, hint="write it more simply")]
    return []


def compile_script(
    source: str, *, gate: bool, open_modules: Collection[str] = (), filename: str = "<script>"
) -> Compiled:
    """Compile the script under the policy; a last expression is shown. Raises Refused."""
    code = _compile(source, gate=gate, open_modules=open_modules, filename=filename)
    return Compiled(code=code)


def _compile(source: str, *, gate: bool, open_modules: Collection[str], filename: str) -> CodeType:
    try:
        with _quiet_and_deep():
            tree = compile(
                source, filename, "exec", flags=_FLAGS | ast.PyCF_ONLY_AST, dont_inherit=True
            )
            shape = shape_of(source) if _does_nothing(tree) else None
            if shape is not None:
                raise Refused([shape])
            faults = _apply_policy(tree, source, open_modules) if gate else []
            if faults:
                raise Refused(in_order(faults))
            _show_last(tree)
            code = compile(tree, filename, "exec", flags=_FLAGS, dont_inherit=True)
    except SyntaxError as error:
        raise Refused([_syntax_fault(source, error)]) from None
    except (RecursionError, MemoryError):
        hint = "use loops and data instead of long expressions"
        raise Refused([Fault(line=0, column=0, message=_TOO_DEEP, hint=hint)]) from None
    except (ValueError, OverflowError) as error:
        raise Refused([Fault(line=0, column=0, message=f"not Python: {error}")]) from None
    return _with_shown_names(code)


def _does_nothing(tree: ast.Module) -> bool:
    """Nothing but names and signs: `ls -la /data` is a subtraction and a division."""
    harmless = (ast.Module, ast.Expr, ast.BinOp, ast.UnaryOp, ast.Name, ast.Attribute)
    signs = (ast.operator, ast.unaryop, ast.expr_context)
    return all(isinstance(node, harmless + signs) for node in ast.walk(tree))


def _apply_policy(tree: ast.Module, source: str, open_modules: Collection[str]) -> list[Fault]:
    policy = Policy(tree, _lines(source), open_modules)
    policy.visit(tree)
    return policy.faults


@contextmanager
def _quiet_and_deep() -> Iterator[None]:
    limit = sys.getrecursionlimit()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.setrecursionlimit(max(limit, _DEPTH))
        try:
            yield
        finally:
            sys.setrecursionlimit(limit)


def _show_last(tree: ast.Module) -> None:
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        func = ast.copy_location(ast.Name(names.SHOW, ast.Load()), last.value)
        last.value = ast.copy_location(ast.Call(func, [last.value], []), last.value)


def _with_shown_names(code: CodeType) -> CodeType:
    """Functions of a class keep the names that the script wrote, in tracebacks and reprs."""
    constants = tuple(
        _with_shown_names(item) if isinstance(item, CodeType) else item for item in code.co_consts
    )
    return code.replace(
        co_consts=constants,
        co_name=names.shown(code.co_name),
        co_qualname=names.shown(code.co_qualname),
    )


def _syntax_fault(source: str, error: SyntaxError) -> Fault:
    shape = shape_of(source)
    if shape is not None:
        return shape
    line = error.lineno or 0
    lines = _lines(source)
    text = lines[line - 1] if 0 < line <= len(lines) else (error.text or "")
    message = error.msg or "invalid syntax"
    return Fault(
        line=line,
        column=max(error.offset or 1, 1) if line else 0,
        message=message,
        hint=_HINTS.get(message, ""),
        source_line=text.rstrip()[:MAX_LINE],
    )


def _lines(source: str) -> list[str]:
    # Not splitlines(): the parser counts no form feed and no Unicode separator.
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
