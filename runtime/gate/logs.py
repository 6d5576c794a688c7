"""A logging module of the script's own, which writes to its standard error.

SAFETY: the library's holds the loggers of the runtime around the script, and the real stream; a
format in braces would walk attributes.
"""

from __future__ import annotations

import logging as _library
import sys
from functools import partial
from types import ModuleType
from typing import Any

from .copying import own
from .files import guarded_open
from .guards import load
from .streams import Output
from .templates import format_fields


def make() -> ModuleType:
    """The library's source in a module of our own."""
    module = own(_library)
    streams = ModuleType("sys")
    streams.__dict__.update({name: value for name, value in vars(sys).items() if name in _SYS})
    streams.__dict__.update(modules={}, stderr=Output(partial(getattr, sys, "stderr")))
    module.__dict__["sys"] = streams
    module.__dict__["open"] = guarded_open
    module.StrFormatStyle._format = _format
    return module


_SYS = ("_getframe", "exc_info", "is_finalizing", "version_info")


def _format(style: Any, record: Any) -> str:
    values = {**(style._defaults or {}), **record.__dict__}
    return format_fields(load, style._fmt, values)
