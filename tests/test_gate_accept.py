"""Ordinary scripts run under the gate in a sandbox and print exactly what plain CPython prints."""

from __future__ import annotations

import pytest
from gate.snippets import read
from kit.gated import both_ways
from kit.sandboxed import execute

from limbeck.runtime import gate

FEATURES = [
    snippet
    for name in ("language", "language_more", "libraries", "files", "programs")
    for snippet in read(f"accept/{name}.txt")
]
PIPELINES = read("accept/pipelines.txt")
SCRIPTS = (*FEATURES, *PIPELINES)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_script_prints_the_same(script):
    assert gate.vet(script.source) == []
    gated, plain = both_ways(SCRIPTS)[script.name]
    assert gated == plain
    assert gated
    assert ("[uncaught]" in gated) == ("uncaught" in script.labels)


@pytest.mark.parametrize("script", PIPELINES, ids=lambda script: script.name)
def test_pipeline_runs_the_whole_way(script):
    result = execute(script.source, gate="on")
    assert result.status == "ok", result.for_model()
    assert result.printout == both_ways(SCRIPTS)[script.name][1]


def test_there_are_enough():
    assert len(FEATURES) >= 150
    assert len(PIPELINES) >= 30
    assert len({script.name for script in SCRIPTS}) == len(SCRIPTS)
    for script in PIPELINES:
        assert 20 <= len(script.source.strip().splitlines()) <= 60, script.name
