"""The host's disk is full: nothing runs and the result says so, or only the spool is missing."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.sandboxed import BACKENDS, ON_BOTH, execute, left_since, traces

from limbeck.sandbox import folders


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of one page."""
    place = tmp_path / "m"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k,nr_inodes=64,mode=0711", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a file system cannot be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@ON_BOTH
def test_no_room_for_a_sandbox_s_folder(small: Path, where: str, monkeypatch) -> None:
    before = traces()
    (small / "fill").write_bytes(b"x" * 4096)
    monkeypatch.setattr(folders, "_base_path", lambda: small)
    result = execute("print(1)", backend=BACKENDS[where])
    assert (result.status, result.started) == ("unavailable", False)
    assert "No space left on device" in result.for_model()
    monkeypatch.undo()
    assert not left_since(before)
    assert sorted(path.name for path in small.iterdir()) in (["fill", "uids"], ["fill"])


def test_no_room_for_a_long_printout(small: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(small))
    result = execute("for number in range(100_000): print(number)")
    assert result.status == "ok"
    assert result.printout.startswith("0\n1\n")
    assert result.printout.endswith("99999\n")
    assert result.artifacts == ()
    (warning,) = result.warnings
    assert warning.code == "spool"
    assert "No space left on device" in warning.message
