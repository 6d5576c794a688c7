"""The whole error tree, and the table between a wire code and its class.

    LimbeckError
     |- ConfigurationError        operator: a key, an option or a toolset that cannot work
     |- SandboxUnavailable        operator: no backend can run here; nothing ran
     |- SandboxLost               nobody: the sandbox went away; the result says what was done
     |- ProtocolError             hostile or mismatched peer; the stream is ended
     `- ToolError                 every failed call; .code .tool .message .hint .retryable .details
         |- UnknownTool           model: also what is out of scope
         |- InvalidArguments      model: all faults at once
         |- ApprovalDenied, ApprovalRequired, ApprovalExpired, ProposalRecorded      human
         |- RateLimited(.retry_after), CircuitOpen(.retry_after)                     model: later
         |- BudgetExceeded(.budget, .used, .limit)                                   model: stop
         |- RepeatedCall          model: change something
         |- ToolTimeout, ToolFailed(.error), ResultInvalid, ResultTooLarge           the tool
         `- BridgeClosed          the execution is over

An error is built from its subject, not from a text. `to_wire` and `from_wire` are the only ways
over the bridge: a class travels as its code, its fields as `details`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class LimbeckError(Exception):
    """Root of everything limbeck raises."""


class ConfigurationError(LimbeckError):
    """A setting that cannot work; the message names the key and the mend."""

    def __init__(self, key: str, problem: str, hint: str = "") -> None:
        self.key = key
        self.problem = problem
        self.hint = hint
        super().__init__(f"{key}: {problem}" + (f"\nHint: {hint}" if hint else ""))


class SandboxUnavailable(LimbeckError):
    """No backend can start a sandbox here. Nothing ran."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        self.reasons = dict(reasons)
        """Backend name to what is wrong and how to mend it."""
        super().__init__("; ".join(f"{name}: {text}" for name, text in self.reasons.items()))


class SandboxLost(LimbeckError):
    """The sandbox ended without a report and without a limit that explains it."""


class ProtocolError(LimbeckError):
    """The peer broke the protocol, or speaks another version of it."""


