"""Cgroups: version 1 for real where it is there.

Version 2: joining, freezing and killing for real where its hierarchy is mounted; limits on a tree of
files, with no kernel behind it, where version 1 has the controllers.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
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


def _level(folder: Path, **files: str) -> Path:
    """One cgroup of a tree of files, with room for ours below."""
    for one in (folder, folder / cgroup.NAME):
        one.mkdir(parents=True, exist_ok=True)
        (one / "cgroup.subtree_control").write_text("memory pids cpu")
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def _find(root: Path, path: str) -> cgroup.Hierarchies | None:
    own = root / "own"
    own.write_text(f"0::{path}\n")
    (root / "cgroup.controllers").write_text("memory pids cpu")
    return cgroup.find_hierarchies(root, own)


def test_version_2_is_made_as_low_as_it_can_be(tmp_path: Path) -> None:
    _level(tmp_path)
    service = _level(tmp_path / "system.slice/mine.service")
    assert _find(tmp_path, "/system.slice/mine.service").parents == {
        "unified": service / cgroup.NAME
    }


def test_version_2_climbs_only_past_what_limits_nothing(tmp_path: Path) -> None:
    _level(tmp_path)
    app = _level(tmp_path / "user.slice/app.slice")
    scope = tmp_path / "user.slice/app.slice/mine.scope"
    scope.mkdir()  # it has processes: it hands nothing down
    (scope / "memory.max").write_text("max\n")
    (scope / "cpu.max").write_text("max 100000\n")
    assert _find(tmp_path, "/user.slice/app.slice/mine.scope").parents == {
        "unified": app / cgroup.NAME
    }
    for name, text in (("memory.max", "104857600"), ("pids.max", "99"), ("cpu.max", "5 100000")):
        before = (scope / name).read_text() if (scope / name).exists() else "max\n"
        (scope / name).write_text(f"{text}\n")
        assert _find(tmp_path, "/user.slice/app.slice/mine.scope") is None
        (scope / name).write_text(before)
    assert _find(tmp_path, "/../other.slice") is None


def test_a_user_gets_only_a_delegated_subtree(tmp_path: Path) -> None:
    (tmp_path / "user.slice/session").mkdir(parents=True)
    assert _find(tmp_path, "/user.slice/session") is None


CALLER = """
import os, sys
from pathlib import Path
for path in sys.argv[1:]:
    Path(path, "cgroup.procs").write_text(str(os.getpid()))
from limbeck.sandbox.backend import Limits
from limbeck.sandbox.cgroup import Cgroup, find_hierarchies
found = find_hierarchies()
one = Cgroup(found, "test-below")
one.create(Limits(memory=256 << 20, cpu=1))
folders = {name: parent / "test-below" for name, parent in found.parents.items()}
for name in ("memory", "cpu"):
    print(folders[name])
stat = (folders["memory"] / "memory.stat").read_text()
print([line for line in stat.splitlines() if line.startswith("hierarchical_memory_limit")][0])
print((folders["cpu"] / "cpu.cfs_quota_us").read_text().strip())
assert one.remove()
"""


@pytest.mark.skipif(HERE is None or HERE.version != 1, reason="no cgroup v1 can be made here")
def test_a_sandbox_cannot_leave_the_caller_s_own_limits() -> None:
    """A caller in a cgroup of 128 MiB and half a core, for real: its sandboxes lie below."""
    callers = {
        name: HERE.parents[name].parent / "limbeck-test-caller" for name in ("memory", "cpu")
    }
    try:
        for folder in callers.values():
            folder.mkdir(exist_ok=True)
        (callers["memory"] / "memory.limit_in_bytes").write_text(str(128 << 20))
        (callers["cpu"] / "cpu.cfs_quota_us").write_text("50000")
        done = subprocess.run(
            [sys.executable, "-c", CALLER, *map(str, callers.values())],
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == [
            *(str(folder / cgroup.NAME / "test-below") for folder in callers.values()),
            f"hierarchical_memory_limit {128 << 20}",
            "-1",  # the kernel refuses a whole core below half of one: the caller's own holds
        ]
    finally:
        for folder in callers.values():
            for _ in range(200):
                with contextlib.suppress(OSError):
                    folder.rmdir()
                if not folder.exists():
                    break
                time.sleep(0.01)
    assert not any(folder.exists() for folder in callers.values())


def _unified() -> Path | None:
    """Where version 2 is mounted, and cgroups can be made."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[0] == "cgroup2" and os.access(before.split()[4], os.W_OK):
            return Path(before.split()[4])
    return None


UNIFIED = _unified()
FORKING = """
import os, sys, time
open(sys.argv[1], "w").write(str(os.getpid()))
for _ in range(12):
    if os.fork() == 0:
        while True:  # each of these starts another, all the time
            if os.fork() == 0:
                os._exit(0)
            os.wait()
print("running", flush=True)
time.sleep(100)
"""


@pytest.mark.skipif(UNIFIED is None, reason="no cgroup v2 can be made here")
@pytest.mark.parametrize("frozen", [False, True])
def test_version_2_kills_all_at_once_for_real(frozen: bool) -> None:
    parent = UNIFIED / "limbeck-test-unified"
    one = cgroup.Cgroup(cgroup.Hierarchies(version=2, parents={"unified": parent}), "box")
    box = parent / "box"
    box.mkdir(parents=True)
    try:
        (joins,) = one.procs_files()
        running = subprocess.Popen([sys.executable, "-c", FORKING, joins], stdout=subprocess.PIPE)
        assert running.stdout.readline() == b"running\n"
        assert "populated 1" in (box / "cgroup.events").read_text()
        if frozen:
            (box / "cgroup.freeze").write_text("1")
            _until(lambda: "frozen 1" in (box / "cgroup.events").read_text())
        one.kill()
        assert running.wait(10) == -9
        running.stdout.close()
        _until(lambda: "populated 0" in (box / "cgroup.events").read_text())
        _until(one.remove)
        assert not parent.exists()
        one.kill()  # nothing is there any more
    finally:
        with contextlib.suppress(OSError):
            (box / "cgroup.kill").write_text("1")
        for folder in (box, parent):
            with contextlib.suppress(OSError):
                folder.rmdir()


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it never came to hold")


@pytest.mark.skipif(HERE is None, reason="no cgroup can be made here")
def test_a_parent_that_goes_away_meanwhile_is_made_again() -> None:
    """Two executors: the end of one's last sandbox takes the parent away, the other makes its next."""
    ones = [cgroup.Cgroup(HERE, f"test-parent-{number}") for number in range(2)]
    try:
        for _ in range(20):
            ones[0].create(Limits())
            assert ones[0].remove()
            ones[1].create(Limits())
            assert ones[1].remove()
    finally:
        for one in ones:
            one.remove()


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
