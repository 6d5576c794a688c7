"""The speed report: its form, and that each row is measured against its floor in the same run."""

import json

import pytest

from limbeck.benchmark import measures, pools
from limbeck.benchmark.rows import Report, Row, Sample, row
from limbeck.benchmark.speed import SECTIONS, run_speed
from limbeck.benchmark.tokens import cost, tokenizer


def test_a_short_run_measures_every_section(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "HITS", 3)
    monkeypatch.setattr(pools, "SUSTAINED", 4)
    heard: list[str] = []
    report = run_speed(rounds=1, progress=heard.append)
    data = json.loads(json.dumps(report.to_dict()))
    assert {one["section"] for one in data["rows"]} == set(SECTIONS)
    for one in data["rows"]:
        assert {"name", "section", "value", "unit", "floor", "ratio", "goal", "met"} <= set(one)
        if one["reason"] and "found no sandbox warm" in one["reason"]:
            continue  # A machine with other work: the row says so.
        assert min(one["value"], one["floor"]) > 0, one
        assert one["cpu"] > 0 or one["unit"] == "MB"
        assert one["met"] is (one["ratio"] <= one["goal"])
    assert data["machine"]["rounds"] == 1
    assert heard
    assert "lock-step call" in report.render()


def test_a_section_is_measured_alone() -> None:
    report = run_speed(["start"], rounds=1)
    assert [one.section for one in report.rows] == ["start"]


def test_what_fails_here_is_a_row_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "_CALLS_SCRIPT", "raise ValueError('no luck')")
    (one,) = run_speed(["call"], rounds=1).to_dict()["rows"]
    assert (one["value"], one["ratio"], one["met"]) == (None, None, None)
    assert "error" in one["reason"]


def test_the_ratio_is_the_median_of_the_rounds_own() -> None:
    floors = [Sample(1.0, 0.0), Sample(2.0, 0.0), Sample(100.0, 0.0)]
    values = [Sample(3.0, 0.0), Sample(6.0, 0.0), Sample(1_000.0, 0.0)]
    one = row("x", "call", floors, values, goal=3.0, unit="s")
    assert (one.value, one.floor, one.ratio, one.met) == (6.0, 2.0, 3.0, True)


def test_a_row_that_cannot_run_says_why() -> None:
    report = Report(
        machine={"limbeck": "x", "python": "x", "cores": 2, "load": 1, "rounds": 1},
        rows=(Row(name="x", section="start", unit="ms", reason="no sandbox"),),
    )
    assert report.to_dict()["rows"][0]["met"] is None
    assert "no sandbox" in report.render()


def test_tokens_are_exact_and_named() -> None:
    tokens = tokenizer()
    assert tokens.name == "o200k_base"
    assert tokens.count("hello world") == 2
    assert tokens.count("お誕生日おめでとう") == 8


def test_a_conversation_sums_its_requests() -> None:
    tokens = tokenizer()
    call = ("hello world", "hello world")
    total = cost(tokens, "hello world", [[call], [call]])
    assert (total.definitions, total.sent, total.returned, total.requests) == (2, 4, 4, 3)
    assert total.summed_input == 2 + (2 + 12) + (2 + 24)
    assert total.context == 10


def test_batched_calls_share_a_request() -> None:
    tokens = tokenizer()
    call = ("hello world", "hello world")
    total = cost(tokens, "hello world", [[call, call]])
    assert (total.sent, total.returned, total.requests) == (4, 4, 2)
    assert total.summed_input == 2 + (2 + 4 + 4 + 3 * 4)
