"""Cgroups: version 1 for real where it is there, version 2 on a tree of files (no kernel behind it)."""

import os
from pathlib import Path

import pytest

from limbeck.sandbox import cgroup
from limbeck.sandbox.backend import Limits

HERE = cgroup.find_hierarchies()
V2_FILES = ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max")


def _v2_tree(root: Path, controllers: str = "memory pids cpu") -> Path:
    for folder in (root, root / cgroup.NAME):
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.controllers").write_text("memory pids cpu")
        (folder / "cgroup.subtree_control").write_text(controllers)
    box = root / cgroup.NAME / "box"
    box.mkdir()
    for name in (*V2_FILES, "cgroup.procs"):
        (box / name).write_text("")
    return box


@pytest.mark.skipif(HERE is None, reason="no cgroup can be made here")
def test_limits_are_set_read_back_and_removed() -> None:
    one = cgroup.Cgroup(HERE, "test-limits")
    one.create(Limits(memory=64 << 20, pids=33, cpu=0.5))
    try:
        for path in one.procs_files():
            assert Path(path).exists()
        assert one.usage().cpu_seconds == 0
        assert one.oom_kills() == 0
    finally:
        assert one.remove()
    assert not any(Path(path).exists() for path in one.procs_files())


def test_version_2_on_a_tree_of_files(tmp_path: Path) -> None:
    box = _v2_tree(tmp_path)
    own = tmp_path / "own"
    own.write_text("0::/\n")
    found = cgroup.find_hierarchies(tmp_path, own)
    assert found.kind == "cgroup v2"
    one = cgroup.Cgroup(found, "box")
    one.create(Limits(memory=64 << 20, pids=33, cpu=0.5))
    assert {name: (box / name).read_text() for name in V2_FILES} == {
        "memory.max": str(64 << 20), "memory.swap.max": "0", "memory.oom.group": "1",
        "pids.max": "33", "cpu.max": "50000 100000",
    }  # fmt: skip
    (box / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    (box / "memory.peak").write_text("12345\n")
    (box / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
    assert one.usage().cpu_seconds == 1.5
    assert one.usage().memory_peak == 12345
    assert one.oom_kills() == 2


def test_a_user_gets_only_a_delegated_subtree(tmp_path: Path, monkeypatch) -> None:
    _v2_tree(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    own = tmp_path / "own"
    own.write_text("0::/user.slice/session\n")
    assert cgroup.find_hierarchies(tmp_path, own) is None


def test_a_limit_that_does_not_hold_is_an_error(tmp_path: Path) -> None:
    fixed = tmp_path / "pids.max"
    fixed.symlink_to("/dev/null")
    with pytest.raises(ValueError, match="although 17 was written"):
        cgroup._set(fixed, 17)
    rounded = tmp_path / "memory.max"
    rounded.write_text("")
    cgroup._set(rounded, 64 << 20)


def test_nothing_is_found_where_nothing_can_be_made(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.write_text("a file, no folder")
    assert cgroup.find_hierarchies(closed) is None
