"""What a text that does not parse looks like: shell, prose, JSON, Markdown, another language.

Asked only after the parser has refused the text; what parses is Python, whatever it looks like.
"""

from __future__ import annotations

# ruff: noqa: SIM905 - a table of words reads best as text
import keyword
import re

from .faults import MAX_LINE, Fault

_SHELL_WORDS = (
    "apt apt-get awk bash brew cat cd chmod chown conda cp curl cut df docker du echo env export "
    "find git grep head kill kubectl less ln ls mkdir mv node npm npx pip pip3 ps pwd python "
    "python3 rm sed sh sort source ssh sudo tail tar touch uniq uv wc wget which xargs"
).split()
_SHELL = re.compile(
    rf"(?:\$ |(?:{'|'.join(map(re.escape, _SHELL_WORDS))})(?:\s+[^=(.\[:,\s]|\s*$|\s*&&))"
)
_JSON = re.compile(r'\s*[{\[]\s*(?:"(?:[^"\\\n]|\\.)*"\s*[:,\]]|[{\[]\s*")')
_FENCE = re.compile(r"^\s*(?:```|~~~)", re.MULTILINE)
_SCRIPT = re.compile(r"\s*(?:const|let|var|function)\s+\w+|.*\bconsole\.log\(|\s*#include\b")
_WORDS = re.compile(r"[A-Za-z][\w'’,;-]*(?:\s+[\w'’\",;()-]+){3,}\s*[.:!?]?\s*$")

_SHELL_HINT = "write it in Python; there is no shell, call the tools from `tools`"
_PYTHON_HINT = "send Python code alone; put remarks into # comments"


def shape_of(source: str) -> Fault | None:
    """A fault that says what the text is instead of Python, if that is plain to see."""
    lines = source.split("\n")
    number, line = next(((n, text) for n, text in enumerate(lines, 1) if text.strip()), (1, ""))
    found = _guess(line.strip(), source)
    if found is None:
        return None
    what, hint = found
    return Fault(
        line=number,
        column=1,
        message=f"{what}, not Python",
        hint=hint,
        source_line=line.rstrip()[:MAX_LINE],
    )


def _guess(line: str, source: str) -> tuple[str, str] | None:
    if line.startswith("#!") and "python" not in line:
        return "this is a script for another interpreter", _SHELL_HINT
    if line.startswith(("!", "%")):
        return "this is a notebook command", "there is no notebook and no pip; write plain Python"
    if _FENCE.search(source):
        return "this is Markdown", "send the code alone, or in one fenced block and nothing else"
    if _JSON.match(source):
        return "this is JSON", "send a script; data can stand in it as a literal"
    if _SHELL.match(line):
        return "this is a shell command", _SHELL_HINT
    if _SCRIPT.match(line):
        return "this is another language", "write it in Python"
    return ("this is prose", _PYTHON_HINT) if is_prose(line) else None


def is_prose(line: str) -> bool:
    """Several words in a row, as no line of Python has them."""
    if not _WORDS.match(line) or keyword.iskeyword(line.split()[0]):
        return False
    ends = line.rstrip().endswith((".", "!", "?"))
    return line[0].isupper() or ends or len(line.split()) > 6
