"""Toolsets from Python: `package.module:name`, `file.py:name`, or either without a name."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from ...runtime.errors import ConfigurationError
from ..tool import Toolset


def load_toolsets(reference: str) -> list[Toolset]:
    """Every toolset that a reference names.

    Without a name: all Toolset objects of the module, and its functions marked with `@tool` as a
    toolset of the module's name. Raises ConfigurationError with the cause.
    """
    where, _, name = reference.partition(":")
    module = _from_file(where) if where.endswith(".py") else _from_name(where)
    if name:
        return [_named(module, name, reference)]
    found = [value for value in vars(module).values() if isinstance(value, Toolset)]
    marked = Toolset.from_module(module)
    found += [marked] if len(marked) else []
    if not found:
        raise ConfigurationError(
            reference,
            "there is no Toolset in it, and no function marked with @tool",
            "make one: orders = Toolset('orders').",
        )
    return list({id(toolset): toolset for toolset in found}.values())


def _named(module: ModuleType, name: str, reference: str) -> Toolset:
    value = getattr(module, name, None)
    if isinstance(value, Toolset):
        return value
    known = [key for key, item in vars(module).items() if isinstance(item, Toolset)]
    problem = f"{name!r} is no Toolset" if value is not None else f"there is no {name!r}"
    near = difflib.get_close_matches(name, known, n=1) or known[:3]
    hint = f"it has: {', '.join(near)}." if near else "it has no Toolset at all."
    raise ConfigurationError(reference, problem, hint)


def _from_name(name: str) -> ModuleType:
    # As `python -m` does: a module beside the caller is found.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise _not_loaded(name, error) from error


def _from_file(path: str) -> ModuleType:
    file = Path(path)
    if not file.is_file():
        raise ConfigurationError(path, "there is no such file")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Registered, so that annotations and pickles find it; its folder, so that it finds its own.
    sys.modules[file.stem] = module
    sys.path.insert(0, str(file.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[file.stem]
        raise _not_loaded(path, error) from error
    finally:
        sys.path.remove(str(file.resolve().parent))
    return module


def _not_loaded(what: str, error: Exception) -> ConfigurationError:
    if isinstance(error, ConfigurationError):
        return error
    return ConfigurationError(what, f"cannot be loaded: {type(error).__name__}: {error}")
