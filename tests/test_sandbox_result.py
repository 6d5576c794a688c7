"""The text for the model: bounded over all its parts, the error never cut away by the printout."""

import json

from hypothesis import given
from hypothesis import strategies as st

from limbeck.sandbox.result import (
    CallSummary,
    ErrorInfo,
    ExecutionResult,
    Status,
    Truncation,
    Warning,
)


def _result(**fields: object) -> ExecutionResult:
    base: dict[str, object] = {"execution_id": "e", "status": Status.OK, "started": True}
    return ExecutionResult(**{**base, **fields})  # type: ignore[arg-type]


@given(
    st.text(max_size=3_000),
    st.text(max_size=3_000),
    st.lists(st.text(max_size=200), max_size=20),
    st.integers(0, 2_000),
    st.sampled_from(list(Status)),
)
def test_the_bound_holds_over_all_parts(
    printout: str, trace: str, faults: list[str], characters: int, status: Status
) -> None:
    error = ErrorInfo(code="x", message="m", traceback=trace, hint="h", faults=tuple(faults))
    result = _result(
        status=status,
        printout=printout,
        error=error,
        truncated=Truncation(kept=1, total=2, path=None),
        warnings=(Warning(code="w", message=trace),),
    )
    assert len(result.for_model(characters)) <= characters


def test_a_flood_does_not_push_the_traceback_out() -> None:
    error = ErrorInfo(code="exception", message="boom", traceback="  line 3\nValueError: boom")
    text = _result(status=Status.ERROR, printout="x" * 100_000, error=error).for_model(1_000)
    assert "ValueError: boom" in text
    assert "left out" in text
    assert text.startswith("xxx")


def test_a_silent_success_says_so() -> None:
    assert _result().for_model() == "(the script finished and printed nothing)"


def test_an_ok_printout_is_the_whole_text() -> None:
    assert _result(printout="42\n").for_model() == "42"


def test_truncation_says_that_the_script_finished() -> None:
    truncated = Truncation(kept=65_536, total=1_000_000, path="/x")
    text = _result(printout="x", truncated=truncated).for_model()
    assert "65,536 of 1,000,000 bytes" in text
    assert "the script finished" in text


def test_a_failure_says_what_was_done_before() -> None:
    calls = CallSummary(started=5, succeeded=3, failed=1, writes_applied=2, unknown_outcome=1)
    error = ErrorInfo(code="wall", message="stopped after 60 s", hint="do less.")
    text = _result(status=Status.TIMEOUT, error=error, calls=calls).for_model()
    assert "[timeout] stopped after 60 s" in text
    assert "Hint: do less." in text
    assert (
        "3 succeeded, 1 failed, 2 of them writes that are applied, 1 with unknown outcome" in text
    )


def test_nothing_ran_is_said() -> None:
    error = ErrorInfo(code="refused", message="1 fault:", faults=("line 1, col 1: no",))
    text = _result(status=Status.REFUSED, started=False, error=error).for_model()
    assert "line 1, col 1: no" in text
    assert "Nothing ran." in text


def test_harmful_characters_are_escaped() -> None:
    assert _result(printout="\x1b[2J\u202eabc").for_model() == "\\x1b[2J\\u202eabc"


def test_to_dict_is_json_with_every_field() -> None:
    data = json.loads(json.dumps(_result().to_dict()))
    assert set(data) == {
        "execution_id",
        "session_id",
        "status",
        "started",
        "exit_code",
        "printout",
        "truncated",
        "error",
        "calls",
        "usage",
        "artifacts",
        "artifacts_lost",
        "emitted",
        "warnings",
        "sandbox",
    }
    assert data["status"] == "ok"
