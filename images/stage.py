"""Inside the Dockerfile's first stage: gather what images/image.toml declares under /image.

Runs under the very Python that goes into the image, whatever its minor version and place are, and
needs nothing but its standard library.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def main(declared: dict[str, Any], library: Path, root: Path) -> None:
    """Copy interpreter, standard library and shared objects; make folders and accounts."""
    python = os.path.realpath(sys.executable)
    stdlib = Path(sysconfig.get_path("stdlib"))
    _copy(python, root)
    # A link, since an interpreter looks for its libraries from where it really is.
    link = root / "usr/bin/python3"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.exists():
        link.symlink_to(python)
    ignored = shutil.ignore_patterns(*declared["left_out"])
    shutil.copytree(
        stdlib, root / str(stdlib).lstrip("/"), ignore=ignored, ignore_dangling_symlinks=True
    )
    objects = [python, *map(str, stdlib.rglob("*.so")), *map(str, library.rglob("*.so"))]
    for path in _libraries(objects):
        if not path.startswith(f"{library}/"):
            _copy(path, root)
    if Path("/usr/share/zoneinfo").is_dir():
        zones = root / "usr/share/zoneinfo"
        shutil.copytree("/usr/share/zoneinfo", zones, ignore_dangling_symlinks=True)
    for folder in declared["folders"]:
        (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for folder in ("workspace", "tmp"):
        (root / folder).chmod(0o1777)
    uid, _, gid = declared["user"].partition(":")
    (root / "etc/passwd").write_text(f"sandbox:x:{uid}:{gid}::/workspace:/nonexistent\n")
    (root / "etc/group").write_text(f"sandbox:x:{gid}:\n")
    compile_all(root, root / str(stdlib).lstrip("/"))


def _copy(path: str, root: Path) -> None:
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(os.path.realpath(path), target)
    target.chmod(0o755)


def check_minor(wanted: str) -> None:
    """End with a reason when this Python is not the one that the label will promise."""
    found = f"{sys.version_info.major}.{sys.version_info.minor}"
    if wanted != found:
        sys.exit(f"this is Python {found}; limbeck runs under {wanted}: take an image of that one")


def compile_all(strip: Path, folder: Path) -> None:
    """Byte code that needs no source's time; some files are no valid Python on purpose."""
    subprocess.run(
        [
            sys.executable, "-S", "-E", "-m", "compileall", "-q", "-q",
            "--invalidation-mode", "unchecked-hash", "-s", str(strip), "-p", "/", str(folder),
        ],
        env={"PYTHONHASHSEED": "0"}, check=False,
    )  # fmt: skip


def _libraries(objects: list[str]) -> Iterator[str]:
    """The closure of shared objects, as the loader tells it."""
    done = subprocess.run(["ldd", *objects], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        path = line.strip().split(" => ")[-1].split(" (")[0]
        if line.startswith("\t") and path.startswith("/") and os.path.exists(path):
            yield path


if __name__ == "__main__":
    declaration = tomllib.loads(Path(__file__).with_name("image.toml").read_text("utf-8"))
    check_minor(sys.argv[1])
    main(declaration, Path("/limbeck/lib"), Path("/image"))
    compile_all(Path("/"), Path("/limbeck/lib"))
