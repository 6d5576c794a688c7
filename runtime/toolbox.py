"""The `tools` package inside the sandbox: generated stub modules, loaded when imported.

A stub's source is the very text that the model reads; it imports `_call` and `_stream` from
`tools._bridge`, which is made here. An unknown name raises UnknownTool with near names,
which is an AttributeError or an ImportError too, as Python's own probes expect.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable, Hashable
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from .channel import Channel
from .errors import TOOL_ERRORS, UnknownTool
from .many import Asked, CallMany
from .stub_calls import checked

if TYPE_CHECKING:
    from .aio import AsyncCalls

LATER = frozenset({"search", "describe", "emit", "help"})
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
        self._bridge = _Bridge(channel)
        self._own: dict[str, list[str]] = {}
        """The tools of each toolset that is loaded."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package != "tools":
            return None
        if name in ("", "_bridge", "aio") or name.removeprefix("aio.") in self._names:
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
        elif name == "aio":
            self._fill_aio(module)
        elif name.startswith("aio."):
            self._fill_coroutines(module, name.removeprefix("aio."))
        elif name == "_bridge":
            module.__dict__.update(
                _call=self._bridge.call, _stream=self._bridge.stream, _UNSET=UNSET
            )
        else:
            self._fill_stub(module, name)

    def _fill_package(self, module: ModuleType) -> None:
        module.__doc__ = "The tools of this session: " + (", ".join(self._names) or "none")
        module.__dict__.update({cls.__name__: cls for cls in TOOL_ERRORS.values()})
        names = [*self._names, "aio", "call_many"]
        module.__dict__["call_many"] = CallMany(self._bridge.channel, self._bridge.asking)
        module.__dict__["__all__"] = names
        module.__dict__["__dir__"] = lambda: names
        module.__dict__["__getattr__"] = _import_or_unknown([*self._names, "aio"])

    def _fill_stub(self, module: ModuleType, name: str) -> None:
        path = f"{self._folder}/{name}.py"
        with open(path, encoding="utf-8") as file:
            code = compile(file.read(), f"<tools.{name}>", "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - the host generated it
        stubs = {
            key: checked(value, f"{name}.{key}", self._bridge.call)
            for key, value in module.__dict__.items()
            if isinstance(value, FunctionType) and value.__module__ == module.__name__
        }
        module.__dict__.update(stubs)
        self._bridge.stubs.update(stubs.values())
        own = self._own[name] = sorted(stubs)
        module.__dict__["__dir__"] = lambda: own
        # As a package's: `from tools.orders import zz` comes to the finder, which knows near names.
        module.__dict__["__path__"] = []
        module.__dict__["__getattr__"] = _unknown_in(name, own)

    def _fill_aio(self, module: ModuleType) -> None:
        module.__doc__ = "The same tools as coroutines: " + (", ".join(self._names) or "none")
        module.__dict__["__path__"] = []
        module.__dict__["__dir__"] = lambda: list(self._names)
        module.__dict__["__getattr__"] = _import_or_unknown(self._names, "tools.aio.")

    def _fill_coroutines(self, module: ModuleType, name: str) -> None:
        plain = importlib.import_module(f"tools.{name}")
        module.__doc__ = plain.__doc__
        module.__dict__.update(
            (key, self._bridge.coroutine(value) if value in self._bridge.stubs else value)
            for key, value in plain.__dict__.items()
            if key[0] != "_" and isinstance(value, Hashable)
        )
        own = self._own[name]
        module.__dict__["__dir__"] = lambda: own
        module.__dict__["__path__"] = []
        module.__dict__["__getattr__"] = _unknown_in(name, own)


class _Bridge:
    """What stubs call: the channel, or whoever wants to know what would be called."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.stubs: set[Callable[..., Any]] = set()
        self._asking = _Asking()
        self._coroutines: AsyncCalls | None = None

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Of a stub with one answer."""
        if self._asking.now:
            return Asked(tool, _given(arguments), False)
        return self.channel.call(tool, _given(arguments))

    def stream(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Of a stub whose rows stream."""
        if self._asking.now:
            return Asked(tool, _given(arguments), True)
        return self.channel.stream(tool, _given(arguments))

    def asking(self, stub: Callable[..., Any]) -> Callable[..., Asked]:
        """A function that gives the call which a stub would make. Raises TypeError for others."""
        if stub not in self.stubs:
            raise TypeError("give the tool itself: call_many(orders.get_order, rows)")

        def ask(*args: Any, **kwargs: Any) -> Asked:
            self._asking.now = True
            try:
                call: Asked = stub(*args, **kwargs)
                return call
            finally:
                self._asking.now = False

        return ask

    def coroutine(self, stub: Callable[..., Any]) -> Callable[..., Any]:
        """The stub's namesake in tools.aio: an awaitable, or an asynchronous iterator of rows."""
        ask = self.asking(stub)

        @functools.wraps(stub)
        def call(*args: Any, **kwargs: Any) -> Any:
            asked = ask(*args, **kwargs)
            make = self.coroutines.stream if asked.streams else self.coroutines.call
            return make(asked.tool, asked.arguments)

        return call

    @property
    def coroutines(self) -> AsyncCalls:
        """Imported when a script wants it: asyncio is slow to import."""
        if self._coroutines is None:
            from .aio import AsyncCalls

            self._coroutines = AsyncCalls(self.channel)
        return self._coroutines


class _Asking(threading.local):
    """Whether this thread wants to know what a stub would call."""

    now = False


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if value is not UNSET}


def _import_or_unknown(names: list[str], package: str = "tools.") -> Callable[[str], Any]:
    def missing(name: str) -> Any:
        if name in names:
            return importlib.import_module(package + name)
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
