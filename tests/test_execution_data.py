"""Input files: copied to where the script reads them as /data, and refused with the mend."""

import asyncio
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kit.sandboxed import BACKEND, BACKENDS, ON_BOTH, execute, left_since, traces

from limbeck import AsyncExecutor, ConfigurationError, Executor
from limbeck.sandbox import inputs

READ = """
import os
for folder, _, names in sorted(os.walk("/data")):
    for name in sorted(names):
        path = os.path.join(folder, name)
        print(path, oct(os.stat(path).st_mode), open(path, "rb").read())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("1,2\n")
    (tmp_path / "in" / "deep").mkdir()
    (tmp_path / "in" / "deep" / "b.bin").write_bytes(b"\0\xff")
    (tmp_path / "in" / "a.csv").chmod(0o600)
    return tmp_path / "in"


@ON_BOTH
def test_files_folders_and_bytes_are_read_under_data(where: str, folder: Path) -> None:
    before = traces()
    with Executor(backend=BACKENDS[where], gate="off") as executor:
        result = executor.execute_code(READ, data=[folder / "a.csv", folder])
        assert result.printout.splitlines() == [
            "/data/a.csv 0o100444 b'1,2\\n'",
            "/data/in/a.csv 0o100444 b'1,2\\n'",
            "/data/in/deep/b.bin 0o100444 b'\\x00\\xff'",
        ]
        result = executor.execute_code(READ, data={"x": b"abc", "y.csv": folder / "a.csv"})
        assert [line.split()[0] for line in result.printout.splitlines()] == [
            "/data/x",
            "/data/y.csv",
        ]
        # Nothing of one execution is seen by the next.
        assert executor.execute_code(READ).printout == ""
    assert (folder / "a.csv").stat().st_mode & 0o777 == 0o600
    assert not left_since(before)


@ON_BOTH
def test_they_cannot_be_changed_from_inside(where: str, folder: Path) -> None:
    script = """
import os
for act in (lambda: open("/data/a.csv", "a"), lambda: os.chmod("/data/a.csv", 0o666),
            lambda: os.unlink("/data/a.csv"), lambda: open("/data/new", "x")):
    try:
        act()
    except OSError as error:
        print(type(error).__name__, error.errno)
