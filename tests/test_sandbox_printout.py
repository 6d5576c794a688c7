"""The printout: counted whole, kept head and tail, spooled when long, never more than a bound."""

import asyncio
import os
import socket
import tempfile
import time
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from limbeck.sandbox.output import OutputListener
from limbeck.sandbox.printout import Printout, _continued, tidy_spool, whole_characters


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(1, 60))
def test_head_and_tail_are_the_text_s_own(chunks: list[bytes], kept: int) -> None:
    printout = Printout(kept=kept)
    for chunk in chunks:
        printout.feed(chunk)
    whole = b"".join(chunks)
    assert printout.total == len(whole)
    text = printout.text()
    if len(whole) <= kept:
        assert printout.kept == len(whole)
        assert text == whole.decode("utf-8", "replace")
        assert not printout.truncated
    else:
        head, tail = whole[: kept - kept // 2], whole[len(whole) - kept // 2 :]
        head, tail = head[: whole_characters(head)], tail[_continued(tail) :]
        assert kept - 6 <= printout.kept == len(head) + len(tail) <= kept
        assert text.startswith(head.decode("utf-8", "replace"))
        assert text.endswith(tail.decode("utf-8", "replace"))
        assert f"{len(whole) - printout.kept:,} bytes left out" in text


@given(st.text(max_size=40), st.integers(0, 160))
def test_a_character_is_whole_or_held_back(text: str, cut: int) -> None:
    data = text.encode("utf-8", "ignore")[:cut]
    end = whole_characters(data)
    assert data[:end].decode("utf-8") in text  # strict: no half character
    assert len(data) - end < 4


@given(st.text(min_size=1, max_size=60), st.integers(2, 40))
def test_no_character_is_cut_where_something_is_left_out(text: str, kept: int) -> None:
    printout = Printout(kept=kept)
    printout.feed(text.encode("utf-8", "ignore"))
    assert "\ufffd" in text or "\ufffd" not in printout.text()


async def _printed(*parts: tuple[int, bytes], maximum: int = 1_000):
    """What on_output heard, and the printout, of writes to stdout (0) and stderr (1)."""
    heard: list[tuple[str, str]] = []
    printout = Printout(kept=1_000)
    with tempfile.TemporaryDirectory() as name:
        listener = OutputListener()
        listener.open(Path(name), os.geteuid())
        listener.begin(printout, maximum, lambda stream, text: heard.append((stream, text)))
        streams = [socket.socket(socket.AF_UNIX) for _ in range(2)]
        for stream in streams:
            stream.connect(f"{name}/o")
        await listener.connected
        for number, data in parts:
            streams[number].sendall(data)
            await asyncio.sleep(0.02)
        for stream in streams:
            stream.close()
        await listener.drain()
    return heard, printout, listener


def test_characters_that_are_split_between_reads_are_joined() -> None:
    parts = [(0, b"a\xe2\x82"), (1, b"x\xf0\x9f"), (0, b"\xacb\xc3"), (1, b"\x98\x80")]
    heard, printout, _ = asyncio.run(_printed(*parts))
    assert heard == [
        ("stdout", "a"),
        ("stderr", "x"),
        ("stdout", "\u20acb"),
        ("stderr", "\U0001f600"),
        ("stdout", "\ufffd"),  # its rest never came: told at the end
    ]
    assert printout.text() == "".join(text for _, text in heard)
    assert printout.total == sum(len(data) for _, data in parts)


def test_the_last_that_is_kept_reaches_on_output() -> None:
    heard, printout, listener = asyncio.run(_printed((0, b"abc"), (0, b"defgh"), maximum=5))
    assert heard == [("stdout", "abc"), ("stdout", "de")]
    assert listener.overflow.is_set()
    assert printout.text() == "abcde"


def test_who_listens_badly_does_not_stop_the_reading() -> None:
    async def test() -> Printout:
        printout = Printout(kept=100)
        listener = OutputListener()
        listener.begin(printout, 100, lambda *_: 1 / 0)
        listener._take("stdout", b"a")
        listener._take("stdout", b"b")
        await listener.drain()
        return printout

    assert asyncio.run(test()).text() == "ab"


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
