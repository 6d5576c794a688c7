"""What happened, turned into a status and a reason. Pure: facts in, verdict out.

Which fact wins is decided here alone: what the host did (cancel, deadline, output), then the
script's own word (Done), then how its process ended.
"""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass
from typing import Any

from ..runtime import payload
from .backend import ExitCause, ExitReport, Limits
from .result import ErrorInfo, Status, Warning

MAX_TEXT = 16_000
"""Characters of one text that a sandbox reports; a longer one is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that the executor saw of one execution that got its job."""

    limits: Limits
    exit: ExitReport
    cancelled: bool = False
    deadline: bool = False
    overflow: bool = False
    done: tuple[int, bytes] | None = None
    """Exit code and error of the worker's Done: the sandbox's own word, hostile bytes."""
    begun: bool = True
    """The job was sent."""
    active: bool = False
    """The host saw a call or a printed byte: the script did run."""
    stream_broken: bool = False
    """The bridge's stream ended while the sandbox lived on."""
    fault: str = ""
    """Why the host ended the stream, when the sandbox broke the protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The part of an ExecutionResult that says how it ended."""

    status: Status
    started: bool = True
    exit_code: int | None = None
    error: ErrorInfo | None = None
    warnings: tuple[Warning, ...] = ()


def judge(facts: Facts) -> Verdict:
    """Decide."""
    if facts.cancelled:
        return Verdict(
            status=Status.CANCELLED,
            started=facts.begun,
            error=ErrorInfo(code="cancelled", message="the execution was cancelled"),
        )
    if facts.overflow:
        return _limit(Status.OUTPUT, facts)
    if facts.done is not None:
        return _by_own_word(facts, *facts.done)
    if facts.deadline:
        return _limit(Status.TIMEOUT, facts)
    return _by_exit(facts)


def _by_own_word(facts: Facts, exit_code: int, data: bytes) -> Verdict:
    warnings = _caught(facts)
    if not data:
        status = Status.OK if exit_code == 0 else Status.ERROR
        error = None if exit_code == 0 else _exited(exit_code)
        return Verdict(status=status, exit_code=exit_code, error=error, warnings=warnings)
    report = _read(data)
    # A script that has run can send this word too; the host knows better.
    if report.get("code") == "refused" and not facts.active:
        faults = tuple(_text(fault) for fault in _list(report.get("faults"))[:20])
        message = f"the script was refused, {len(faults)} faults"
        error = ErrorInfo(code="refused", message=message, faults=faults)
        return Verdict(status=Status.REFUSED, started=False, error=error)
    code = _text(report.get("code")) or "exception"
    status = {"memory": Status.MEMORY, "pids": Status.PIDS}.get(code, Status.ERROR)
    line = report.get("line")
    error = ErrorInfo(
        code=code,
        message=_text(report.get("message")),
        type=_text(report.get("type")),
        line=line if isinstance(line, int) else None,
        source=_text(report.get("source")),
        hint=_text(report.get("hint")),
        traceback=_text(report.get("traceback")),
    )
    return Verdict(status=status, exit_code=exit_code, error=error, warnings=warnings)


def _by_exit(facts: Facts) -> Verdict:
    cause, report = facts.exit.cause, facts.exit
    if cause is ExitCause.MEMORY:
        return _limit(Status.MEMORY, facts)
    if cause is ExitCause.CPU:
        return _limit(Status.CPU, facts)
    if cause is ExitCause.DEADLINE:
        return _limit(Status.TIMEOUT, facts)
    if facts.fault:
        text = f"the sandbox broke the bridge's protocol and was killed: {facts.fault}"
        return Verdict(status=Status.KILLED, error=ErrorInfo(code="protocol_error", message=text))
    if facts.stream_broken:
        error = ErrorInfo(
            code="bridge_closed",
            message="the sandbox closed its stream to the bridge before the script's end",
        )
        return Verdict(status=Status.KILLED, error=error)
    if cause is ExitCause.EXITED and report.signal is not None:
        return Verdict(status=Status.KILLED, error=_signalled(report.signal))
    if cause is ExitCause.EXITED and report.exit_code == 0:
        warning = Warning(
            code="left_early",
            message="the script ended its process by itself; text that Python still held "
            "was not printed",
        )
        return Verdict(status=Status.OK, exit_code=0, warnings=(warning,))
    if cause is ExitCause.EXITED and report.exit_code is not None:
        error = _exited(report.exit_code)
        return Verdict(status=Status.ERROR, exit_code=report.exit_code, error=error)
    error = ErrorInfo(
        code="sandbox_lost",
        message="the sandbox is gone, and no limit explains it",
        hint="try again; calls that were made stay made.",
    )
    return Verdict(status=Status.KILLED, error=error)


def _limit(status: Status, facts: Facts) -> Verdict:
    """A limit that ended the execution: which, how much, what to do instead."""
    limits = facts.limits
    code, message, hint = {
        Status.TIMEOUT: (
            "wall",
            f"the script was stopped after {limits.wall:g} s",
            "do less in one script, or make calls in bulk; the state of this script is gone.",
        ),
        Status.MEMORY: (
            "memory",
            f"the sandbox passed its memory limit of {_size(limits.memory)}",
            "work through the data in smaller pieces; keep only what you need.",
        ),
        Status.CPU: (
            "cpu",
            f"the script used more than {limits.cpu_budget:g} s of CPU",
            "compute less, or let a tool do it.",
        ),
        Status.OUTPUT: (
            "output",
            f"the script printed more than {_size(limits.output_max)}",
            "print a summary; write data to a file.",
        ),
    }[status]
    return Verdict(status=status, error=ErrorInfo(code=code, message=message, hint=hint))


def _caught(facts: Facts) -> tuple[Warning, ...]:
    """A limit that was hit although the script went on and ended by itself."""
    if facts.exit.cause is ExitCause.MEMORY:
        text = f"the memory limit of {_size(facts.limits.memory)} was hit on the way"
        return (Warning(code="memory", message=text),)
    return ()


def _exited(code: int) -> ErrorInfo:
    return ErrorInfo(code="exited", message=f"the script ended with exit code {code}")


def _signalled(number: int) -> ErrorInfo:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "unknown"
    return ErrorInfo(
        code="signal", message=f"the script's process died of signal {number} ({name})"
    )


def _read(data: bytes) -> dict[str, Any]:
    try:
        report = payload.decode_strict(data)
    except payload.PayloadError:
        # A lone surrogate in the script's message, or a forged report: keep what can be kept.
        try:
            report = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            report = None
    if not isinstance(report, dict):
        return {"message": "the sandbox sent a report that cannot be read"}
    return report


def _text(value: Any) -> str:
    if not isinstance(value, str):
        return ""
    text = value.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} [...]"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _size(size: int) -> str:
    if size % (1024 * 1024) == 0:
        return f"{size // (1024 * 1024):,} MiB"
    return f"{size:,} bytes"
