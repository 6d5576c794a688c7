"""Hostile snippets stop where they must: before anything runs, or at the guard that meets them."""

from __future__ import annotations

import contextlib
import io

import pytest
from gate.snippets import read

from limbeck.runtime import gate

SNIPPETS = read("refuse/snippets.txt")
STATIC = [snippet for snippet in SNIPPETS if snippet.labels[0] == "compile"]
GUARDED = [snippet for snippet in SNIPPETS if snippet.labels[0] == "run"]


@pytest.mark.parametrize("snippet", STATIC, ids=lambda snippet: snippet.name)
def test_refused_before_it_runs(snippet):
    faults = gate.vet(snippet.source)
    assert faults
    for fault in faults:
        assert fault.message
        assert fault.line >= 1
        assert fault.column >= 1
        assert str(fault).startswith(f"line {fault.line}, col {fault.column}: ")


@pytest.mark.parametrize("snippet", GUARDED, ids=lambda snippet: snippet.name)
def test_stopped_when_it_runs(snippet, tmp_path):
    assert gate.vet(snippet.source) == []
    code = gate.compile_script(snippet.source, gate=True).code
    scope = gate.script_globals(gate=True, show=print, extra={"FILE": str(tmp_path / "f")})
    with (
        contextlib.redirect_stdout(io.StringIO()) as output,
        pytest.raises(BaseException) as caught,
    ):
        exec(code, scope)
    assert caught.type.__name__ == snippet.labels[1], caught.value
    assert output.getvalue() == ""


def test_every_fault_is_told_at_once_in_order():
    source = "import subprocess\nimport requests\nx = ().__class__.__base__\nopen = eval\n"
    faults = gate.vet(source)
    assert [fault.line for fault in faults] == [1, 2, 3, 4]
    assert "call a tool" in faults[1].hint
    assert faults[1].source_line == "import requests"


def test_at_most_twenty_faults():
    assert len(gate.vet("import subprocess\n" * 50)) == gate.MAX_FAULTS == 20


def test_refusal_at_compile_time_has_the_same_faults():
    with pytest.raises(gate.Refused) as caught:
        gate.compile_script("import socket", gate=True)
    assert caught.value.faults == gate.vet("import socket")


def test_gate_off_lets_everything_run():
    assert gate.vet("import subprocess; subprocess.run.__globals__", gate=False) == []


def test_there_are_enough():
    assert len(SNIPPETS) >= 60
    assert len({snippet.name for snippet in SNIPPETS}) == len(SNIPPETS)
