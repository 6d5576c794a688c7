"""A model's text made a script: fences removed, and what is no Python told apart.

Only a text that does not parse, or that holds nothing but names, is looked at for what else it may
be: a script that does something is never refused for its looks.
"""

from __future__ import annotations

import ast
import re

from .errors import LimbeckError

_FENCED = re.compile(
    r"\A[^\S\n]*(?P<fence>```+|~~~+)[^\S\n]*[\w+.-]*[^\n]*\n(?P<body>.*?)\n?[^\S\n]*(?P=fence)\s*\Z",
    re.DOTALL,
)
_FENCED_INSIDE = re.compile(r"^(```+|~~~+)[^\S\n]*[\w+.-]*[^\n]*\n(.*?)^\1[^\S\n]*$", re.M | re.S)
_SHELL = re.compile(
    r"\s*(#!.*\b(ba|z|da)?sh\b|[$%#]\s+\w|(ls|cd|cat|pip3?|npm|npx|curl|wget|git|echo|mkdir|rm|cp|mv|"
    r"sudo|apt(-get)?|grep|find|chmod|export|python3?|bash|sh|which|pwd|head|tail|sed|awk|touch)"
    r"(\s+[\w./~$'\"*&|>-]|\s*$))"
)

_PROSE = re.compile(r"[\w,.;:'!?\"() -]+$")
_CODE = re.compile(
    r"\w\(|[\w\])]\s*[-+*/|&]?=[^=]|^\s*(import|from|def|class|for|while|if|with|try)\b.*[:(]\s*$"
)


class NotPython(LimbeckError):
    """The text is no script at all: nothing of it can be vetted."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(f"{message}: {hint}")
        self.code = code
        """A stable word: empty, too_large, not_text, not_python."""
        self.message = message
        self.hint = hint


def prepare(text: str, limit: int) -> str:
    """The script in a model's text, at most `limit` bytes. Raises NotPython."""
    _check_text(text, limit)
    source = _without_fence(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"))
    if not source.strip():
        raise NotPython("empty", "the script is empty", "send Python source.")
    if not _parses(source) or _only_names(source):
        _check_kind(source)
    return source


def _check_text(text: str, limit: int) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        hint = "send plain Unicode text."
        raise NotPython("not_text", "the script holds a lone surrogate", hint) from None
    if size > limit:
        message = f"the script has {size:,} bytes, the limit is {limit:,}"
        raise NotPython("too_large", message, "pass data through tools, not in the source.")
    if "\0" in text:
        raise NotPython("not_text", "the script holds a NUL character", "remove it.")


def _without_fence(source: str) -> str:
    match = _FENCED.match(source.strip())
    if match is not None:
        return match.group("body") + "\n"
    if _parses(source):
        return source
    blocks = _FENCED_INSIDE.findall(source)
    # One block in prose is what was meant; of several nobody knows which.
    return blocks[0][1] if len(blocks) == 1 else source


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _only_names(source: str) -> bool:
    """A text that Python can read and that does nothing: `ls -la /data` is a subtraction."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(
        isinstance(
            node,
            ast.Module
            | ast.Expr
            | ast.BinOp
            | ast.UnaryOp
            | ast.Name
            | ast.operator
            | ast.unaryop
            | ast.expr_context
            | ast.Attribute,
        )
        for node in ast.walk(tree)
    )


def _check_kind(source: str) -> None:
    first = next(line for line in source.splitlines() if line.strip())
    if _SHELL.match(first):
        raise NotPython(
            "not_python",
            f"this is shell text, not Python ({_short(first)})",
            "write Python: print(open('/data/x.csv').read()) instead of `cat /data/x.csv`.",
        )
    if source.lstrip()[:1] in "{[<":
        raise NotPython(
            "not_python",
            f"this is data or markup, not Python ({_short(first)})",
            "write a Python script that uses it.",
        )
    if _is_prose(source):
        raise NotPython(
            "not_python",
            f"this is prose, not Python ({_short(first)})",
            "send the script alone; put remarks in comments.",
        )


def _is_prose(source: str) -> bool:
    """Mostly lines of several words, with nothing that only code has."""
    lines = [line.strip() for line in source.splitlines() if line.strip()]
    wordy = [line for line in lines if _PROSE.match(line) and _words(line) > 3]
    return len(wordy) * 2 > len(lines) and not any(map(_CODE.search, lines))


def _words(line: str) -> int:
    return len(re.findall(r"[^\W\d_]{2,}", line))


def _short(line: str) -> str:
    line = line.strip()
    return line if len(line) <= 60 else f"{line[:57]}..."
