"""The sandbox image, built without a registry: a Python, its libraries, our runtime, nothing else.

The content is declared in images/image.toml. The layer is reproducible: two builds from the same
files have the same digest. No shell, no pip, no other program.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from ..runtime.errors import ConfigurationError
from .bwrap_arguments import INSIDE_PACKAGES
from .packages import PackagesFolder
from .provision import Interpreter, RuntimeFolder

ABI_LABEL = "io.limbeck.abi"
"""Names the runtime inside; an image with another one is refused."""

_FOLDER = Path(__file__).resolve().parent.parent / "images"
_PYTHON = "/usr/bin/python3"
_SBOM = "limbeck/sbom.cdx.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """images/image.toml."""

    name: str
    user: str
    workdir: str
    entrypoint: tuple[str, ...]
    folders: tuple[str, ...]
    packages: tuple[str, ...]
    left_out: frozenset[str]
    environment: dict[str, str]
    labels: dict[str, str]


def load_declaration(path: Path = _FOLDER / "image.toml") -> Declaration:
    """Read the declaration."""
    data: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    return Declaration(
        name=data["name"],
        user=data["user"],
        workdir=data["workdir"],
        entrypoint=tuple(data["entrypoint"]),
        folders=tuple(data["folders"]),
        packages=tuple(data["packages"]),
        left_out=frozenset(data["left_out"]),
        environment=data["environment"],
        labels=data["labels"],
    )


def abi(runtime: RuntimeFolder) -> str:
    """What an image must be labelled with to serve this host."""
    return runtime.root.name


def tag(
    declaration: Declaration, runtime: RuntimeFolder, packages: PackagesFolder | None = None
) -> str:
    """The image's name and tag: two installations of limbeck do not take each other's image."""
    own = f"{__version__}-{abi(runtime)[:12]}"
    if packages is None:
        return f"{declaration.name}:{own}"
    return f"{declaration.name}-data:{own}-{packages.root.name[-8:]}"


def build_layer(
    declaration: Declaration,
    runtime: RuntimeFolder,
    interpreter: Interpreter,
    packages: PackagesFolder | None = None,
) -> bytes:
    """The image's one layer as a tar archive, reproducible."""
    with tempfile.TemporaryDirectory(prefix="limbeck-image-") as scratch:
        stage = Path(scratch)
        _stage(stage, declaration, runtime, interpreter, packages)
        return _archive(stage, declaration)


def changes(
    declaration: Declaration, runtime: RuntimeFolder, packages: PackagesFolder | None = None
) -> list[str]:
    """The image's settings, as `docker import --change` takes them."""
    environment = dict(declaration.environment)
    if packages is not None:
        environment["PYTHONPATH"] += f":{INSIDE_PACKAGES}"
    labels = {
        **declaration.labels,
        "org.opencontainers.image.version": __version__,
        ABI_LABEL: abi(runtime),
    }
    return [
        f"USER {declaration.user}",
        f"WORKDIR {declaration.workdir}",
        f"ENTRYPOINT {json.dumps(list(declaration.entrypoint))}",
        *(f"ENV {name}={value}" for name, value in environment.items()),
        *(f"LABEL {name}={json.dumps(value)}" for name, value in labels.items()),
    ]


def bill_of_materials(
    declaration: Declaration, interpreter: Interpreter, packages: PackagesFolder | None = None
) -> dict[str, Any]:
    """What the image contains, in the form of CycloneDX 1.5."""
    version = ".".join(map(str, interpreter.version))
    components: list[dict[str, Any]] = [
        _component("application", "cpython", version, f"pkg:generic/cpython@{version}"),
        _component("application", "limbeck", __version__, f"pkg:pypi/limbeck@{__version__}"),
    ]
    found = [importlib.metadata.distribution(name) for name in declaration.packages]
    if packages is not None:
        found += importlib.metadata.distributions(path=[str(packages.lib)])
    for distribution in found:
        metadata = distribution.metadata.json
        name = str(metadata["name"])
        licence = metadata.get("license_expression") or metadata.get("license") or ""
        version = str(metadata["version"])
        made = _component("library", name, version, f"pkg:pypi/{name.lower()}@{version}")
        if licence:
            made["licenses"] = [{"license": {"name": licence}}]
        components.append(made)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "components": components,
    }


