"""The printout: counted whole, kept head and tail, spooled when long, never more than a bound."""

import os
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from limbeck.sandbox.printout import Printout, tidy_spool


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(1, 60))
def test_head_and_tail_are_the_text_s_own(chunks: list[bytes], kept: int) -> None:
    printout = Printout(kept=kept)
    for chunk in chunks:
        printout.feed(chunk)
    whole = b"".join(chunks)
    assert printout.total == len(whole)
    assert printout.kept == min(len(whole), kept)
    text = printout.text()
    if len(whole) <= kept:
        assert text == whole.decode("utf-8", "replace")
        assert not printout.truncated
    else:
        head, tail = whole[: kept - kept // 2], whole[len(whole) - kept // 2 :]
        assert text.startswith(head.decode("utf-8", "replace"))
        assert text.endswith(tail.decode("utf-8", "replace"))
        assert f"{len(whole) - kept:,} bytes left out" in text


def test_memory_is_bounded_by_what_is_kept() -> None:
    printout = Printout(kept=1_000)
    for _ in range(1_000):
        printout.feed(b"x" * 4_096)
    assert sum(map(len, printout._tail)) <= 500 + 4_096
    assert len(printout._head) == 500


def test_a_short_printout_touches_no_file(tmp_path: Path) -> None:
    printout = Printout(kept=100, spool=tmp_path / "p" / "a.txt")
    printout.feed(b"x" * 100)
    printout.close()
    assert printout.spooled is None
    assert list(tmp_path.iterdir()) == []


def test_the_whole_of_a_long_one_is_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "p" / "a.txt"
    printout = Printout(kept=10, spool=path)
    chunks = [f"line {number}\n".encode() for number in range(100)]
    for chunk in chunks:
        printout.feed(chunk)
    printout.close()
    assert printout.spooled == path
    assert path.read_bytes() == b"".join(chunks)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_file_that_cannot_be_written_is_told_and_loses_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.symlink_to(tmp_path / "elsewhere")
    printout = Printout(kept=4, spool=path)
    printout.feed(b"abcdefgh")
    assert printout.spooled is None
    assert printout.spool_error
    assert printout.text().startswith("ab")
    assert not (tmp_path / "elsewhere").exists()


def _spool(folder: Path, *, days_old: dict[str, float], size: int = 100) -> None:
    for name, days in days_old.items():
        path = folder / f"{name}.txt"
        path.write_bytes(b"x" * size)
        when = time.time() - days * 24 * 3600
        os.utime(path, (when, when))


def _names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.iterdir())


def test_old_printouts_are_removed(tmp_path: Path) -> None:
    _spool(tmp_path, days_old={"old": 31, "new": 29})
    assert tidy_spool(tmp_path, 10**6) == []
    assert _names(tmp_path) == ["new"]


def test_over_the_quota_the_oldest_go_first(tmp_path: Path) -> None:
    _spool(tmp_path, days_old={"a": 4, "b": 3, "c": 2, "d": 1})
    assert tidy_spool(tmp_path, 400) == []
    assert _names(tmp_path) == ["a", "b", "c", "d"]
    tidy_spool(tmp_path, 250)
    assert _names(tmp_path) == ["c", "d"]
    tidy_spool(tmp_path, 0, tmp_path / "c.txt")
    assert _names(tmp_path) == ["c"]
    assert tidy_spool(tmp_path / "nowhere", 0) == []


def test_a_printout_that_is_written_is_never_removed(tmp_path: Path) -> None:
    printout = Printout(kept=4, spool=tmp_path / "busy.txt")
    printout.feed(b"0123456789")
    os.utime(tmp_path / "busy.txt", (0, 0))
    _spool(tmp_path, days_old={"new": 0})
    assert tidy_spool(tmp_path, 0) == []
    assert _names(tmp_path) == ["busy"]
    printout.close()
    os.utime(tmp_path / "busy.txt", (0, 0))
    tidy_spool(tmp_path, 10**6)
    assert _names(tmp_path) == []


def test_a_link_among_the_printouts_is_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    target = tmp_path / "target.txt"
    target.write_text("kept")
    (tmp_path / "spool" / "link.txt").symlink_to(target)
    tidy_spool(tmp_path / "spool", 0)
    assert _names(tmp_path / "spool") == []
    assert target.read_text() == "kept"


def test_what_cannot_be_removed_is_told(tmp_path: Path) -> None:
    (tmp_path / "folder.txt").mkdir()
    (problem,) = tidy_spool(tmp_path, 0)
    assert "folder.txt cannot be removed: " in problem
