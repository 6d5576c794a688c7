"""Library classes that no script can change: `json.JSONEncoder.encode = f` is a TypeError.

SAFETY: the classes are one and the same for the script and for the runtime around it; a method that
the script replaced would be handed the runtime's own objects. Python knows a flag for classes that
cannot be changed and no way to set it but in the class object itself. Where the flags do not stand
where they are expected, the class is left as it is.
"""

from __future__ import annotations

import _ctypes
import sys
from typing import Any

_IMMUTABLE = 1 << 8
_HEAP = 1 << 9
_FLAGS_OFFSET = 21 * 8
"""Of tp_flags: the twenty-second word of a class object, on a 64-bit Python with the GIL."""

_RUNTIME = __name__.partition(".")[0]
_MRO = type.__dict__["__mro__"].__get__
_FLAGS = type.__dict__["__flags__"].__get__
_MODULE = type.__dict__["__module__"].__get__


class _Word(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "L"


def freeze(value: Any) -> None:
    """Close a class of the library or the runtime, and its bases; anything else stays."""
    if not isinstance(value, type):
        return
    for cls in _MRO(value):
        flags = _FLAGS(cls)
        if flags & _HEAP and not flags & _IMMUTABLE and is_of_library(cls):
            word = _Word.from_address(id(cls) + _FLAGS_OFFSET)
            if word.value == flags:
                word.value = flags | _IMMUTABLE


def is_of_library(cls: type) -> bool:
    """Is it a class of Python's own library, built in, or of the runtime around the script?"""
    module = _MODULE(cls)
    if type(module) is not str:
        return False
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names or top == _RUNTIME