def _component(kind: str, name: str, version: str, purl: str) -> dict[str, Any]:
    return {"type": kind, "name": name, "version": version, "purl": purl}


def _stage(
    stage: Path,
    declaration: Declaration,
    runtime: RuntimeFolder,
    interpreter: Interpreter,
    packages: PackagesFolder | None,
) -> None:
    _copy(Path(interpreter.path), stage / interpreter.path.lstrip("/"))
    if interpreter.path != _PYTHON:
        (stage / _PYTHON.lstrip("/")).symlink_to(interpreter.path)
    libraries = interpreter.libraries + (packages.libraries if packages is not None else ())
    for library in sorted(set(libraries)):
        if not library.startswith(f"{runtime.root}/"):
            _copy(Path(os.path.realpath(library)), stage / library.lstrip("/"))
    stdlib = stage / interpreter.stdlib.lstrip("/")
    shutil.copytree(
        interpreter.stdlib, stdlib, ignore=shutil.ignore_patterns(*declaration.left_out),
        symlinks=False, ignore_dangling_symlinks=True,
    )  # fmt: skip
    byte_code = shutil.ignore_patterns("__pycache__")
    shutil.copytree(runtime.lib, stage / "limbeck/lib", ignore=byte_code)
    if packages is not None:
        # Without byte code: it is bound to the sources by their times, which are not kept here.
        shutil.copytree(packages.lib, stage / "limbeck/packages", ignore=byte_code)
    if Path("/usr/share/zoneinfo").is_dir():
        zones = stage / "usr/share/zoneinfo"
        shutil.copytree("/usr/share/zoneinfo", zones, ignore_dangling_symlinks=True)
    for folder in declaration.folders:
        (stage / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    uid, _, gid = declaration.user.partition(":")
    (stage / "etc/passwd").write_text(f"sandbox:x:{uid}:{gid}::/workspace:/nonexistent\n")
    (stage / "etc/group").write_text(f"sandbox:x:{gid}:\n")
    bill = json.dumps(
        bill_of_materials(declaration, interpreter, packages), indent=1, sort_keys=True
    )
    (stage / _SBOM).write_text(bill + "\n")
    _compile(stage, interpreter)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755)


def _compile(stage: Path, interpreter: Interpreter) -> None:
    """Byte code that needs no source's time, by the very interpreter, hash seed fixed."""
    done = subprocess.run(
        [
            interpreter.path, "-S", "-E", "-m", "compileall", "-q", "-q",
            "--invalidation-mode", "unchecked-hash", "-s", str(stage), "-p", "/",
            str(stage / interpreter.stdlib.lstrip("/")), str(stage / "limbeck"),
        ],
        env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1):  # 1: files that are no valid Python on purpose
        raise ConfigurationError("image", f"the byte code cannot be compiled: {done.stderr}")


def _archive(stage: Path, declaration: Declaration) -> bytes:
    open_folders = {"workspace", "tmp"}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in _sorted(stage):
            name = str(path.relative_to(stage))
            item = archive.gettarinfo(path, name)
            item.uid = item.gid = 0
            item.uname = item.gname = ""
            item.mtime = 0
            item.mode = 0o1777 if name in open_folders else _mode(item)
            if item.isfile():
                with path.open("rb") as file:
                    archive.addfile(item, file)
            else:
                archive.addfile(item)
    return buffer.getvalue()


def _sorted(stage: Path) -> Iterator[Path]:
    yield from sorted(stage.rglob("*"), key=lambda path: str(path.relative_to(stage)))


def _mode(item: tarfile.TarInfo) -> int:
    return 0o755 if item.isdir() or item.mode & 0o100 else 0o644


def digest(layer: bytes) -> str:
    """The layer's digest, as the engine names it."""
    return f"sha256:{hashlib.sha256(layer).hexdigest()}"
