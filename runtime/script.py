"""From what a model sent to the text of a script: fences off, newlines even, bounds kept.

Nothing here parses: the host never runs a parser over a stranger's text in its own process.
That a text is shell or prose is found where it is vetted, and told as a fault.
"""

from __future__ import annotations

import re

from .errors import LimbeckError
from .gate.shapes import is_prose

_FENCED = re.compile(
    r"\A\s*(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[^\s`{]*)[^\n]*\n(?P<body>.*?)\n?[ \t]*"
    r"(?P=fence)\s*\Z",
    re.DOTALL,
)
_BLOCK = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(?:.*?\n)?\1[ \t]*$", re.MULTILINE | re.DOTALL)
_PYTHON = frozenset({"", "py", "py3", "python", "python3", "tool_code"})


class NotPython(LimbeckError):
    """A text that is no script: `code` for machines, `message` and `hint` for the model."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        self.code = code
        self.message = message
        self.hint = hint
        super().__init__(f"{message}\nHint: {hint}")


def prepare(source: str, limit: int) -> str:
    """The script's text: no fences around it, no byte order mark, newlines as `\\n`.

    Raises NotPython for a text that is empty, larger than `limit` bytes, holds NUL or lone
    surrogates, or is fenced as another language.
    """
    size = _size(source)
    if size > limit:
        raise NotPython(
            "too_large",
            f"the script has {size:,} bytes, the limit is {limit:,}",
            "fetch data with the tools instead of writing it into the script.",
        )
    if "\0" in source:
        line = source.count("\n", 0, source.index("\0")) + 1
        raise NotPython(
            "not_text", f"line {line} holds a NUL character", "write \\0 in a string literal."
        )
    text = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = _without_fences(text)
    if not text.strip():
        raise NotPython("empty", "the script is empty", "send Python code that prints its result.")
    return text


def _size(source: str) -> int:
    try:
        return len(source.encode())
    except UnicodeEncodeError as error:
        line = source.count("\n", 0, error.start) + 1
        character = f"U+{ord(source[error.start]):04X}"
        raise NotPython(
            "not_text",
            f"line {line} holds half a character ({character}, a lone surrogate)",
            "send valid Unicode text, or write it as an escape in a string literal.",
        ) from None


def _without_fences(text: str) -> str:
    fenced = _FENCED.match(_only_block(text))
    if fenced is None:
        return text
    language = fenced["language"].lower()
    if language not in _PYTHON:
        raise NotPython(
            "not_python",
            f"the script is fenced as {language[:20]!r}, not Python",
            "write it in Python; there is no shell and no other interpreter.",
        )
    return fenced["body"]


def _only_block(text: str) -> str:
    """The one fenced block of a text that begins with prose; any other text as it is."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    blocks = list(_BLOCK.finditer(text)) if is_prose(first.strip()) else []
    return blocks[0].group() if len(blocks) == 1 else text
