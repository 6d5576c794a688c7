"""Host folders: whose they are, who may look in, and what is taken for a leftover."""

import os
import shutil
import stat

import pytest

from limbeck import ConfigurationError
from limbeck.sandbox import folders


@pytest.fixture
def box(tmp_path, monkeypatch):
    """A name for a folder below a base of the test's own."""
    monkeypatch.setattr(folders, "_base_path", lambda: tmp_path / "b")
    monkeypatch.setattr(folders, "_check_length", lambda base: None)
    return "0badcafe"


def test_a_folder_lets_the_uid_pass_and_nobody_list(box: str) -> None:
    folder = folders.make_folder(box)
    modes = {
        path.name: oct(stat.S_IMODE(path.stat().st_mode))
        for path in (folder.root.parent, folder.root, folder.bridge, folder.tools, folder.data)
    }
    assert modes == {
        "b": "0o711", box: "0o711", "bridge": "0o711", "tools": "0o755", "data": "0o755",
    }  # fmt: skip
    folders.remove_folder(folder)
    assert not folder.root.exists()


def test_a_folder_in_the_making_is_no_leftover(box: str, monkeypatch) -> None:
    seen = []
    this_process = folders.this_process

    def write() -> str:
        seen.append(folders.leftovers())
        return this_process()

    monkeypatch.setattr(folders, "this_process", write)
    replace = os.rename
    monkeypatch.setattr(
        os,
        "rename",
        lambda path, target: (seen.append(folders.leftovers()), replace(path, target))[1],
    )
    folders.make_folder(box)
    assert seen == [[], []]
    assert folders.leftovers() == []


def test_a_dead_process_s_folder_is_a_leftover(box: str) -> None:
    folder = folders.make_folder(box)
    (folder.root / "owner").write_text("1 12345678901")
    assert folders.leftovers() == [box]


def test_a_folder_that_lost_its_owner_is_one_when_it_is_old(box: str) -> None:
    folder = folders.make_folder(box)
    (folder.root / "owner").unlink()
    (folders.base_folder() / "uids").mkdir()
    assert folders.leftovers() == []
    for path in (folder.root, folders.base_folder() / "uids"):
        os.utime(path, (1, 1))
    assert folders.leftovers() == [box]


def test_a_base_that_is_no_folder_of_ours_is_refused(box: str, tmp_path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "b").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="not a folder of ours"):
        folders.make_folder(box)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    shutil.rmtree(tmp_path / "elsewhere")
