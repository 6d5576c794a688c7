"""The package as it is installed: cheap to import, whole, typed."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import limbeck

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
STOREYS = ("runtime", "stubs", "bridge", "sandbox", "benchmark", "serve")
HEAVY = (
    "asyncio", "click", "docker", "google.protobuf", "griffe", "grpc", "pydantic",
    "RestrictedPython",
)  # fmt: skip


def _loaded(program: str) -> set[str]:
    program = f"import sys\n{program}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd="/"
    )
    return set(done.stderr.split())


def test_import_costs_nothing() -> None:
    loaded = _loaded("import limbeck")
    assert not loaded & set(HEAVY)


def test_help_loads_nothing_but_click() -> None:
    program = """
from limbeck.serve.cli import main
try:
    main(["--help"])
except SystemExit:
    pass
"""
    assert not _loaded(program) & (set(HEAVY) - {"click"})


def test_process_1_stays_small() -> None:
    loaded = _loaded("import limbeck.runtime.supervisor")
    assert not loaded & {*HEAVY, "json", "struct", "ctypes", "threading", "subprocess", "socket"}


@pytest.mark.parametrize("name", limbeck.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(limbeck, name) is not None
    assert name in dir(limbeck)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = limbeck.nonsense


def test_every_folder_of_modules_is_listed() -> None:
    listed = set(PROJECT["tool"]["setuptools"]["packages"])
    found = {
        ".".join(["limbeck", *path.parent.relative_to(ROOT).parts])
        for storey in STOREYS
        for path in (ROOT / storey).rglob("*.py")
    }
    assert listed == found | {"limbeck", "limbeck.images"}  # a folder of data


def test_a_wheel_holds_everything(tmp_path: Path) -> None:
    # Built from a copy: a checkout's own build/ would lend the wheel files that are gone.
    source = tmp_path / "source"
    shutil.copytree(
        ROOT, source, ignore=shutil.ignore_patterns(".*", "build", "dist", "*.egg-info")
    )
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path, source],
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("limbeck/")}
    assert names >= {"limbeck/py.typed", "limbeck/runtime/wire.proto"}
    files = [
        *ROOT.glob("*.py"),
        *(one for storey in STOREYS for one in (ROOT / storey).rglob("*.py*")),
    ]
    data = [
        path
        for package, patterns in PROJECT["tool"]["setuptools"]["package-data"].items()
        for pattern in patterns
        for path in (ROOT / "/".join(package.split(".")[1:])).glob(pattern)
    ]
    assert names == {
        f"limbeck/{path.relative_to(ROOT)}" for path in [*files, *data] if path.suffix != ".pyc"
    }