class ToolError(LimbeckError):
    """A tool call that did not return a value."""

    code: ClassVar[str] = "tool_error"
    retryable: bool = False

    def __init__(
        self, tool: str, message: str, *, hint: str = "", details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.tool = tool
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})

    def __str__(self) -> str:
        text = f"{self.tool}: {self.message}" if self.tool else self.message
        return f"{text}\nHint: {self.hint}" if self.hint else text

    def __getattr__(self, name: str) -> Any:
        # The subject's own fields (.retry_after, .budget, ...) live in `details`, so that they
        # cross the wire without a table per class. Dunder names are never there.
        details = self.__dict__.get("details")
        if details is not None and name in details:
            return details[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        # Built from a subject, not from `args`: copies and pickles keep the fields instead.
        return _restored, (type(self), self.args, dict(self.__dict__))


class UnknownTool(ToolError):
    """No such tool in this session. Out of scope looks the same: a schema must not leak."""

    code = "unknown_tool"

    def __init__(self, tool: str, near: Sequence[str] = ()) -> None:
        hint = f"did you mean {_one_of(near)}?" if near else "list the tools with dir(tools)."
        super().__init__(tool, "there is no such tool", hint=hint, details={"near": list(near)})


class InvalidArguments(ToolError):
    """Arguments that break the tool's schema: every fault at once."""

    code = "invalid_arguments"

    def __init__(
        self, tool: str, problems: Sequence[str], parameters: Sequence[str] | None = None
    ) -> None:
        message = "invalid arguments: " + "; ".join(problems)
        hint = ""
        if parameters is not None:
            names = ", ".join(parameters) if parameters else "none"
            hint = f"the parameters of {tool} are: {names}."
        details = {"problems": list(problems), "parameters": list(parameters or ())}
        super().__init__(tool, message, hint=hint, details=details)


class ApprovalDenied(ToolError):
    """A person, or the operator's rule, said no."""

    code = "approval_denied"

    def __init__(self, tool: str, reason: str = "") -> None:
        message = "the call was not approved" + (f": {reason}" if reason else "")
        hint = "do not try it again; report to the user."
        super().__init__(tool, message, hint=hint, details={"reason": reason})


class ApprovalRequired(ToolError):
    """The call needs a person's approval and nobody is there to ask."""

    code = "approval_required"

    def __init__(self, tool: str) -> None:
        super().__init__(
            tool,
            "this call needs approval, and nobody is there to give it; it was not made",
            hint="finish without it and tell the user which call is waiting for approval.",
        )


class ApprovalExpired(ToolError):
    """Nobody answered in time."""

    code = "approval_expired"

    def __init__(self, tool: str, seconds: float) -> None:
        super().__init__(
            tool,
            f"nobody approved the call within {seconds:g} s; it was not made",
            hint="tell the user that the call still waits for approval.",
            details={"seconds": seconds},
        )


class ProposalRecorded(ToolError):
    """A suggest-only tool: the call is recorded for a person, not made."""

    code = "proposal_recorded"

    def __init__(self, tool: str, proposal_id: str) -> None:
        super().__init__(
            tool,
            f"recorded as proposal {proposal_id}; it was not made",
            hint="name the proposal to the user.",
            details={"proposal_id": proposal_id},
        )


class RateLimited(ToolError):
    """Too many calls of this kind for now; `retry_after` is in seconds."""

    code = "rate_limited"
    retryable = True

    def __init__(self, tool: str, retry_after: float, *, resting: float | None = None) -> None:
        reason, instead = "too many calls", "ask for more in one call"
        details = {"retry_after": retry_after}
        if resting is not None:
            reason = f"this tool rests for {resting:g} s between two calls"
            instead = "finish without it"
            details["cooldown_seconds"] = resting
        super().__init__(
            tool,
            f"{reason}; free again in {retry_after:.1f} s",
            hint=f"wait {retry_after:.1f} s, or {instead}.",
            details=details,
        )


class CircuitOpen(ToolError):
    """The tool fails so often that it is left alone for now; `retry_after` is in seconds."""

    code = "circuit_open"
    retryable = True

    def __init__(self, tool: str, retry_after: float) -> None:
        super().__init__(
            tool,
            f"the tool keeps failing and is left alone for {retry_after:.1f} s",
            hint="go on without it, or report the failure to the user.",
            details={"retry_after": retry_after},
        )


class BudgetExceeded(ToolError):
    """A budget of this execution or session is spent."""

    code = "budget_exceeded"

    def __init__(self, tool: str, budget: str, used: int, limit: int) -> None:
        super().__init__(
            tool,
            f"the budget of {budget} is spent: {used:,} of {limit:,}",
            hint="print what you have, and do the rest with fewer calls.",
            details={"budget": budget, "used": used, "limit": limit},
        )


class RepeatedCall(ToolError):
    """The same call failed the same way again and again."""

    code = "repeated_call"

    def __init__(self, tool: str, times: int) -> None:
        super().__init__(
            tool,
            f"this very call has failed {times} times",
            hint="change the arguments, or stop and report to the user.",
            details={"times": times},
        )


class ToolTimeout(ToolError):
    """The handler took longer than its timeout, or did not get its turn before that."""

    code = "tool_timeout"
    retryable = True

    def __init__(self, tool: str, seconds: float, *, begun: bool = True) -> None:
        message = f"no answer within {seconds:g} s"
        hint = "ask for less at a time, or go on without it."
        if not begun:
            message = f"its turn did not come within {seconds:g} s; it was not run"
            hint = "make fewer calls at a time, or go on without it."
        details = {"seconds": seconds, "begun": begun}
        super().__init__(tool, message, hint=hint, details=details)


class ToolFailed(ToolError):
    """The tool's own structured error. A handler raises it: `ToolFailed("not_shipped", "...")`."""

    code = "tool_failed"

    def __init__(
        self,
        error: str,
        message: str,
        *,
        hint: str = "",
        retryable: bool = False,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__("", message, hint=hint, details={**(details or {}), "error": error})
        self.retryable = retryable


class ResultInvalid(ToolError):
    """The tool answered something that breaks its own schema: a bug of the tool."""

    code = "result_invalid"

    def __init__(self, tool: str, problems: Sequence[str]) -> None:
        super().__init__(
            tool,
            "the tool's answer breaks its own schema: " + "; ".join(problems),
            hint="this is a fault of the tool; report it to the user.",
            details={"problems": list(problems)},
        )


class ResultTooLarge(ToolError):
    """The tool's answer is larger than one result may be; sizes are in bytes."""

    code = "result_too_large"

    def __init__(self, tool: str, size: int, limit: int) -> None:
        super().__init__(
            tool,
            f"the answer has {size:,} bytes, the limit is {limit:,}",
            hint="ask for fewer rows or fields at a time.",
            details={"size": size, "limit": limit},
        )


class BridgeClosed(ToolError):
    """The execution is over, or its host is gone."""

    code = "bridge_closed"

    def __init__(self, tool: str = "") -> None:
        super().__init__(tool, "the execution is over; no more calls are served")


TOOL_ERRORS: dict[str, type[ToolError]] = {
    cls.code: cls
    for cls in (
        ToolError,
        UnknownTool,
        InvalidArguments,
        ApprovalDenied,
        ApprovalRequired,
        ApprovalExpired,
        ProposalRecorded,
        RateLimited,
        CircuitOpen,
        BudgetExceeded,
        RepeatedCall,
        ToolTimeout,
        ToolFailed,
        ResultInvalid,
        ResultTooLarge,
        BridgeClosed,
    )
}
"""Wire code to class: the classes that a script can catch by name."""


def to_wire(error: ToolError) -> dict[str, Any]:
    """The JSON form of an error; `from_wire` is its inverse."""
    return {
        "code": error.code,
        "tool": error.tool,
        "message": error.message,
        "hint": error.hint,
        "retryable": error.retryable,
        "details": error.details,
    }


def from_wire(data: Mapping[str, Any]) -> ToolError:
    """Rebuild an error from its JSON form; an unknown code becomes a plain ToolError."""
    cls = TOOL_ERRORS.get(str(data.get("code")), ToolError)
    error = cls.__new__(cls)
    ToolError.__init__(
        error,
        str(data.get("tool", "")),
        str(data.get("message", "")),
        hint=str(data.get("hint", "")),
        details=data.get("details") or {},
    )
    error.retryable = bool(data.get("retryable", False))
    return error


def _restored(cls: type[ToolError], args: tuple[Any, ...], fields: Mapping[str, Any]) -> ToolError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(fields)
    return error


def _one_of(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
