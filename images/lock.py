"""Regenerates requirements.lock: `python images/lock.py` in the environment that limbeck is in.

Pins the versions that are installed there (an image must have the host's), and gives the hash of
the wheel for every supported Python and machine, from the package index that pip is set up for.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

PYTHONS = ("3.11", "3.12", "3.13")
MACHINES = ("x86_64", "aarch64")

_HERE = Path(__file__).parent
_HEAD = f"""\
# For CPython {", ".join(PYTHONS)} on {" and ".join(MACHINES)}; written by images/lock.py.
"""


def main() -> None:
    """Write the lock."""
    names = tomllib.loads((_HERE / "image.toml").read_text("utf-8"))["packages"]
    blocks = [_block(name, importlib.metadata.version(name)) for name in names]
    (_HERE / "requirements.lock").write_text(_HEAD + "".join(blocks))


def _block(name: str, version: str) -> str:
    wheels = dict(sorted(_wheels(name, version)))
    told = "".join(f"# {digest[:12]} {wheel}\n" for wheel, digest in wheels.items())
    hashes = " \\\n".join(f"    --hash=sha256:{digest}" for digest in wheels.values())
    return f"\n{told}{name}=={version} \\\n{hashes}\n"


def _wheels(name: str, version: str) -> Iterator[tuple[str, str]]:
    """File name and hash of each wheel that pip would choose."""
    for python in PYTHONS:
        for machine in MACHINES:
            with tempfile.TemporaryDirectory() as folder:
                _download(f"{name}=={version}", python, machine, folder)
                for path in Path(folder).iterdir():
                    yield path.name, hashlib.sha256(path.read_bytes()).hexdigest()


def _download(requirement: str, python: str, machine: str, folder: str) -> None:
    platforms = [
        f"--platform={kind}_{machine}"
        for kind in ("manylinux2014", "manylinux_2_17", "manylinux_2_28")
    ]
    subprocess.run(
        [
            sys.executable, "-m", "pip", "download", "--quiet", "--no-deps",
            "--only-binary=:all:", "--implementation=cp", f"--python-version={python}",
            *platforms, "--dest", folder, requirement,
        ],
        check=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
