"""What is seen of a running script: the live line on a real terminal, and nothing of it elsewhere."""

import asyncio
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from limbeck import Activity, AsyncExecutor, Executor, Toolset
from limbeck.serve.live import LiveLine, describe

TOOLS = """
import time
from limbeck import Toolset, ToolContext, ToolFailed

shop = Toolset("shop", "A shop.")

@shop.tool(effect="read")
def price(number: int, ctx: ToolContext) -> float:
    '''Tell a price, slowly.'''
    time.sleep(0.01)
    if number == 5:
        raise ToolFailed("none", "there is no price")
    if number == 100:
        ctx.report_progress("half way")
    return 2.5
"""

SCRIPT = """
from tools import shop
print("begun")
for number in range(200):
    try:
        shop.price(number)
    except shop.ToolFailed:
        pass
print("without an end", end="")
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(TOOLS)
    (tmp_path / "script.py").write_text(
        SCRIPT.replace("except shop.ToolFailed", "except Exception")
    )
    return tmp_path


def _command(home: Path, *more: str, **environment: str) -> dict:
    return {
        "args": [sys.executable, "-m", "limbeck", "run", "--tools", "shop.py", *more, "script.py"],
        "cwd": home,
        "env": {
            **os.environ,
            "TERM": "xterm",
            "XDG_CONFIG_HOME": str(home / "config"),
            "DOCKER_HOST": "unix:///nonexistent/docker.sock",
            **environment,
        },
    }


def _on_terminal(command: dict, *, stdout: int | None = None) -> str:
    """What a terminal is sent by a command."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        **command, stdin=theirs, stdout=theirs if stdout is None else stdout, stderr=theirs
    ) as process:
        os.close(theirs)
        sent = b"".join(_read(ours))
        assert process.wait(60) == 0
    os.close(ours)
    return sent.decode()


def _read(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(descriptor, 65536)
        except OSError:
            return  # The other side is closed.
        if not data:
            return
        yield data


def _on_screen(sent: str) -> list[str]:
    """The lines that stay, on a terminal that knows no more than what limbeck uses."""
    lines = [""]
    column = 0
    for piece in sent.replace("\r\x1b[K", "\0").replace("\r\n", "\n"):
        if piece == "\0":
            lines[-1], column = "", 0
        elif piece == "\n":
            lines.append("")
            column = 0
        else:
            lines[-1] = lines[-1][:column] + piece + lines[-1][column + 1 :]
            column += 1
    return lines


def test_the_live_line_comes_and_goes(home: Path) -> None:
    sent = _on_terminal(_command(home))
    assert " calls, " in sent
    assert " a second, 1 failed, " in sent
    assert " s of 60 s" in sent
    assert _on_screen(sent) == ["begun", "half way", "without an end"]


def test_it_does_not_touch_a_printout_that_goes_elsewhere(home: Path) -> None:
    with (home / "out").open("wb") as out:
        sent = _on_terminal(_command(home), stdout=out.fileno())
    assert (home / "out").read_text() == "begun\nwithout an end"
    assert " a second, " in sent
    assert _on_screen(sent) == ["half way", ""]


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_without_a_terminal_there_is_none(home: Path, more: tuple[str, ...]) -> None:
    done = subprocess.run(**_command(home, *more), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    assert " a second" not in done.stderr


def test_nor_on_one_that_cannot_erase(home: Path) -> None:
    assert "\x1b" not in _on_terminal(_command(home, TERM="dumb"))


def test_json_on_a_terminal_is_json_alone(home: Path) -> None:
    sent = _on_terminal(_command(home, "--json"))
    assert sent.startswith("{")
    assert "\x1b" not in sent


def _activity(calls: int, seconds: float, failed: int = 0, denied: int = 0) -> Activity:
    return Activity(
        calls=calls, succeeded=0, failed=failed, denied=denied, seconds=seconds, wall=60.0
    )


def test_what_the_line_says() -> None:
    assert describe(_activity(1, 2.4)) == "1 call, 2 s of 60 s"
    assert describe(_activity(0, 2.4), 0.0) == "0 calls, 2 s of 60 s"
    assert describe(_activity(12_345, 9.6, 4, 1_000), 3_210.4) == (
        "12,345 calls, 3,210 a second, 4 failed, 1,000 denied, 10 s of 60 s"
    )


def test_calls_a_second_are_those_of_the_last_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    line, written = LiveLine(), []
    monkeypatch.setattr(line, "_terminal", True)
    monkeypatch.setattr(line, "_write", written.append)
    for quarter in range(41):
        line.update(_activity(1_000 if quarter >= 20 else quarter * 50, quarter / 4))
    assert "1,000 calls, 0 a second" in written[-1]
    assert "750 calls, 200 a second" in written[15 - 4]


def _shop() -> Toolset:
    shop = Toolset("shop", "A shop.")

    @shop.tool(effect="read")
    def price(number: int) -> float:
        """Tell a price."""
        return 2.5

    return shop


COUNTING = "from tools import shop\nfor n in range(30): shop.price(n)"


def _check(heard: list[Activity]) -> None:
    assert heard[-1].calls == heard[-1].succeeded == 30
    assert heard[-1].failed == heard[-1].denied == 0
    assert [one.calls for one in heard] == sorted(one.calls for one in heard)
    assert all(one.wall == 20 for one in heard)


def test_a_program_hears_of_the_calls_in_its_own_thread() -> None:
    heard, threads = [], set()

    def hear(activity: Activity) -> None:
        heard.append(activity)
        threads.add(threading.get_ident())

    with Executor([_shop()], backend="bubblewrap") as executor:
        assert executor.execute_code(COUNTING, on_activity=hear, wall=20).exit_code == 0
        _check(heard)
        with executor.session() as session:
            heard.clear()
            assert session.execute_code(COUNTING, on_activity=hear, wall=20).exit_code == 0
            _check(heard)
    assert threads == {threading.get_ident()}


def test_and_on_its_own_loop() -> None:
    async def run() -> None:
        heard, loop = [], asyncio.get_running_loop()

        def hear(activity: Activity) -> None:
            assert asyncio.get_running_loop() is loop
            heard.append(activity)

        async with AsyncExecutor([_shop()], backend="bubblewrap") as executor:
            result = await executor.execute_code(COUNTING, on_activity=hear, wall=20)
            assert result.exit_code == 0
            _check(heard)

    asyncio.run(run())


def test_what_a_listener_raises_cancels() -> None:
    def stop(activity: Activity) -> None:
        raise LookupError("enough")

    with (
        Executor(backend="bubblewrap") as executor,
        pytest.raises(LookupError, match="enough"),
    ):
        executor.execute_code("import time\nfor _ in range(600): time.sleep(0.1)", on_activity=stop)
