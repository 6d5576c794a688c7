"""Walk everything that a script can reach by public attributes and type(): nothing leads out."""

from __future__ import annotations

import asyncio
import builtins
import collections
import datetime
import io
import re
import types

from limbeck.runtime.gate import guards, kinds, libraries, modules, names
from limbeck.runtime.gate.table import script_builtins

POWERFUL = "eval exec compile open input __import__ globals locals breakpoint type"
FORBIDDEN = {id(getattr(builtins, name)) for name in POWERFUL.split()} | {
    id(vars(str)["format"]),
    id(vars(str)["format_map"]),
}
LEADING_OUT = (
    types.ModuleType,
    types.FrameType,
    types.CodeType,
    types.TracebackType,
    io.FileIO,
    io.TextIOWrapper,
    asyncio.AbstractEventLoop,
)
METHODS = (
    types.MethodType,
    types.BuiltinMethodType,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
)
"""New with every look, and without attributes of their own."""
MAX_DEPTH = 4


def samples():
    """Values that library calls hand to a script."""

    def generator():
        yield 1

    yield from (
        1,
        1.5,
        "text",
        b"bytes",
        [1],
        (1,),
        {1: 2},
        {1},
        None,
        range(3),
        slice(1),
        generator(),
    )
    yield from (re.match("a", "a"), datetime.datetime.now(), datetime.UTC, len, print)
    yield from (io.StringIO(), io.BytesIO(), ValueError("x"), collections.Counter("a"), lambda: 0)
    yield from (iter([1]), zip(), map(len, []), property(len), staticmethod(len), super, object())


def walk():
    """Every value that is reached, with the way to it."""
    importer = libraries.importer()
    ready = [(name, value) for name, value in script_builtins(print, {}).items() if name[0] != "_"]
    for module in modules.ALLOWED_MODULES:
        served = importer(module, None, None, modules.NAMES[module][:1] and ("__doc__",))
        ready += [
            (f"{module}.{name}", value) for name, value in vars(served).items() if name[0] != "_"
        ]
    ready += [(f"sample {value!r:.40}", value) for value in samples()]
    seen = set()
    while ready:
        way, value = ready.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield way, value
        if way.count(".") < MAX_DEPTH and not isinstance(value, METHODS):
            ready += steps(way, value)


def steps(way, value):
    yield f"{way}.type()", kinds.shown_type(value)
    for name in dir(value):
        if names.attribute_problem(name) or (name[0] == "_" and name not in names.READABLE):
            continue
        try:
            yield f"{way}.{name}", guards.load(value, name)
        except Exception:
            continue


def leads_out(value):
    if isinstance(value, types.ModuleType) and value.__name__.startswith("sandbox."):
        return False
    is_metaclass = isinstance(value, type) and issubclass(value, type)
    return id(value) in FORBIDDEN or is_metaclass or isinstance(value, LEADING_OUT)


def test_nothing_leads_out():
    found, count = [], 0
    keep = []
    for way, value in walk():
        keep.append(value)  # an id is its own only while the value lives
        count += 1
        submodule = isinstance(value, types.ModuleType) and value.__name__.startswith("sandbox.")
        is_metaclass = isinstance(value, type) and issubclass(value, type)
        if (
            id(value) in FORBIDDEN
            or is_metaclass
            or (isinstance(value, LEADING_OUT) and not submodule)
        ):
            found.append(way)
    assert count > 3_000
    assert found == []
