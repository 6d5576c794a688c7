"""The modules of the table as fresh objects, and the import that hands them out.

Each process gets module objects of its own, so that a script that writes to one changes nothing
but its own view. They are plain ModuleType: a subclass costs twice the time of each lookup.

SAFETY: they are called `sandbox.json`, not `json`. `from m import n` falls back to
sys.modules[f"{m.__name__}.{n}"], and would find the real submodule by the real name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from . import caching, copying, data_classes, guards, logs, modules, storage
from .advice import MODULES
from .freezing import freeze
from .hardening import harden
from .kinds import TYPE
from .streams import Output

_PREFIX = "sandbox."


def available(module: str) -> list[str]:
    """The public names that the module shows on this Python."""
    real = import_module(module)
    return [name for name in modules.NAMES[module] if _has(module, name, real)]


def _has(module: str, name: str, real: ModuleType) -> bool:
    if name in modules.GUARDED.get(module, ()):
        return name in _GUARDED[module]
    return hasattr(real, name)


def importer(open_modules: Collection[str] = ()) -> Callable[..., Any]:
    """An `__import__` that knows the table and the tools, with module objects of its own.

    `open_modules` are packages that it hands out as they are.
    """
    opened = frozenset(open_modules)
    loaded: dict[str, ModuleType] = {}

    def guarded_import(
        name: Any, _globals: Any = None, _locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> ModuleType:
        if type(fromlist) is list:
            return _load_for_library(name)
        wanted = [_plain(item) for item in fromlist or ()]
        if level:
            raise ImportError("a script is not in a package; import by the full name")
        if modules.is_tools(_plain(name)):
            return _import_tools(name, wanted)
        if name.partition(".")[0] in opened:
            return _import_open(name, wanted)
        if name not in modules.NAMES:
            raise ModuleNotFoundError(_no_module(name), name=name)
        found = _load(name, loaded)
        return _taken(found, name, wanted) if wanted else loaded[name.partition(".")[0]]

    return guarded_import


def _load_for_library(name: str) -> ModuleType:
    """Serve C code that imports through the builtins of the frame it was called from.

    It says so by a list, where an import statement passes a tuple or None, and takes the module
    from sys.modules: it is given none here.
    """
    import_module(name)
    return ModuleType(_PREFIX + "none")


def _plain(name: Any) -> str:
    if type(name) is not str:
        raise TypeError("the name of a module must be a plain string")
    return name


def _no_module(name: str) -> str:
    advice = MODULES.get(name) or MODULES.get(name.partition(".")[0])
    return f"no module named {name!r} here" + (f": {advice}" if advice else "")


def _import_tools(name: str, wanted: list[str]) -> ModuleType:
    for part in [*name.split("."), *wanted]:
        if part.startswith("_") or part == "*":
            raise ImportError(f"cannot import name {part!r} from {name!r}: name the public tools")
    module = import_module(name)
    if not wanted:
        return sys.modules[modules.TOOLS]
    for item in wanted:
        if name == modules.TOOLS and not hasattr(module, item):
            # Its own error tells the near names.
            import_module(f"{name}.{item}")
    return _taken(module, name, wanted)


def _import_open(name: str, wanted: list[str]) -> ModuleType:
    module = import_module(name)
    if not wanted:
        return sys.modules[name.partition(".")[0]]
    for item in wanted:
        if not hasattr(module, item):
            with suppress(ModuleNotFoundError):
                import_module(f"{name}.{item}")
    return _taken(module, name, wanted)


def _taken(module: ModuleType, name: str, wanted: list[str]) -> ModuleType:
    """A module of its own with just what `from m import n` takes.

    SAFETY: the script holds the module itself, may rename it, and may delete a name while it is
    imported; Python would then look for the name in sys.modules.
    """
    taken = ModuleType(_PREFIX + "taken")
    for item in wanted:
        if item.startswith("_") and item != "__doc__":
            raise ImportError(f"cannot import name {item!r} from {name!r}", name=name)
        try:
            setattr(taken, item, getattr(module, item))
        except AttributeError:
            raise ImportError(f"cannot import name {item!r} from {name!r}", name=name) from None
    return taken


def _load(name: str, loaded: dict[str, ModuleType]) -> ModuleType:
    if name in loaded:
        return loaded[name]
    parent, _, last = name.rpartition(".")
    if parent and parent not in loaded:
        _load(parent, loaded)
        return loaded[name]
    module = loaded[name] = _fresh(name)
    for last in modules.submodules(name):
        setattr(module, last, _load(f"{name}.{last}", loaded))
    return module


def _fresh(name: str) -> ModuleType:
    real = logs.make() if name == "logging" else import_module(name)
    harden(name)
    module = ModuleType(_PREFIX + name, real.__doc__)
    made = _GUARDED.get(name, {})
    for item in modules.NAMES[name]:
        if item in made:
            setattr(module, item, made[item])
        elif item not in modules.GUARDED.get(name, ()) and hasattr(real, item):
            setattr(module, item, getattr(real, item))
    for item in vars(module).values():
        freeze(item)
    return module


_GUARDED: Mapping[str, Mapping[str, Any]] = {
    "collections": {"namedtuple": data_classes.named_tuple},
    "copy": copying.FUNCTIONS,
    "dataclasses": {
        "dataclass": data_classes.dataclass,
        "fields": data_classes.shown_fields,
        "asdict": data_classes.asdict,
        "astuple": data_classes.astuple,
        "replace": data_classes.replace,
    },
    "functools": {
        "cached_property": caching.cached_property,
        "wraps": data_classes.wraps,
        "update_wrapper": data_classes.update_wrapper,
    },
    "gzip": {"open": storage.gzip_open},
    "os": {"environ": {}, "getenv": guards.getenv},
    "operator": {"attrgetter": guards.attrgetter, "methodcaller": guards.methodcaller},
    "sys": {
        "argv": ["script.py"],
        "exit": guards.leave,
        "stdout": Output(partial(getattr, sys, "stdout")),
        "stderr": Output(partial(getattr, sys, "stderr")),
    },
    "shutil": {"rmtree": storage.remove_tree},
    "typing": {"Type": TYPE, "get_origin": guards.origin},
    "xml.etree.ElementTree": {
        "fromstring": storage.parse_xml,
        "fromstringlist": storage.parse_xml_parts,
        "XML": storage.parse_xml,
        "parse": storage.parse_xml_file,
    },
}
