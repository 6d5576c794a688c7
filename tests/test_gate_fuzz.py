"""Generated programs: the gate never crashes, never hangs, never accepts what a stranger finds."""

from __future__ import annotations

import ast
import time
from collections import Counter

import pytest
from gate.checker import findings
from gate.programs import program
from gate.snippets import read
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from limbeck.runtime import gate

MAX_SECONDS = 20.0
"""For one small program, on whatever machine: what takes longer hangs."""

FOUND = read("fuzz_found.txt")
"""Programs that once showed a fault of the gate."""

BYTES = st.binary(min_size=20, max_size=400)
seen: Counter[str] = Counter()


def check(source: str) -> None:
    began = time.monotonic()
    faults = gate.vet(source)
    assert time.monotonic() - began < MAX_SECONDS
    seen["accepted" if not faults else "refused"] += 1
    for fault in faults:
        assert fault.message
        assert "could not be read" not in fault.message, source
    if not faults:
        assert findings(source) == [], source


def fuzz(examples: int, *, derandomize: bool) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=derandomize,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(BYTES)
    def run(data: bytes) -> None:
        check(program(data))

    seen.clear()
    run()
    assert seen["accepted"] > examples / 20, seen
    assert seen["refused"] > examples / 20, seen


def test_four_thousand_programs():
    fuzz(4_000, derandomize=True)


@pytest.mark.slow
def test_a_hundred_thousand_programs():
    fuzz(100_000, derandomize=False)


@pytest.mark.parametrize("snippet", FOUND, ids=lambda snippet: snippet.name)
def test_found_before(snippet):
    check(snippet.source)


def test_the_stranger_knows_most_refusals():
    """Else the comparison above would mean little."""
    sources = [one.source for one in read("refuse/snippets.txt") if one.labels[0] == "compile"]
    unknown = [source for source in sources if is_python(source) and not findings(source)]
    assert len(unknown) < len(sources) / 3


def is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True
