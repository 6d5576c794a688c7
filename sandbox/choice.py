"""Which backend an executor gets, and which packages its scripts may import as they are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ..runtime.errors import ConfigurationError
from .auto import AutoBackend
from .backend import Backend
from .bubblewrap import BubblewrapBackend
from .docker import DockerBackend
from .uids import BASE as UID_BASE

_NEVER_OPEN = frozenset({"limbeck", "tools", "grpc", "google", "RestrictedPython"})
"""Names of the runtime's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerOptions:
    """What an operator may say of the docker backend."""

    image: str | None = None
    """Name of the image; by default limbeck's own of this version."""
    runtime: str | None = None
    """The OCI runtime, as the engine knows it: runsc, kata, ..."""
    url: str | None = None
    """The engine's address; by default DOCKER_HOST, or the usual socket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendOptions:
    """What an operator may say of all backends."""

    python: str | None = None
    bwrap: str | None = None
    require_hard_limits: bool = False
    packages: str | None = None
    open_modules: frozenset[str] = frozenset()
    uid_base: int = UID_BASE
    docker: DockerOptions = field(default_factory=DockerOptions)

    def choose(self, backend: str | Backend) -> Backend:
        """The backend by its name; one that is made already stays. Raises ConfigurationError."""
        if not isinstance(backend, str):
            return backend
        if backend == "docker":
            return self.make_docker()
        if backend == "bubblewrap":
            return self.make_embedded()
        if backend == "auto":
            return AutoBackend([self.make_docker(), self.make_embedded()])
        raise ConfigurationError(
            "backend", f"there is no backend {backend!r}", "use auto, docker or bubblewrap."
        )

    def make_docker(self) -> DockerBackend:
        """The docker backend."""
        return DockerBackend(
            image_name=self.docker.image,
            oci_runtime=self.docker.runtime,
            base_url=self.docker.url,
            packages=self.packages,
            open_modules=self.open_modules,
            uid_base=self.uid_base,
        )

    def make_embedded(self) -> BubblewrapBackend:
        """The embedded backend."""
        return BubblewrapBackend(
            python=self.python,
            bwrap=self.bwrap,
            require_hard_limits=self.require_hard_limits,
            packages=self.packages,
            open_modules=self.open_modules,
            uid_base=self.uid_base,
        )


def checked_open_modules(open_modules: Collection[str]) -> frozenset[str]:
    """The names, when they can be packages. Raises ConfigurationError."""
    if isinstance(open_modules, str):
        raise ConfigurationError("open_modules", "a single text", f"write [{open_modules!r}].")
    for name in open_modules:
        if not name.isidentifier() or name in _NEVER_OPEN:
            raise ConfigurationError("open_modules", f"{name!r} is no package to open")
    return frozenset(open_modules)
