"""Snippets of Python in one text file, each under a line `# --- name | label | label`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent
_MARK = "# --- "


@dataclass(frozen=True)
class Snippet:
    name: str
    labels: tuple[str, ...]
    source: str


def read(path: str) -> list[Snippet]:
    """The snippets of a file, in order."""
    text = (_FOLDER / path).read_text(encoding="utf-8")
    snippets = []
    for part in text.split(f"\n{_MARK}"):
        head, _, source = part.removeprefix(_MARK).partition("\n")
        name, *labels = (word.strip() for word in head.split("|"))
        snippets.append(Snippet(name, tuple(labels), source + "\n"))
    return snippets