"""
    result = execute(script, backend=BACKENDS[where], data=[folder / "a.csv"])
    assert len(result.printout.splitlines()) == 4, result.for_model()
    assert (folder / "a.csv").read_text() == "1,2\n"


def test_the_gate_lets_them_be_read(folder: Path) -> None:
    script = "import csv\nprint(list(csv.reader(open('/data/a.csv'))))"
    result = execute(script, gate="on", data=[folder / "a.csv"])
    assert result.printout == "[['1', '2']]\n", result.for_model()


def test_a_warm_sandbox_gets_its_inputs_too(folder: Path) -> None:
    import time

    with Executor(backend=BACKEND, gate="off", warm=1) as executor:
        executor.execute_code("1")
        while not executor.statistics().warm:
            time.sleep(0.05)
        result = executor.execute_code(READ, data={"x": b"abc"})
    assert (result.sandbox.start, result.printout) == ("warm", "/data/x 0o100444 b'abc'\n")


def test_bad_inputs_are_refused_before_anything_starts(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for data, words in [
        ([tmp_path / "none.csv"], ["no file", "none.csv"]),
        ([folder / "a.csv", str(folder / "a.csv")], ["two inputs", "a.csv", "give them names"]),
        ({"../x": b""}, ["'../x'"]),
        ({"": b""}, ["''"]),
        ({"printouts": b""}, ["limbeck's own"]),
        ({"x" * 300: b""}, ["255 bytes"]),
        ([tmp_path / "pipe"], ["neither a file nor a folder"]),
        (str(folder), ["a single path", "["]),
        ({"\ud800": b""}, ["no name of a file"]),
        ({"x": 5}, ["'x' is a int", "a path, bytes or a binary file"]),
        ([5], ["a int has no name", "NAME"]),
        ([b"abc"], ["a bytes has no name", "NAME"]),
        ([io.BytesIO(b"abc")], ["an open file has no name", "FILE"]),
        (io.BytesIO(b"abc"), ["a single file", "NAME"]),
        ({"x": io.StringIO("abc")}, ["'x' is open for text", "binary"]),
    ]:
        with Executor(backend=BACKEND) as executor, pytest.raises(ConfigurationError) as error:
            executor.execute_code("1", data=data)
        assert all(word in str(error.value) for word in words), (data, str(error.value))


def test_what_cannot_be_copied_is_told_and_nothing_runs(folder: Path, monkeypatch) -> None:
    before = traces()
    huge = folder / "huge"
    with huge.open("wb") as file:
        file.truncate(1 << 42)
    result = execute("print(1)", data=[huge])
    assert (result.status, result.started) == ("unavailable", False)
    assert "4,398,046,511,104 bytes" in result.for_model()
    with Executor(backend=BACKEND, limits={"inputs": 1 << 50}) as executor:
        result = executor.execute_code("print(1)", data=[huge])
    assert (result.status, result.started) == ("unavailable", False)
    assert "4,398,046,511,104 bytes, " in result.for_model()
    assert " are free in " in result.for_model()
    huge.unlink()
    (folder / "link").symlink_to("/etc/passwd")
    result = execute("print(1)", data=[folder])
    assert (result.status, result.printout) == ("unavailable", "")
    assert "is a link or a device" in result.for_model()
    (folder / "link").unlink()
    deep = folder.parent / "q"
    (deep / "q" / "q" / "q" / "q").mkdir(parents=True)
    monkeypatch.setattr(inputs, "MAX_DEPTH", 3)
    result = execute("print(1)", data=[deep])
    assert (result.status, result.started) == ("unavailable", False)
    assert "more than 3 levels deep" in result.for_model()
    monkeypatch.setattr(inputs, "MAX_FILES", 2)
    (folder / "c").touch()
    result = execute("print(1)", data=[folder])
    assert "more than 2 input files" in result.for_model()
    assert not left_since(before)


def test_open_files_are_read_from_where_they_stand(folder: Path) -> None:
    standing = io.BytesIO(b"0123456789")
    standing.seek(4)
    reading, writing = os.pipe()
    os.write(writing, b"of a pipe")
    os.close(writing)
    with (folder / "a.csv").open("rb") as named, open(reading, "rb") as pipe:
        script = "for p in ('a.csv', 'part', 'pipe'): print(open('/data/' + p, 'rb').read())"
        data = {"a.csv": named, "part": standing, "pipe": pipe}
        result = execute(script, data=data)
        named.seek(0)
        again = execute("print(open('/data/a.csv', 'rb').read())", data=[named])
    content = (folder / "a.csv").read_bytes()
    assert result.printout == f"{content}\nb'456789'\nb'of a pipe'\n"
    assert again.printout == f"{content}\n"


class _Endless:
    """A stream that nobody knows the length of."""

    def read(self, size: int) -> bytes:
        return b"x" * size


class _Broken:
    def __init__(self, given: object) -> None:
        self._given = given

    def read(self, size: int) -> object:
        if isinstance(self._given, Exception):
            raise self._given
        return self._given


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (_Endless(), ["bytes or more", "`inputs` is 5,000,000"]),
        (b"x" * 5_000_001, ["5,000,001 bytes or more", "`inputs` is 5,000,000"]),
        (_Broken("text"), ["it gives str, not bytes"]),
        (_Broken(ValueError("closed")), ["reading it failed: ValueError: closed"]),
    ],
)
def test_a_source_that_cannot_be_copied_runs_nothing(source: object, words: list[str]) -> None:
    before = traces()
    result = execute("print(1)", data={"x": source}, limits={"inputs": 5_000_000})
    assert (result.status, result.started) == ("unavailable", False)
    assert all(word in result.for_model() for word in words), result.for_model()
    assert not left_since(before)


def test_an_open_file_whose_sandbox_was_lost_is_read_again_or_refused() -> None:
    again = inputs.OpenFile("x", io.BytesIO(b"abc"))
    assert list(again.chunks()) == list(again.chunks()) == [b"abc"]
    once = inputs.OpenFile("x", _Once(b"abc"))
    assert list(once.chunks()) == [b"abc"]
    with pytest.raises(OSError, match="cannot be read again"):
        list(once.chunks())


class _Once:
    def __init__(self, *given: bytes) -> None:
        self._given = [*given, b""]

    def read(self, size: int) -> bytes:
        return self._given.pop(0)


def test_cancelling_ends_the_copying(tmp_path: Path) -> None:
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(3 << 30)

    async def run() -> None:
        async with AsyncExecutor(backend=BACKEND, limits={"inputs": 1 << 40}) as executor:
            await executor.execute_code("1")
            task = asyncio.create_task(executor.execute_code("print(1)", data=[big]))
            await asyncio.sleep(0.5)
            assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    before = traces()
    asyncio.run(run())
    assert not left_since(before)


def test_on_the_command_line(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("for name in ('a.csv', 'other'):\n    print(open('/data/' + name).read())")
    command = [sys.executable, "-m", "limbeck", "run", str(script), "--json"]
    data = ["--data", str(folder / "a.csv"), "--data", f"other={folder / 'a.csv'}"]
    done = subprocess.run([*command, *data], capture_output=True, text=True)
    assert json.loads(done.stdout)["printout"] == "1,2\n\n1,2\n\n", done
    twice = subprocess.run([*command, *data[:2], *data[:2]], capture_output=True, text=True)
    assert twice.returncode == 2
    assert "--data NAME=PATH" in twice.stdout


def test_a_very_deep_folder_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    """Whatever removes it recursively would stop, and with it whoever reaps."""
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1_200):
        os.mkdir("q", dir_fd=at)
        below = os.open("q", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    before = traces()
    result = execute("print(1)", data=[tmp_path / "q"])
    assert (result.status, result.started) == ("unavailable", False)
    assert "levels deep" in result.for_model()
    assert not left_since(before)
    subprocess.run(["rm", "-rf", str(tmp_path / "q")], check=True)
