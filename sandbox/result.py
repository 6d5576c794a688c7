"""The seam of the result: what one execute_code gave, and the one text of it for the model."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from ..runtime.text import neutralise

MODEL_CHARACTERS = 8_000
"""Default bound of `ExecutionResult.for_model`."""


class Status(StrEnum):
    """How an execution ended."""

    OK = "ok"
    ERROR = "error"
    REFUSED = "refused"
    """By the gate: nothing ran."""
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CPU = "cpu"
    OUTPUT = "output"
    PIDS = "pids"
    KILLED = "killed"
    CANCELLED = "cancelled"
    UNAVAILABLE = "unavailable"
    """No sandbox could start: nothing ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """The printout was longer than what is kept."""

    kept: int
    """Bytes in `printout`."""
    total: int
    """Bytes printed."""
    path: str | None
    """File on the host that holds the whole, when there is one."""
    inside: str | None = None
    """Where the session's next script finds the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """Why a status is not ok."""

    code: str
    """A stable word: "exception", "wall", "signal", a ToolError's code, ..."""
    message: str
    type: str = ""
    """Class of the exception."""
    line: int | None = None
    source: str = ""
    hint: str = ""
    traceback: str = ""
    """The script's own frames with their source lines."""
    faults: tuple[str, ...] = ()
    """All that the gate refused, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warning:
    """Something the caller should know although the status does not say it."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSummary:
    """Tool calls as the bridge counted them."""

    started: int = 0
    succeeded: int = 0
    failed: int = 0
    denied: int = 0
    writes_applied: int = 0
    repeated_writes: int = 0
    unknown_outcome: int = 0
    by_tool: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSummary:
    """What the execution used."""

    wall: float = 0.0
    """Seconds from the job's start to its end."""
    cpu: float = 0.0
    """Seconds, by the host's accounting, with the sandbox's own start."""
    memory_peak: int | None = None
    """Bytes; None where nobody measured."""
    output_bytes: int = 0
    result_bytes: int = 0
    """Of tool results that went into the sandbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that the execution left, on the host."""

    name: str
    path: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxInfo:
    """Where it ran."""

    backend: str = ""
    start: str = ""
    """warm, cold or queued; kept when a session went on."""
    memory_limit: str = ""
    """How memory is limited: "cgroup v2", "cgroup v1", "watcher" or "none"."""
    image: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionResult:
    """Every field is there whatever happened."""

    execution_id: str
    status: Status
    started: bool
    """The script began to run."""
    exit_code: int | None = None
    printout: str = ""
    """What was printed before the end, head and tail when there was too much."""
    truncated: Truncation | None = None
    error: ErrorInfo | None = None
    calls: CallSummary = field(default_factory=CallSummary)
    usage: UsageSummary = field(default_factory=UsageSummary)
    artifacts: tuple[Artifact, ...] = ()
    artifacts_lost: bool = False
    emitted: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[Warning, ...] = ()
    sandbox: SandboxInfo = field(default_factory=SandboxInfo)
    session_id: str | None = None
    """Of the session that it belongs to; None without one."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)

    def for_model(self, characters: int = MODEL_CHARACTERS) -> str:
        """The one text that enters a model's context, at most `characters` long.

        The printout comes first, then what went wrong and what was done. The error is kept whole
        as far as it fits; the printout gives way, head and tail kept, counts given. The script is
        never repeated, except for the lines of its traceback. Control, bidi and zero-width
        characters are shown as escapes.
        """
        after = cut_middle(neutralise("\n".join(self.remarks())), max(characters * 3 // 4, 1))
        room = characters - len(after) - (1 if after else 0)
        printout = cut_middle(neutralise(self.printout.rstrip("\n")), max(room, 0))
        text = "\n".join(part for part in (printout, after) if part)
        return text[:characters] or "(the script finished and printed nothing)"[:characters]

    def remarks(self) -> list[str]:
        """What there is to say besides the printout: cuts, failure, warnings. Not neutralised."""
        lines = []
        if self.truncated is not None:
            inside = self.truncated.inside
            lines.append(
                f"[printout cut: {self.truncated.kept:,} of {self.truncated.total:,} bytes kept"
                f"{'; the script finished' if self.status is Status.OK else ''}"
                f"{f'; the whole is in {inside} for the next script' if inside else ''}]"
            )
        if self.status is not Status.OK:
            lines += self._failure()
        lines += [f"[warning: {warning.message}]" for warning in self.warnings]
        return lines

    def _failure(self) -> list[str]:
        lines = [f"[{self.status}]"]
        if self.error is not None:
            trace = self.error.traceback
            lines[0] += f"\n{trace}" if trace else f" {self.error.message}"
            lines += self.error.faults
            if self.error.hint:
                lines.append(f"Hint: {self.error.hint}")
        if not self.started:
            lines.append("Nothing ran.")
        elif self.calls.started:
            lines.append(self._calls_done())
        return lines

    def _calls_done(self) -> str:
        calls = self.calls
        text = f"Tool calls before that: {calls.succeeded:,} succeeded"
        for count, word in (
            (calls.failed, "failed"),
            (calls.denied, "denied"),
            (calls.writes_applied, "of them writes that are applied"),
            (calls.unknown_outcome, "with unknown outcome"),
        ):
            text += f", {count:,} {word}" if count else ""
        return f"{text}."


def cut_middle(text: str, characters: int) -> str:
    """At most `characters` of a text: head and tail, and how much is left out between them."""
    if len(text) <= characters:
        return text
    note = f"\n[... {len(text):,} characters in all, the middle is left out ...]\n"
    room = characters - len(note)
    if room <= 0:
        return text[:characters]
    tail = room // 2
    return f"{text[: room - tail]}{note}{text[len(text) - tail :] if tail else ''}"
