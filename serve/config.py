"""limbeck.toml: read, checked, and turned into what an executor takes.

Read only from --config, LIMBECK_CONFIG or the user's configuration folder. A limbeck.toml in the
current directory is mentioned and never obeyed: a stranger may have put it there.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..bridge.policy import Policy
from ..runtime.errors import ConfigurationError
from ..sandbox.backend import Limits
from ..sandbox.choice import BackendOptions, DockerOptions, checked_open_modules
from ..sandbox.sessions import IDLE_SECONDS, LIFE_SECONDS
from ..sandbox.uids import BASE as UID_BASE

NAME = "limbeck.toml"

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(KiB|MiB|GiB|KB|MB|GB|B)?\s*\Z", re.IGNORECASE)
_UNITS = {
    "b": 1,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
}
_SIZES = frozenset({"memory", "tmp", "workspace", "output_kept", "output_max", "script", "inputs"})


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PolicySection(_Section):
    """`[policy]`"""

    unconfirmed_destructive: list[str] = Field(default_factory=list)
    """Destructive tools that may run without approval, as "toolset.tool"."""


class DockerSection(_Section):
    """`[docker]`"""

    image: str | None = None
    """Name of the image; by default limbeck's own of this version."""
    runtime: str | None = None
    """The OCI runtime, as the engine knows it: runsc, kata, ..."""
    url: str | None = None
    """The engine's address; by default DOCKER_HOST, or the usual socket."""


class Configuration(_Section):
    """The whole file."""

    gate: Literal["on", "off"] = "on"
    open_modules: list[str] = Field(default_factory=list)
    """Packages that gated scripts import as they are; the gate promises nothing about them."""
    packages: str | None = None
    """A virtual environment that has them."""
    backend: Literal["auto", "bubblewrap", "docker"] = "auto"
    python: str | None = None
    """Interpreter for the embedded sandbox."""
    bwrap: str | None = None
    """The bubblewrap program."""
    require_hard_limits: bool = False
    """Refuse to run where memory can only be watched."""
    uid_base: int = UID_BASE
    """First uid of the range from which root gives each sandbox one."""
    sessions: bool = True
    """Whether a connection of `limbeck serve` is a session; false: a sandbox for each call."""
    session_idle: float = IDLE_SECONDS
    """Seconds after which a session that nobody uses loses its state."""
    session_life: float = LIFE_SECONDS
    """Seconds after which any session does, between two scripts."""
    max_kept: int | None = None
    """Sandboxes of sessions that stand still at a time; by default 8 for each core."""
    spool_quota: int | str = "1GiB"
    """All long printouts kept on disk together; the oldest go first."""
    limits: dict[str, int | float | str] = Field(default_factory=dict)
    policy: PolicySection = Field(default_factory=PolicySection)
    docker: DockerSection = Field(default_factory=DockerSection)

    def backend_options(self) -> BackendOptions:
        """What the file says of backends. Raises ConfigurationError."""
        return BackendOptions(
            python=self.python,
            bwrap=self.bwrap,
            require_hard_limits=self.require_hard_limits,
            packages=self.packages,
            open_modules=checked_open_modules(self.open_modules),
            uid_base=self.uid_base,
            docker=DockerOptions(**self.docker.model_dump()),
        )

    def executor_options(self) -> dict[str, Any]:
        """Keyword arguments for an executor. Raises ConfigurationError."""
        return {
            "gate": self.gate,
            "open_modules": self.open_modules,
            "packages": self.packages,
            "backend": self.backend,
            "python": self.python,
            "bwrap": self.bwrap,
            "require_hard_limits": self.require_hard_limits,
            "uid_base": self.uid_base,
            "docker": DockerOptions(**self.docker.model_dump()),
            "spool_quota": read_size("spool_quota", self.spool_quota),
            "session_idle": self.session_idle,
            "session_life": self.session_life,
            "max_kept": self.max_kept,
            "limits": Limits().with_values(
                {key: read_limit(key, value) for key, value in self.limits.items()}
            ),
            "policy": Policy(
                unconfirmed_destructive=frozenset(self.policy.unconfirmed_destructive)
            ),
        }

    def with_values(self, **values: Any) -> Configuration:
        """A copy with the options of a command line over it; None changes nothing."""
        given = {key: value for key, value in values.items() if value is not None}
        if "limits" in given:
            given["limits"] = {**self.limits, **given["limits"]}
        return self.model_copy(update=given)


def load(path: Path | None = None) -> Configuration:
    """Read the configuration. Raises ConfigurationError, which names file and key."""
    path = path or _default_path()
    if path is None:
        return Configuration()
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(str(path), error.strerror or str(error)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(path), f"not TOML: {error}") from None
    return _checked(data, str(path))


def ignored_file() -> Path | None:
    """A limbeck.toml in the current directory that is not obeyed."""
    path = Path.cwd() / NAME
    used = _default_path()
    if not path.exists() or (used is not None and used.resolve() == path.resolve()):
        return None
    return path


def read_limit(key: str, value: int | float | str) -> int | float | str:
    """A limit as a number: sizes may be written as 512MiB. Raises ConfigurationError."""
    if key == "profile":
        return value
    return _number(f"limits.{key}", value, is_size=key in _SIZES)


def read_size(key: str, value: int | str) -> int:
    """A size in bytes: 512MiB, or a whole number. Raises ConfigurationError."""
    return int(_number(key, value, is_size=True))


def _number(key: str, value: int | float | str, *, is_size: bool) -> int | float:
    if not isinstance(value, str):
        return value
    match = _SIZE.match(value)
    if match is None or (match.group(2) and not is_size):
        example = "512MiB" if is_size else "60"
        raise ConfigurationError(key, f"{value!r} is not a value", f"write {example}.")
    number = float(match.group(1)) * _UNITS[(match.group(2) or "B").lower()]
    return int(number) if number.is_integer() else number


def _checked(data: Mapping[str, Any], source: str) -> Configuration:
    try:
        return Configuration.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        hint = ""
        if first["type"] == "extra_forbidden":
            sections: dict[str, type[_Section]]
            sections = {"policy": PolicySection, "docker": DockerSection}
            model = sections.get(key.rpartition(".")[0], Configuration)
            hint = f"the keys are: {', '.join(model.model_fields)}."
        raise ConfigurationError(f"{source}: {key}", first["msg"], hint) from None


def _default_path() -> Path | None:
    named = os.environ.get("LIMBECK_CONFIG")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME")
    path = (Path(base) if base else Path.home() / ".config") / "limbeck" / NAME
    return path if path.exists() else None
