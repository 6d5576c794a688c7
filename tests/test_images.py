"""The image: reproducible, nothing else in it, and the Dockerfile declares the same."""

import io
import json
import re
import stat
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
from kit.sandboxed import execute, needs_docker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename

from limbeck import ConfigurationError
from limbeck.sandbox import image, image_build
from limbeck.sandbox.docker import DockerBackend
from limbeck.sandbox.provision import examine, prepare_runtime, reachable_python

ROOT = Path(__file__).parent.parent
DECLARED = image.load_declaration()
DOCKERFILE = (ROOT / "images/Dockerfile").read_text()


@pytest.fixture(scope="module")
def layer() -> bytes:
    return _build()


def _build() -> bytes:
    runtime = prepare_runtime()
    return image.build_layer(DECLARED, runtime, examine(reachable_python(), runtime))


def test_two_builds_have_one_digest(layer: bytes) -> None:
    assert image.digest(_build()) == image.digest(layer)


def test_there_is_nothing_but_python_and_what_it_needs(layer: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        members = archive.getmembers()
        bill = json.load(archive.extractfile("limbeck/sbom.cdx.json"))
    programs = {
        Path(one.name).name
        for one in members
        if (one.isfile() or one.issym()) and re.match(r"(usr/)?(local/)?s?bin/", one.name)
    }
    assert programs
    assert all(name.startswith("python3") for name in programs), programs
    names = {one.name for one in members}
    assert not [name for name in names if "/pip/" in name or "/ensurepip" in name]
    assert {(one.uid, one.gid, one.mtime) for one in members} == {(0, 0, 0)}
    assert not [one.name for one in members if one.mode & 0o6000]
    listed = {component["name"] for component in bill["components"]}
    assert listed == {"cpython", "limbeck", *DECLARED.packages}
    assert all(component["version"] for component in bill["components"])


def test_the_dockerfile_declares_the_same() -> None:
    assert f"USER {DECLARED.user}\n" in DOCKERFILE
    assert f"WORKDIR {DECLARED.workdir}\n" in DOCKERFILE
    assert f"ENTRYPOINT {json.dumps(list(DECLARED.entrypoint))}\n" in DOCKERFILE
    for name, value in DECLARED.environment.items():
        assert f"{name}={value}" in DOCKERFILE
    for name, value in DECLARED.labels.items():
        assert f'{name}="{value}"' in DOCKERFILE
    assert "--require-hashes" in DOCKERFILE
    assert "FROM ${PYTHON}" in DOCKERFILE


def test_the_dockerfile_s_first_stage_gathers_what_the_offline_build_does(
    layer: bytes, tmp_path: Path
) -> None:
    """The stage is run here, by the host's Python, as the Dockerfile runs it on its base."""
    lib = prepare_runtime().lib
    program = (
        "import sys, tomllib, stage; from pathlib import Path; "
        "stage.main(tomllib.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]), Path(sys.argv[3]))"
    )
    arguments = [ROOT / "images/image.toml", lib, tmp_path]
    subprocess.run(
        [reachable_python(), "-c", program, *arguments],
        check=True,
        env={
            "PYTHONPATH": str(ROOT / "images"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": "/usr/bin:/bin",
        },
    )
    gathered = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        offline = {one.name for one in archive if one.name.split("/")[0] != "limbeck"}
    assert gathered == offline
    assert stat.S_IMODE((tmp_path / "workspace").stat().st_mode) == 0o1777


def test_the_first_stage_refuses_another_minor() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "images/stage.py", "3.4"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "limbeck runs under 3.4" in done.stderr


def _locked() -> dict[str, tuple[str, list[str], int]]:
    """Package to its pin, its wheels, and how many hashes it has."""
    found = {}
    for block in (ROOT / "images/requirements.lock").read_text().split("\n\n")[1:]:
        ((name, version),) = re.findall(r"^([\w.-]+)==(\S+) \\$", block, re.MULTILINE)
        wheels = re.findall(r"^# [0-9a-f]{12} (\S+\.whl)$", block, re.MULTILINE)
        marks = re.findall(r"^# ([0-9a-f]{12}) ", block, re.MULTILINE)
        hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", block)
        assert marks == [one[:12] for one in hashes]
        found[name] = (version, wheels, len(hashes))
    return found


def test_the_lock_pins_the_declared_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ranges = {one.name: one.specifier for one in map(Requirement, project["dependencies"])}
    locked = _locked()
    assert set(locked) == set(DECLARED.packages)
    for name, (version, _, _) in locked.items():
        assert version in ranges.get(name, SpecifierSet())


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("minor", [11, 12, 13])
def test_the_lock_has_a_wheel_for_every_python_and_machine(minor: int, machine: str) -> None:
    platforms = [f"manylinux2014_{machine}"]
    supported = {
        *cpython_tags((3, minor), platforms=platforms),
        *compatible_tags((3, minor), f"cp3{minor}", platforms),
    }
    for name, (version, wheels, hashes) in _locked().items():
        assert len(wheels) == hashes
        fits = []
        for wheel in wheels:
            found, written, _, tags = parse_wheel_filename(wheel)
            assert (found, str(written)) == (canonicalize_name(name), version)
            fits += [wheel] if tags & supported else []
        assert len(fits) == 1, (name, fits)


def test_the_lock_has_the_versions_that_the_offline_build_takes() -> None:
    """Else the two ways would give two images under one label."""
    image_build.check_lock()


def test_a_lock_with_other_versions_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text("grpcio==1.0.0 \\\n    --hash=sha256:00\n")
    with pytest.raises(ConfigurationError, match=r"pins grpcio 1\.0\.0, and limbeck runs with"):
        image_build.check_lock(lock)


@pytest.mark.parametrize(
    "name", ["python:3.11", "python", "python@sha256:00", "-f x@sha256:" + "0" * 64]
)
def test_a_base_without_a_digest_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="does not name its digest"):
        image_build.check_base(name)


def test_the_context_has_what_the_dockerfile_copies() -> None:
    with tarfile.open(fileobj=io.BytesIO(image_build.context())) as archive:
        names = set(archive.getnames())
    copied = re.findall(r"^COPY (?!--from)(\S+(?: \S+)*) \S+$", DOCKERFILE, re.MULTILINE)
    assert len(copied) == 3
    for name in " ".join(copied).split():
        assert name in names or any(one.startswith(f"{name}/") for one in names), name
    assert image_build.DOCKERFILE in names
    assert "runtime/gate/__init__.py" in names


def _build_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "limbeck", "image", "build", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@needs_docker
def test_a_registry_that_is_out_of_reach_is_told_with_the_way_without_one() -> None:
    base = f"registry.invalid/python@sha256:{'0' * 64}"
    done = _build_command("--python-image", base)
    assert done.returncode == 5
    assert "the image could not be built" in done.stderr
    assert f"Hint: the engine must reach the registry of {base}" in done.stderr
    assert "--offline" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [(), ("--offline", "--python-image", "python@sha256:00")])
def test_a_build_is_either_offline_or_from_a_registry(arguments: tuple[str, ...]) -> None:
    done = _build_command(*arguments)
    assert done.returncode == 2
    assert "--offline, or --python-image" in done.stderr


def test_the_provisioned_packages_are_the_declared_ones() -> None:
    from limbeck.sandbox.provision import PACKAGES

    assert set(PACKAGES) == set(DECLARED.packages)


@needs_docker
def test_an_image_of_another_version_is_refused() -> None:
    missing = DockerBackend(image_name="limbeck:nowhere")
    result = execute("1", backend=missing)
    assert result.status == "unavailable"
    assert "limbeck image build --offline" in result.for_model()
