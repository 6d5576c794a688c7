"""What is known of an execution at its end, put together as its result."""

from __future__ import annotations

from ..bridge.session import Execution
from .printout import Printout
from .result import (
    Artifact,
    CallSummary,
    ErrorInfo,
    ExecutionResult,
    SandboxInfo,
    Status,
    Truncation,
    UsageSummary,
    Warning,
)
from .verdict import Facts, Verdict


def sum_up(
    execution: Execution,
    verdict: Verdict,
    facts: Facts,
    printout: Printout,
    wall: float,
    info: SandboxInfo,
    inside: str | None = None,
) -> ExecutionResult:
    """The result of an execution that got a sandbox; `inside` is where a session's next script
    finds its printout."""
    counts = execution.counts
    warnings = verdict.warnings
    if printout.spool_error:
        text = f"the whole printout could not be written: {printout.spool_error}"
        warnings = (*warnings, Warning(code="spool", message=text))
    spooled = printout.spooled
    return ExecutionResult(
        execution_id=execution.id,
        status=verdict.status,
        started=verdict.started,
        exit_code=verdict.exit_code,
        printout=printout.text(),
        truncated=Truncation(
            kept=printout.kept,
            total=printout.total,
            path=str(spooled) if spooled else None,
            inside=inside if spooled else None,
        )
        if printout.truncated
        else None,
        error=verdict.error,
        calls=CallSummary(
            started=counts.started,
            succeeded=counts.succeeded,
            failed=counts.failed,
            denied=counts.denied,
            writes_applied=counts.writes_applied,
            unknown_outcome=counts.unknown_outcome,
            by_tool=dict(counts.by_tool),
        ),
        usage=UsageSummary(
            wall=wall,
            cpu=facts.exit.usage.cpu_seconds,
            memory_peak=facts.exit.usage.memory_peak,
            output_bytes=printout.total,
            result_bytes=execution.spending.result_bytes,
        ),
        artifacts=(Artifact(name="printout.txt", path=str(spooled), size=printout.total),)
        if spooled
        else (),
        warnings=warnings,
        sandbox=info,
    )


def nothing_ran(
    execution_id: str,
    status: Status,
    code: str,
    message: str,
    *,
    hint: str = "",
    faults: tuple[str, ...] = (),
) -> ExecutionResult:
    """The result of an execution that ended before there was a job."""
    return ExecutionResult(
        execution_id=execution_id,
        status=status,
        started=False,
        error=ErrorInfo(code=code, message=message, hint=hint, faults=faults),
    )
