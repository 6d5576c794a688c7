"""Text from strangers, made harmless to look at.

Control, ANSI, bidi and zero-width characters can hide or reorder what a person or a model reads.
They are shown as escapes (`\\u202e`), never dropped, so that nothing disappears.
"""

from __future__ import annotations

import re

_HARMFUL = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u00ad\u061c\u180e"  # soft hyphen, Arabic letter mark, Mongolian vowel separator
    "\u200b-\u200f\u2028-\u202f\u2060-\u206f"  # zero width, bidi, line separators, invisibles
    "\ufeff\ufff9-\ufffb"  # byte order mark, interlinear annotation
    "\ud800-\udfff"  # lone surrogates
    "\U000e0000-\U000e0fff"  # tags and variation selectors beyond the usual ones
    "]"
)


def neutralise(text: str) -> str:
    """The text with every harmful character as an escape; tab and newline stay."""
    return _HARMFUL.sub(_escaped, text.replace("\r\n", "\n"))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
