"""Ordinary scripts run under the gate and print exactly what plain CPython prints."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io

import pytest
from gate.snippets import read

from limbeck.runtime import gate

SCRIPTS = [
    *read("accept/language.txt"),
    *read("accept/libraries.txt"),
    *read("accept/pipelines.txt"),
]


def run(source: str, *, gated: bool) -> str:
    """What the script prints, with its last value and its uncaught error."""
    code = gate.compile_script(source, gate=gated).code
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        scope = gate.script_globals(gate=gated, show=lambda value: print(repr(value)), extra={})
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(eval(code, scope))
        else:
            exec(code, scope)
    return output.getvalue()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_script_prints_the_same(script):
    assert gate.vet(script.source) == []
    printed = run(script.source, gated=True)
    assert printed
    assert printed == run(script.source, gated=False)


def test_there_are_enough():
    assert len(SCRIPTS) >= 60
    assert len({script.name for script in SCRIPTS}) == len(SCRIPTS)
