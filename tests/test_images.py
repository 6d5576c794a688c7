"""The image: reproducible, nothing else in it, and the Dockerfile declares the same."""

import io
import json
import re
import tarfile
from pathlib import Path

import pytest
from kit.sandboxed import DOCKER, execute

from limbeck.sandbox import image
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
    (left_out,) = re.findall(r"left_out = \{(.*?)\}", DOCKERFILE, re.DOTALL)
    assert set(re.findall(r'"([^"]+)"', left_out)) == DECLARED.left_out
    (folders,) = re.findall(r"for folder in \((.*?)\):", DOCKERFILE)
    assert {f"/{name}" for name in re.findall(r'"([^"]+)"', folders)} == set(DECLARED.folders)
    assert "--require-hashes" in DOCKERFILE
    assert "FROM ${PYTHON}" in DOCKERFILE


def test_the_lock_pins_the_declared_packages_with_hashes() -> None:
    text = (ROOT / "images/requirements.lock").read_text()
    pinned = re.findall(r"^([\w.-]+)==[\w.]+ \\$", text, re.MULTILINE)
    assert {name.lower().replace("_", "-") for name in pinned} == {
        name.lower().replace("_", "-") for name in DECLARED.packages
    }
    for block in re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]:
        assert "--hash=sha256:" in block


def test_the_provisioned_packages_are_the_declared_ones() -> None:
    from limbeck.sandbox.provision import PACKAGES

    assert set(PACKAGES) == set(DECLARED.packages)


def test_an_image_of_another_version_is_refused() -> None:
    import asyncio

    from limbeck.sandbox.docker import DockerBackend

    if asyncio.run(DOCKER.check()) is not None:
        pytest.skip("no docker here")
    missing = DockerBackend(image_name="limbeck:nowhere")
    result = execute("1", backend=missing)
    assert result.status == "unavailable"
    assert "limbeck image build --offline" in result.for_model()
