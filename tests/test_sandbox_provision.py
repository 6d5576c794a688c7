"""What is copied for the sandboxes: readable by any uid, whole or not there, found by its content."""

import importlib.util
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from limbeck import ConfigurationError
from limbeck.sandbox import provision
from limbeck.sandbox.diagnosis import explain


@pytest.fixture
def closed_umask():
    """As on a hardened host."""
    before = os.umask(0o077)
    yield
    os.umask(before)


def _copy(root: Path) -> None:
    provision._copy(root, list(provision._own_files()), [])


def test_any_uid_can_read_it_whatever_the_umask(tmp_path: Path, closed_umask: None) -> None:
    _copy(tmp_path / "runtime")
    paths = [tmp_path / "runtime", *(tmp_path / "runtime").rglob("*")]
    wanted = {True: 0o555, False: 0o444}
    closed = [
        path
        for path in paths
        if stat.S_IMODE(path.stat().st_mode) & 0o777 & wanted[path.is_dir()]
        != wanted[path.is_dir()]
    ]
    assert any(path.suffix == ".pyc" for path in paths)
    assert closed == []


def test_it_imports_without_a_checkout_and_writes_nothing(tmp_path: Path) -> None:
    _copy(tmp_path / "runtime")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    code = "import limbeck.runtime.supervisor as s; print(s.__file__)"
    done = subprocess.run(
        [sys.executable, "-s", "-S", "-P", "-c", code],
        env={"PYTHONPATH": str(tmp_path / "runtime" / "lib")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(tmp_path / "runtime/lib/limbeck/runtime/supervisor.py")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_every_module_is_compiled_for_a_read_only_place(tmp_path: Path) -> None:
    _copy(tmp_path / "runtime")
    for source in (tmp_path / "runtime").rglob("*.py"):
        compiled = Path(importlib.util.cache_from_source(str(source))).read_bytes()
        # Flags of PEP 552: by hash, and never compared with the source.
        assert int.from_bytes(compiled[4:8], "little") == 1, source


def test_two_at_once_leave_one_whole_copy(tmp_path: Path) -> None:
    both = [threading.Thread(target=_copy, args=(tmp_path / "runtime",)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert [path.name for path in tmp_path.iterdir()] == ["runtime"]
    assert (tmp_path / "runtime/lib/limbeck/runtime/worker.py").exists()


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    missing = [*provision._own_files(), ("lib/none.py", tmp_path / "none")]
    with pytest.raises(FileNotFoundError):
        provision._copy(tmp_path / "runtime", missing, [])
    assert list(tmp_path.iterdir()) == []


def test_another_content_is_another_folder(tmp_path: Path) -> None:
    file = tmp_path / "worker.py"
    file.write_text("one")
    first = provision._digest([("lib/limbeck/runtime/worker.py", file)])
    file.write_text("two")
    assert provision._digest([("lib/limbeck/runtime/worker.py", file)]) != first


def test_the_folder_is_made_once() -> None:
    runtime = provision.prepare_runtime()
    before = runtime.root.stat().st_ino
    assert provision.prepare_runtime().root.stat().st_ino == before
    assert not any("site-packages" in str(path) for path in runtime.lib.iterdir())


def test_licences_travel_with_the_packages() -> None:
    runtime = provision.prepare_runtime()
    for name in provision.PACKAGES:
        assert any((runtime.root / "licences" / name).iterdir()), name


def test_a_python_that_is_none_is_named(tmp_path: Path) -> None:
    runtime = provision.RuntimeFolder(root=tmp_path)
    with pytest.raises(ConfigurationError, match="is no Python that runs"):
        provision.examine("/bin/true", runtime)


def test_a_python_of_another_minor_is_named_with_the_mend(tmp_path: Path) -> None:
    other = tmp_path / "python3"
    other.write_text('#!/bin/sh\necho \'[[3, 4, 1], "x", "/lib", ""]\'\n')
    other.chmod(0o755)
    runtime = provision.RuntimeFolder(root=tmp_path)
    with pytest.raises(ConfigurationError, match=r"is Python 3\.4.*\nHint: name a Python 3\."):
        provision.examine(str(other), runtime)


def test_a_bwrap_whose_libraries_are_out_of_reach_is_not_python_s_fault() -> None:
    said = (
        "/home/u/bwrap: error while loading shared libraries: libcap.so.2: "
        "cannot open shared object file: Permission denied"
    )
    text = explain(said, "/usr/bin/python3", "/home/u/bwrap")
    assert "Hint: name a bwrap that anybody may read" in text
