"""Names as a script may write them: identifiers as Python keeps them, none that is refused.

Python normalises identifiers (NFKC): two names that become one there must be one here already, or a
tool could not be called by the name that its stub shows. The gate refuses some attribute names; a
tool or toolset that has one gets a trailing `_`, as one with a keyword's name does.
"""

from __future__ import annotations

import keyword
import sys
import unicodedata
from collections.abc import Iterable

from ..runtime.errors import TOOL_ERRORS, ConfigurationError
from ..runtime.gate.names import attribute_problem

RESERVED = frozenset({"search", "describe", "call_many", "emit", "aio", "help"})
"""Names of helpers in the `tools` package; a toolset of that name gets a trailing `_`."""

MAX_NAME = 100
"""Characters of a tool's or toolset's name: a toolset's is a file's name too."""

_ERRORS = frozenset(cls.__name__ for cls in TOOL_ERRORS.values())
"""Classes that the `tools` package offers."""


def module_name(name: str) -> str:
    """A toolset's name as a module's: reserved names get a trailing `_`."""
    made = member_name(name)
    if made in RESERVED or made in sys.stdlib_module_names or made in _ERRORS:
        return f"{made}_"
    return made


def member_name(name: str) -> str:
    """A tool's name as an identifier that a script may write after a dot.

    Other characters become `_`; keywords, and what the gate refuses, get a `_` behind.
    """
    made = _identifier(name, "n")
    if not made:
        raise ConfigurationError(
            ascii(name)[:80], "it is not a name", "use letters, digits and underscores."
        )
    if len(made) > MAX_NAME:
        raise ConfigurationError(
            f"{ascii(made)[:40]}...",
            f"the name has {len(made):,} characters, the limit is {MAX_NAME}",
            "shorten it.",
        )
    refused = keyword.iskeyword(made) or keyword.issoftkeyword(made) or attribute_problem(made)
    return f"{made}_" if refused else made


def parameter_names(names: Iterable[str]) -> dict[str, str]:
    """Each parameter's name in the stub: an identifier, no keyword, no two alike."""
    made: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        base = _identifier(name, "p") or "p"
        candidate = f"{base}_" if keyword.iskeyword(base) else base
        while candidate in taken:
            candidate += "_"
        taken.add(candidate)
        made[name] = candidate
    return made


def _identifier(text: str, prefix: str) -> str:
    """The text as an identifier without an underscore in front, or an empty string."""
    normal = unicodedata.normalize("NFKC", text)
    made = "".join(one if f"a{one}".isidentifier() else "_" for one in normal).lstrip("_")
    if made and not made.isidentifier():
        # What cannot begin a name may melt into the letter before it.
        made = unicodedata.normalize("NFKC", prefix + made)
    return made
