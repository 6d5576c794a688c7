"""Hostile snippets stop where they must: before anything runs, or at the guard that meets them."""

from __future__ import annotations

import pytest
from gate.snippets import read
from kit.gated import both_ways

from limbeck.runtime import gate

SNIPPETS = tuple(read("refuse/snippets.txt"))
STATIC = [snippet for snippet in SNIPPETS if snippet.labels[0] == "compile"]
GUARDED = [snippet for snippet in SNIPPETS if snippet.labels[0] == "run"]
WORKING = [snippet for snippet in SNIPPETS if "own" not in snippet.labels]
"""All but those that aim at names which only the gate has."""


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
def test_stopped_when_it_runs(snippet):
    assert gate.vet(snippet.source) == []
    gated, _ = both_ways(SNIPPETS)[snippet.name]
    assert gated.startswith(f"[uncaught] {snippet.labels[1]} "), gated


@pytest.mark.parametrize("snippet", WORKING, ids=lambda snippet: snippet.name)
def test_works_in_plain_python(snippet):
    _, plain = both_ways(SNIPPETS)[snippet.name]
    assert "[uncaught]" not in plain, plain


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
    assert len(WORKING) >= 230
    assert len(STATIC) >= 120
    assert len(GUARDED) >= 90
    assert len({snippet.name for snippet in SNIPPETS}) == len(SNIPPETS)
