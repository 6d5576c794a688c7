"""How a script failed, as plain data: the script's own frames and source lines, one hint."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Sequence
from typing import Any

from .errors import ToolError
from .gate import Fault, shown

SCRIPT = "<script>"
"""File name of the script in tracebacks; that of a session's first one."""

MAX_FRAMES = 20
"""Frames that a report keeps, half from each end."""

MAX_LEAVES = 5
"""Exceptions of a group that are shown."""

MAX_LEAF_FRAMES = 3
"""Frames of each of them, the innermost."""

MAX_LEAF_TEXT = 300
"""Characters of the message of each of them."""

MAX_TEXT = 4_000
"""Characters of one message."""


def file_name(number: int) -> str:
    """The name in tracebacks of the script of a session's job number `number`."""
    return SCRIPT if number <= 1 else f"<script {number}>"


def of_exception(error: BaseException, script: str = SCRIPT) -> dict[str, Any]:
    """Type, message, line, source, hint and traceback of an exception that `script` did not catch.

    The line is the script's own, even where a function of an earlier script raised.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_script(frame)]
    own = [frame for frame in frames if frame.filename == script]
    line, source = (own[-1].lineno, own[-1].line) if own else (None, "")
    if isinstance(error, SyntaxError) and error.filename == script:
        line, source = error.lineno, (error.text or "").strip()
    kind = type(error).__name__
    message = _bounded(_message(error))
    return {
        "code": _code(error),
        "type": kind,
        "message": message,
        "line": line,
        "source": _bounded(source or ""),
        "hint": _hint(error),
        "traceback": _render(frames, f"{kind}: {message}" if message else kind, error, script),
    }


def of_refusal(faults: Sequence[Fault]) -> dict[str, Any]:
    """The gate's refusal inside the sandbox, in the host's form."""
    return {"code": "refused", "faults": [str(fault) for fault in faults]}


def _is_script(frame: traceback.FrameSummary) -> bool:
    return frame.filename == SCRIPT or frame.filename.startswith("<script ")


def _place(frame: traceback.FrameSummary, script: str) -> str:
    """Where a frame is; one of an earlier script of the session says so."""
    if frame.filename == script:
        return f"line {frame.lineno}, in {frame.name}"
    number = frame.filename[len("<script ") : -1] or "1"
    return f"line {frame.lineno} of the session's script {number}, in {frame.name}"


def _message(error: BaseException) -> str:
    if isinstance(error, ToolError):
        return f"{error.tool}: {error.message}" if error.tool else error.message
    try:
        # Private attributes are compiled under other names: the script's own is shown.
        return shown(str(error))
    except BaseException as broken:  # the script's own __str__ may do anything
        return f"<{type(broken).__name__} in __str__>"


def _code(error: BaseException) -> str:
    """A stable word for the kinds of end that the host gives a status of their own."""
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return "pids"
    if isinstance(error, BlockingIOError) and error.errno == errno.EAGAIN:
        return "pids"  # fork: the worker has no non-blocking descriptor of its own
    if isinstance(error, ToolError):
        return error.code
    return "exception"


_HINTS: dict[type[BaseException], str] = {
    MemoryError: "work through the data in smaller pieces; keep only what you need.",
    RecursionError: "use a loop, or a list as a stack.",
    ModuleNotFoundError: "use the standard library and the tools; nothing can be installed.",
    KeyboardInterrupt: "the script was interrupted.",
}


def _hint(error: BaseException) -> str:
    if isinstance(error, ToolError):
        return error.hint
    for cls, hint in _HINTS.items():
        if isinstance(error, cls):
            return hint
    if _code(error) == "pids":
        return "start fewer threads or processes at a time."
    return ""


def _render(
    frames: Sequence[traceback.FrameSummary], last: str, error: BaseException, script: str
) -> str:
    kept = list(frames)
    left_out = len(kept) - MAX_FRAMES
    lines = []
    for index, frame in enumerate(kept):
        if left_out > 0 and MAX_FRAMES // 2 <= index < MAX_FRAMES // 2 + left_out:
            if index == MAX_FRAMES // 2:
                lines.append(f"  ... {left_out} frames")
            continue
        lines.append(f"  {_place(frame, script)}")
        if frame.line:
            lines.append(f"    {_bounded(frame.line)}")
    cause = error.__cause__
    if cause is not None:
        lines.append(f"  caused by {type(cause).__name__}: {_bounded(_message(cause))}")
    return "\n".join([*lines, last, *_leaves(error, script)])


def _leaves(error: BaseException, script: str) -> list[str]:
    """What an exception group holds: how many, and the first few with their own frames."""
    if not isinstance(error, BaseExceptionGroup):
        return []
    count = 0
    kept: list[BaseException] = []
    # A group may hold groups, as deep as the script made them: no recursion here.
    waiting: list[BaseException] = [error]
    while waiting:
        one = waiting.pop()
        if isinstance(one, BaseExceptionGroup):
            waiting += reversed(one.exceptions)
            continue
        count += 1
        if len(kept) < MAX_LEAVES:
            kept.append(one)
    lines = [f"  {count} exceptions in the group:" if count > 1 else "  1 exception in the group:"]
    for number, leaf in enumerate(kept, 1):
        frames = [frame for frame in traceback.extract_tb(leaf.__traceback__) if _is_script(frame)]
        last = _last_frames(frames, script)
        lines += [f"  {number}. {_named(leaf)}", *(f"  {line}" for line in last)]
    if count > len(kept):
        lines.append(f"  ... {count - len(kept)} more")
    return lines


def _named(error: BaseException) -> str:
    message = _message(error)
    short = message if len(message) <= MAX_LEAF_TEXT else f"{message[:MAX_LEAF_TEXT]} ..."
    return f"{type(error).__name__}: {short}" if short else type(error).__name__


def _last_frames(frames: Sequence[traceback.FrameSummary], script: str) -> list[str]:
    lines = []
    for frame in frames[-MAX_LEAF_FRAMES:]:
        lines.append(f"  {_place(frame, script)}")
        if frame.line:
            lines.append(f"    {frame.line[:MAX_LEAF_TEXT]}")
    return lines


def _bounded(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[: MAX_TEXT // 2]} ... {text[-MAX_TEXT // 2 :]}"
