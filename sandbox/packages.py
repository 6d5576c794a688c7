"""Packages for open modules: what a virtual environment has, copied to where a sandbox sees it.

Copied once a state into a folder of ours, never bound from the environment: it may lie under a
closed home, and may change under a running sandbox. The environment is the operator's word on what
the packages are; nothing is installed and nothing is run here.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from ..runtime.errors import ConfigurationError
from .holding import MAKING, hold
from .provision import open_to_all, runtimes_folder, shared_libraries, write_atomically

_LEFT_OUT = (
    "pip", "pip-*", "setuptools", "setuptools-*", "_distutils_hack", "pkg_resources", "wheel",
    "wheel-*", "distutils-precedence.pth", "tests", "include", "*.pxd", "*.pyi",
)  # fmt: skip
"""Of a site-packages folder: what installs, tests and compiles."""

_LIBRARIES = "libraries.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagesFolder:
    """The copied packages: `lib` is what PYTHONPATH names beside the runtime."""

    root: Path
    libraries: tuple[str, ...]
    """Shared objects of the host that they need."""

    @property
    def lib(self) -> Path:
        """The packages."""
        return self.root / "lib"


def prepare_packages(environment: str, wanted: Collection[str]) -> PackagesFolder:
    """The packages of an environment, copied when they are not there yet; held from now on.

    Raises ConfigurationError when it is none, is of another Python, or lacks a wanted package.
    """
    site = _site_packages(Path(environment))
    missing = [name for name in sorted(wanted) if not is_there(name, site)]
    if missing:
        raise ConfigurationError(
            "open_modules",
            f"{environment} has no package {', '.join(missing)}",
            f"{environment}/bin/pip install {' '.join(missing)}",
        )
    base = runtimes_folder()
    root = base / _digest(site)
    while not hold(root):
        try:
            _copy(site, root)
        except (OSError, shutil.Error) as error:
            raise ConfigurationError(str(base), str(error)) from None
    return PackagesFolder(root=root, libraries=_libraries(root))


def find_packages(environment: str | None, wanted: Collection[str]) -> PackagesFolder | None:
    """The packages of an environment, or None without one. Raises ConfigurationError.

    Without an environment nothing but the standard library can be open.
    """
    if environment is not None:
        return prepare_packages(environment, wanted)
    if frozenset(wanted) - sys.stdlib_module_names:
        raise ConfigurationError(
            "packages",
            "open modules are named and no environment that has them",
            "name a virtual environment with the key `packages`.",
        )
    return None


def is_there(name: str, site: Path) -> bool:
    """Is it of the standard library, or a package or module of the folder?"""
    found = (site / name).is_dir() or (site / f"{name}.py").is_file()
    return found or name in sys.stdlib_module_names or any(site.glob(f"{name}.*.so"))


def _site_packages(environment: Path) -> Path:
    minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = environment / "lib" / minor / "site-packages"
    if not site.is_dir():
        raise ConfigurationError(
            "packages",
            f"{environment} is no virtual environment of {minor}",
            f"make one: {minor} -m venv {environment}",
        )
    return site


def _digest(site: Path) -> str:
    """Over the lists that installers wrote: names, hashes and sizes of every file."""
    digest = hashlib.sha256(f"packages {sys.implementation.cache_tag}".encode())
    for record in sorted(site.glob("*.dist-info/RECORD")):
        digest.update(f"\n{record.parent.name} ".encode() + record.read_bytes())
    for path in sorted(site.iterdir()):
        digest.update(f"\n{path.name} {path.stat().st_mtime_ns}".encode())
    return digest.hexdigest()[:24]


def _copy(site: Path, root: Path) -> None:
    """Build beside the target and rename: two processes may do it at once."""
    scratch = Path(tempfile.mkdtemp(prefix=MAKING, dir=root.parent))
    try:
        # With times: the byte code that came with the files stays good.
        shutil.copytree(site, scratch / "lib", ignore=shutil.ignore_patterns(*_LEFT_OUT))
        objects = [str(path) for path in (scratch / "lib").rglob("*.so*")]
        found = [one for one in shared_libraries(objects) if not one.startswith(f"{scratch}/")]
        write_atomically(scratch / _LIBRARIES, json.dumps(sorted(found)))
        open_to_all(scratch)
        try:
            scratch.rename(root)
        except OSError:
            if not root.is_dir():
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _libraries(root: Path) -> tuple[str, ...]:
    with contextlib.suppress(OSError, ValueError):
        return tuple(map(str, json.loads((root / _LIBRARIES).read_text())))
    raise ConfigurationError(str(root), "it is not whole", "remove it; it is copied again.")
