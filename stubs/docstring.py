"""Docstrings in Google, NumPy or reST style: the description, and one text a parameter."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Doc:
    """What a docstring says."""

    description: str = ""
    """Summary and body, without the sections that are understood elsewhere."""
    parameters: dict[str, str] = field(default_factory=dict)
    returns: str = ""


def read_docstring(text: str) -> Doc:
    """Parse a function's docstring; one that cannot be parsed is a description as it stands."""
    if not text.strip():
        return Doc()
    # Slow to import, and needed only while tools are made.
    from griffe import Docstring, Parser

    logging.getLogger("griffe").setLevel(logging.CRITICAL)
    sections = Docstring(text, lineno=1).parse(_style(text, Parser), warnings=False)
    description, parameters, returns = [], {}, ""
    for section in sections:
        if section.kind.value == "parameters":
            for item in section.value:
                parameters[item.name.lstrip("*")] = _flat(item.description)
        elif section.kind.value in ("returns", "yields"):
            returns = _flat(" ".join(item.description for item in section.value))
        elif section.kind.value == "text":
            description.append(section.value.strip())
    return Doc(description="\n\n".join(description).strip(), parameters=parameters, returns=returns)


def _style(text: str, parser: Any) -> Any:
    if ":param " in text or ":returns:" in text or ":return:" in text:
        return parser.sphinx
    underlined = any(line.strip() and set(line.strip()) == {"-"} for line in text.splitlines()[1:])
    return parser.numpy if underlined else parser.google


def _flat(text: str) -> str:
    return " ".join(text.split())
