"""The vetting child: verdicts, bombs, deaths, time-outs, and what it runs as."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest
import RestrictedPython

from limbeck import runtime
from limbeck.runtime import gate
from limbeck.sandbox import vetting
from limbeck.sandbox.vetting import Vetter

BOMBS = {
    "parentheses": "(" * 5_000 + ")" * 5_000,
    "targets": "x = " * 50_000 + "1",
    "minus": "-" * 300_000 + "1",
    "not": "not " * 60_000 + "1",
    "attributes": "a" + ".b" * 100_000,
    "calls": "f" + "()" * 100_000,
    "subscripts": "f" + "[0]" * 80_000,
    "sums": "+".join(["1"] * 120_000),
    "lambdas": "lambda: " * 30_000 + "1",
    "elif": "if x: pass\n" + "elif x: pass\n" * 15_000,
    "indents": "".join(" " * n + "if x:\n" for n in range(200)) + " " * 200 + "pass\n",
    "power": "9**9**9**9",
    "digits": "1" * 200_000,
    "strings": "f'{" * 200 + "1" + "}'" * 200,
    "decorators": "@d\n" * 60_000 + "def f(): pass\n",
}


LARGE_BUT_SOUND = {"targets", "power", "decorators"}
"""Scripts that CPython itself compiles."""


@pytest.fixture(scope="module")
def library():
    """What the sandbox would see, where a dropped uid can read it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        here = Path(runtime.__file__).parent
        shutil.copytree(here, folder / "limbeck" / "runtime")
        (folder / "limbeck" / "__init__.py").touch()
        package = Path(RestrictedPython.__file__).parent
        shutil.copytree(package, folder / "RestrictedPython")
        yield folder


def interpreter() -> Path:
    """A Python that any uid can start."""
    minor = f"python3.{sys.version_info.minor}"
    system = Path("/usr/bin") / minor
    if os.geteuid() == 0 and system.exists():
        return system
    return Path(sys.base_prefix) / "bin" / minor


def with_vetter(library, work):
    """Run `work(vetter)` on a loop of its own."""

    async def main():
        vetter = Vetter(interpreter(), library)
        try:
            return await work(vetter)
        finally:
            await vetter.close()

    return asyncio.run(main())


def test_verdict_is_the_gates_own(library):
    async def work(vetter):
        return [await vetter.vet(source, on) for source in sources for on in (True, False)]

    sources = ["print(1)", "import subprocess\nx.__globals__", "def f(:", "await f()", "return 1"]
    expected = [gate.vet(source, gate=on) for source in sources for on in (True, False)]
    assert with_vetter(library, work) == expected
    assert expected[0] == []
    assert len(expected[2]) == 2


def test_many_scripts_wait_for_their_turn(library):
    async def work(vetter):
        return await asyncio.gather(
            *(vetter.vet("\n" * n + "import socket", True) for n in range(10))
        )

    faults = with_vetter(library, work)
    assert [fault.line for (fault,) in faults] == list(range(1, 11))


@pytest.mark.parametrize("name", BOMBS)
def test_parser_bomb_is_an_answer(library, name):
    async def work(vetter):
        return await vetter.vet(BOMBS[name], True), await vetter.vet("x = 1", True)

    faults, after = with_vetter(library, work)
    assert len(faults) <= gate.MAX_FAULTS
    assert bool(faults) is (name not in LARGE_BUT_SOUND)
    assert after == []


def test_death_of_the_child_is_a_refusal_and_the_next_script_is_vetted(library):
    async def work(vetter):
        first = await vetter.vet("x = 1", True)
        pid = vetter._child.pid
        os.kill(pid, signal.SIGSTOP)
        waiting = asyncio.create_task(vetter.vet("x = 2", True))
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        return first, await waiting, await vetter.vet("import socket", True)

    first, killed, after = with_vetter(library, work)
    assert first == []
    assert "could not be vetted" in killed[0].message
    assert after == gate.vet("import socket")


def test_hanging_child_is_a_refusal(library, monkeypatch):
    monkeypatch.setattr(vetting, "WALL_SECONDS", 0.5)

    async def work(vetter):
        monkeypatch.setattr(vetting, "WALL_SECONDS", 30.0)
        assert await vetter.vet("x = 1", True) == []
        os.kill(vetter._child.pid, signal.SIGSTOP)
        monkeypatch.setattr(vetting, "WALL_SECONDS", 0.2)
        hung = await vetter.vet("x = 1", True)
        monkeypatch.setattr(vetting, "WALL_SECONDS", 30.0)
        return hung, await vetter.vet("x = 1", True)

    hung, after = with_vetter(library, work)
    assert "took longer than 0.2 s" in hung[0].message
    assert after == []


def test_cancelled_question_does_not_answer_the_next(library):
    async def work(vetter):
        assert await vetter.vet("x = 1", True) == []
        os.kill(vetter._child.pid, signal.SIGSTOP)
        question = asyncio.create_task(vetter.vet("import socket", True))
        await asyncio.sleep(0.05)
        question.cancel()
        await asyncio.gather(question, return_exceptions=True)
        return await vetter.vet("x = 1", True)

    assert with_vetter(library, work) == []


def test_child_has_no_powers(library):
    async def work(vetter):
        await vetter.vet("x = 1", True)
        pid = vetter._child.pid
        status = dict(
            line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        )
        limits = Path(f"/proc/{pid}/limits").read_text()
        return status, limits

    status, limits = with_vetter(library, work)
    assert status["NoNewPrivs"] == "1"
    assert int(status["CapEff"], 16) == 0
    assert "0" not in status["Uid"].split()
    assert f"{1024**3}" in next(line for line in limits.splitlines() if "address space" in line)


def test_child_that_cannot_start_says_why(tmp_path):
    (fault,) = with_vetter(tmp_path, lambda vetter: vetter.vet("x = 1", True))
    assert "No module named 'limbeck'" in fault.message


def test_missing_interpreter_says_so(library):
    async def main():
        vetter = Vetter(Path("/nowhere/python"), library)
        try:
            return await vetter.vet("x = 1", True)
        finally:
            await vetter.close()

    (fault,) = asyncio.run(main())
    assert "could not be vetted" in fault.message
    assert "/nowhere/python" in fault.message


def test_close_leaves_no_process(library):
    async def work(vetter):
        await vetter.vet("x = 1", True)
        pid = vetter._child.pid
        await vetter.close()
        return pid

    pid = with_vetter(library, work)
    assert not Path(f"/proc/{pid}").exists()
