"""Facts to status: which fact wins, and that nothing a sandbox says can break the judging."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limbeck.sandbox.backend import ExitCause, ExitReport, Limits
from limbeck.sandbox.result import Status
from limbeck.sandbox.verdict import Facts, judge

KILLED = ExitReport(cause=ExitCause.KILLED)


def _facts(exit_report: ExitReport = KILLED, **fields: object) -> Facts:
    return Facts(limits=Limits(), exit=exit_report, **fields)  # type: ignore[arg-type]


def _report(code: str) -> bytes:
    return json.dumps({"code": code, "message": "m", "type": "T", "line": 3}).encode()


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (_facts(done=(0, b"")), Status.OK),
        (_facts(done=(7, b"")), Status.ERROR),
        (_facts(done=(1, _report("exception"))), Status.ERROR),
        (_facts(done=(1, _report("memory"))), Status.MEMORY),
        (_facts(done=(1, _report("pids"))), Status.PIDS),
        (_facts(done=(1, b'{"code": "refused", "faults": ["x"]}')), Status.REFUSED),
        (_facts(deadline=True), Status.TIMEOUT),
        (_facts(overflow=True, done=(0, b"")), Status.OUTPUT),
        (_facts(cancelled=True, deadline=True), Status.CANCELLED),
        (_facts(ExitReport(cause=ExitCause.MEMORY, signal=9)), Status.MEMORY),
        (_facts(ExitReport(cause=ExitCause.CPU, signal=24)), Status.CPU),
        (_facts(ExitReport(cause=ExitCause.DEADLINE)), Status.TIMEOUT),
        (_facts(ExitReport(cause=ExitCause.EXITED, exit_code=0)), Status.OK),
        (_facts(ExitReport(cause=ExitCause.EXITED, exit_code=3)), Status.ERROR),
        (_facts(ExitReport(cause=ExitCause.EXITED, signal=11)), Status.KILLED),
        (_facts(ExitReport(cause=ExitCause.LOST)), Status.KILLED),
        (_facts(KILLED, stream_broken=True), Status.KILLED),
    ],
)
def test_status(facts: Facts, status: Status) -> None:
    assert judge(facts).status is status


def test_a_lost_sandbox_is_not_unavailable() -> None:
    verdict = judge(_facts(ExitReport(cause=ExitCause.LOST)))
    assert verdict.error is not None
    assert verdict.error.code == "sandbox_lost"
    assert verdict.started


def test_a_limit_that_the_script_survived_is_a_warning() -> None:
    verdict = judge(_facts(ExitReport(cause=ExitCause.MEMORY), done=(0, b"")))
    assert verdict.status is Status.OK
    assert [warning.code for warning in verdict.warnings] == ["memory"]


@given(st.integers(-(2**31), 2**31 - 1), st.binary(max_size=200))
def test_any_bytes_are_judged(exit_code: int, data: bytes) -> None:
    assert judge(_facts(done=(exit_code, data))).status in Status


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["code", "faults", "line", "message", "traceback", "hint"]), inner
            )
        ),
    )
)
def test_any_json_is_judged(report: object) -> None:
    verdict = judge(_facts(done=(1, json.dumps(report).encode())))
    assert verdict.error is not None
    assert isinstance(verdict.error.message, str)


def test_a_script_that_ran_cannot_claim_a_refusal() -> None:
    verdict = judge(_facts(done=(1, b'{"code": "refused", "faults": []}'), active=True))
    assert verdict.status is Status.ERROR
    assert verdict.started


def test_cancelled_before_the_job_means_that_nothing_ran() -> None:
    assert not judge(_facts(cancelled=True, begun=False)).started
    assert judge(_facts(cancelled=True)).started
