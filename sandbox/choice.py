"""Which backend an executor gets, and which packages its scripts may import as they are."""

from __future__ import annotations

from collections.abc import Collection

from ..runtime.errors import ConfigurationError
from .auto import AutoBackend
from .backend import Backend
from .bubblewrap import BubblewrapBackend
from .docker import DockerBackend

_NEVER_OPEN = frozenset({"limbeck", "tools", "grpc", "google", "RestrictedPython"})
"""Names of the runtime's own."""


def choose_backend(
    backend: str | Backend,
    python: str | None,
    bwrap: str | None,
    require_hard_limits: bool,
    packages: str | None,
    open_modules: frozenset[str],
) -> Backend:
    """The backend by its name; one that is made already stays. Raises ConfigurationError."""
    if not isinstance(backend, str):
        return backend
    docker = DockerBackend(packages=packages, open_modules=open_modules)
    if backend == "docker":
        return docker
    if backend not in ("auto", "bubblewrap"):
        raise ConfigurationError(
            "backend", f"there is no backend {backend!r}", "use auto, docker or bubblewrap."
        )
    embedded = BubblewrapBackend(
        python=python,
        bwrap=bwrap,
        require_hard_limits=require_hard_limits,
        packages=packages,
        open_modules=open_modules,
    )
    return embedded if backend == "bubblewrap" else AutoBackend([docker, embedded])


def checked_open_modules(open_modules: Collection[str]) -> frozenset[str]:
    """The names, when they can be packages. Raises ConfigurationError."""
    if isinstance(open_modules, str):
        raise ConfigurationError("open_modules", "a single text", f"write [{open_modules!r}].")
    for name in open_modules:
        if not name.isidentifier() or name in _NEVER_OPEN:
            raise ConfigurationError("open_modules", f"{name!r} is no package to open")
    return frozenset(open_modules)
