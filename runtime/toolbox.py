"""The `tools` package inside the sandbox: generated stub modules, loaded when imported.

A stub's source is the very text that the model reads; it imports `_call` and `_stream` from
`tools._bridge`, which is made here. An unknown name raises UnknownTool with near names,
which is an AttributeError or an ImportError too, as Python's own probes expect.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from .channel import Channel
from .errors import TOOL_ERRORS, UnknownTool
from .stub_calls import checked

LATER = frozenset({"search", "describe", "call_many", "emit", "aio", "help"})
"""Helpers that the name is reserved for and that this version does not have."""


class _MissingAttribute(UnknownTool, AttributeError):
    """`orders.zz`: also an AttributeError, so that hasattr and getattr do what they say."""


class _MissingModule(UnknownTool, ImportError):
    """`from tools import zz`: also an ImportError."""


for _cls in (_MissingAttribute, _MissingModule):
    # Scripts and reports know both by the name that the error tree has.
    _cls.__name__ = _cls.__qualname__ = UnknownTool.__name__


_Missing = TypeVar("_Missing", _MissingAttribute, _MissingModule)


class Unset:
    """The type of UNSET: a parameter left to the tool's own default."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset()


def install(folder: str, channel: Channel) -> None:
    """Make `import tools` serve the stub sources in `folder` over `channel`."""
    names = sorted(
        name[:-3] for name in os.listdir(folder) if name.endswith(".py") and name[0] != "_"
    )
    sys.meta_path.insert(0, _StubFinder(folder, names, channel))


class _StubFinder:
    """Finder and loader in one, without their base classes: those are slow to import."""

    def __init__(self, folder: str, names: list[str], channel: Channel) -> None:
        self._folder = folder
        self._names = names
        self._channel = channel
        self._own: dict[str, list[str]] = {}
        """The tools of each toolset that is loaded."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package != "tools":
            return None
        if name in ("", "_bridge") or name in self._names:
            loader: Any = self  # A loader in all but its base class.
            return ModuleSpec(fullname, loader, is_package=not name)
        raise self._not_found(name)

    def _not_found(self, name: str) -> ImportError:
        toolset, _, member = name.partition(".")
        if name in LATER:
            return ImportError(f"tools.{name} is not in this version of limbeck")
        if toolset not in self._names or not member:
            return _unknown(_MissingModule, name, self._names)
        own = sorted(self._own.get(toolset, ()))
        if member in own:
            return ImportError(
                f"tools.{name} is a tool: write `from tools.{toolset} import {member}`"
            )
        return _unknown(_MissingModule, member, own, prefix=f"{toolset}.")

    def create_module(self, spec: ModuleSpec) -> None:
        """None: an ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__.partition(".")[2]
        if not name:
            self._fill_package(module)
        elif name == "_bridge":
            _fill_bridge(module, self._channel)
        else:
            self._fill_stub(module, name)

    def _fill_package(self, module: ModuleType) -> None:
        module.__doc__ = "The tools of this session: " + (", ".join(self._names) or "none")
        module.__dict__.update({cls.__name__: cls for cls in TOOL_ERRORS.values()})
        module.__dict__["__all__"] = list(self._names)
        module.__dict__["__dir__"] = lambda: list(self._names)
        module.__dict__["__getattr__"] = _import_or_unknown(self._names)

    def _fill_stub(self, module: ModuleType, name: str) -> None:
        path = f"{self._folder}/{name}.py"
        with open(path, encoding="utf-8") as file:
            code = compile(file.read(), f"<tools.{name}>", "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - the host generated it
        stubs = {
            key: checked(value, f"{name}.{key}", self._channel.call)
            for key, value in module.__dict__.items()
            if isinstance(value, FunctionType) and value.__module__ == module.__name__
        }
        module.__dict__.update(stubs)
        own = self._own[name] = sorted(stubs)
        module.__dict__["__dir__"] = lambda: own
        # As a package's: `from tools.orders import zz` comes to the finder, which knows near names.
        module.__dict__["__path__"] = []
        module.__dict__["__getattr__"] = _unknown_in(name, own)


def _fill_bridge(module: ModuleType, channel: Channel) -> None:
    def call(tool: str, arguments: dict[str, Any]) -> Any:
        return channel.call(tool, _given(arguments))

    def stream(tool: str, arguments: dict[str, Any]) -> Iterator[Any]:
        return channel.stream(tool, _given(arguments))

    module.__dict__.update(_call=call, _stream=stream, _UNSET=UNSET)


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if value is not UNSET}


def _import_or_unknown(names: list[str]) -> Callable[[str], Any]:
    def missing(name: str) -> Any:
        if name in names:
            return importlib.import_module(f"tools.{name}")
        if name.startswith("__"):
            raise AttributeError(name)
        if name in LATER:
            raise AttributeError(f"tools.{name} is not in this version of limbeck")
        raise _unknown(_MissingAttribute, name, names)

    return missing


def _unknown_in(toolset: str, names: list[str]) -> Callable[[str], Any]:
    def missing(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _unknown(_MissingAttribute, name, names, prefix=f"{toolset}.")

    return missing


def _unknown(cls: type[_Missing], name: str, names: list[str], prefix: str = "") -> _Missing:
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return cls(prefix + name, [prefix + one for one in near])
