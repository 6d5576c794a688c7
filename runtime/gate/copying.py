"""A copy module of our own, which asks the class how to take an instance apart.

SAFETY: the library's deepcopy asks the instance first, which may answer with any callable, and
then sets whatever attributes it is told.
"""

from __future__ import annotations

import copy as _library
from functools import partial
from types import ModuleType
from typing import Any


def _from_class(value: Any, name: str, *default: Any) -> Any:
    if name not in ("__reduce_ex__", "__reduce__") or isinstance(value, type):
        return getattr(value, name, *default)
    method = getattr(type(value), name, *default)
    return partial(method, value) if method is not None else None


def own(library: ModuleType) -> ModuleType:
    """A second copy of a library module, run anew, that nobody else holds."""
    spec = library.__spec__
    assert spec is not None
    module = ModuleType(library.__name__)
    module.__dict__["__path__"] = spec.submodule_search_locations
    exec(spec.loader.get_code(library.__name__), module.__dict__)  # type: ignore[union-attr]  # noqa: S102
    return module


def _own() -> dict[str, Any]:
    module = own(_library)
    module.__dict__["getattr"] = _from_class
    return {
        name: module.__dict__[name]
        for name in ("copy", "deepcopy", "replace")
        if name in module.__dict__
    }


FUNCTIONS = _own()
"""copy, deepcopy and, since Python 3.13, replace."""
