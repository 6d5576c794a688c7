"""The language gate: vets a script before a sandbox is touched, and compiles it inside one.

The same code on both sides. It is a vetting layer with teeth in front of the sandbox, never the
boundary: what it lets through by mistake still meets the sandbox and the policy of the bridge.

    faults, names, advice, modules     what is said, and the tables
    scopes, visitor, imports, patterns, transformer      what a script may write
    kinds, templates, guards, copying, data_classes, classes, files, storage, streams, logs,
    hardening, freezing, libraries, table       what it meets at run time
    watch                              the refusal of files outside its folders
    program                            from source text to faults or to a code object
    child                              the process that vets for the host
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any

from RestrictedPython import transformer as _base

from .faults import MAX_FAULTS, Fault, Refused
from .modules import ALLOWED_MODULES
from .names import shown
from .program import Compiled, compile_script, vet
from .table import open_builtins, script_builtins
from .watch import install as watch_files

__all__ = [
    "ALLOWED_MODULES",
    "MAX_FAULTS",
    "Compiled",
    "Fault",
    "Refused",
    "compile_script",
    "fingerprint",
    "script_globals",
    "shown",
    "vet",
    "watch_files",
]


def script_globals(
    *,
    gate: bool,
    show: Callable[[object], None],
    extra: Mapping[str, object],
    open_modules: Collection[str] = (),
) -> dict[str, Any]:
    """The globals in which a compiled script runs.

    `show` is called with the value of a last expression that is not None; `extra` are names that
    are added to the builtins.
    """
    made = script_builtins(show, extra, open_modules) if gate else open_builtins(show, extra)
    return {"__name__": "__main__", "__builtins__": made}


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """Digest of the policy: its own sources and the transformer that it is built on."""
    folder = os.path.dirname(__file__)
    files = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    digest = hashlib.sha256()
    for path in [*(os.path.join(folder, name) for name in files), _base.__file__]:
        with open(path, "rb") as source:
            digest.update(hashlib.sha256(source.read()).digest())
    return digest.hexdigest()[:32]
