"""`__import__` for scripts: the same table as the static check, fresh proxies for each run."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from .guards import IN_MODULES
from .modules import ALLOWED_MODULES, is_package, make_module, make_package


def make_importer() -> Callable[..., Any]:
    """The `__import__` of one run."""
    made: dict[str, ModuleType] = {}

    def module(name: str) -> ModuleType:
        if name not in made:
            if name in ALLOWED_MODULES or name == "__future__":
                made[name] = make_module(name, IN_MODULES)
            elif is_package(name):
                made[name] = make_package(name)
            else:
                raise ModuleNotFoundError(f"the module {name} is not available", name=name)
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(module(parent), child, made[name])
        return made[name]

    def guarded_import(
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if type(name) is not str or level:
            raise ImportError("relative imports are not available")
        if name.partition(".")[0] == "tools":
            if any(part.startswith("_") for part in name.split(".")):
                raise ModuleNotFoundError(f"the module {name} is not available", name=name)
            return builtins.__import__(name, None, None, fromlist or (), 0)
        found = module(name)
        for item in fromlist or ():
            if f"{name}.{item}" in ALLOWED_MODULES:
                module(f"{name}.{item}")
        return found if fromlist else module(name.partition(".")[0])

    return guarded_import
