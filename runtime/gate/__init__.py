"""The language gate: vets a script on the host, compiles it by the same policy in the sandbox.

It is a vetting layer with teeth in front of the container, never the boundary: what it refuses, it
refuses early and with a reason; what passes it runs in a sandbox all the same.
"""

from __future__ import annotations

import ast
import builtins
import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import RestrictedPython.transformer

from .builtin_names import gated_builtins
from .faults import MAX_FAULTS as MAX_FAULTS
from .faults import Fault as Fault
from .faults import Refused as Refused
from .modules import ALLOWED_MODULES as ALLOWED_MODULES
from .names import PREFIX
from .transformer import Policy, bound_names

SCRIPT = "<script>"
_SHOW = f"{PREFIX}show"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A script, ready to run."""

    code: CodeType
    """A coroutine's code when the script awaits at its top level (CO_COROUTINE)."""


def vet(source: str, *, gate: bool = True) -> list[Fault]:
    """Every fault of a script, in order, at most 20; never raises."""
    try:
        compile_script(source, gate=gate)
    except Refused as refusal:
        return refusal.faults
    return []


def compile_script(source: str, *, gate: bool, filename: str = SCRIPT) -> Compiled:
    """Compile a script; its last expression is shown, as in a notebook.

    Raises Refused: with the gate off only for what is not Python.
    """
    try:
        tree = ast.parse(source, filename)
        if gate:
            _apply_policy(tree, source)
        _show_last(tree)
        return Compiled(
            compile(tree, filename, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        )
    except SyntaxError as error:
        raise Refused([_of_syntax(error, source)]) from None
    except (RecursionError, MemoryError, ValueError, OverflowError) as error:
        text = f"the script is too complex to read ({type(error).__name__})"
        fault = Fault(line=0, column=0, message=text, hint="nest less, and split long expressions")
        raise Refused([fault]) from None


def script_globals(
    *, gate: bool, show: Callable[[object], None], extra: Mapping[str, object]
) -> dict[str, Any]:
    """The globals of a script's module.

    Args:
        gate: Built-in names by the policy, or all of Python's.
        show: Called with the value of the last expression.
        extra: More built-in names.
    """
    table = gated_builtins() if gate else dict(vars(builtins))
    table.update(extra)
    table[_SHOW] = show
    return {"__name__": "__main__", "__builtins__": table}


@functools.cache
def fingerprint() -> str:
    """Names the policy: both sides of a job must have the same."""
    digest = hashlib.sha256()
    files = sorted(Path(__file__).parent.glob("*.py"))
    for path in [*files, Path(RestrictedPython.transformer.__file__)]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:32]


def _apply_policy(tree: ast.Module, source: str) -> None:
    policy = Policy(source, bound_names(tree))
    policy.visit(tree)
    if policy.faults:
        policy.faults.sort(key=lambda fault: (fault.line, fault.column))
        raise Refused(policy.faults)
    ast.fix_missing_locations(tree)


def _show_last(tree: ast.Module) -> None:
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        name = ast.copy_location(ast.Name(_SHOW, ast.Load()), last.value)
        last.value = ast.copy_location(ast.Call(name, [last.value], []), last.value)


def _of_syntax(error: SyntaxError, source: str) -> Fault:
    lines = source.splitlines()
    line = error.lineno or 0
    hint = ""
    if "'return' outside function" in error.msg:
        hint = "a script has no caller; print the value"
    return Fault(
        line=line,
        column=error.offset or 0,
        message=error.msg,
        hint=hint,
        source_line=lines[line - 1].strip()[:200] if 0 < line <= len(lines) else "",
    )
