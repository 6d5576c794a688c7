"""The command line as a user types it: exit codes, what goes where, what is told of a mistake."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = """
from limbeck import Toolset, ToolFailed

shop = Toolset("shop", "A shop.")

@shop.tool(effect="read")
def price(name: str) -> float:
    '''Tell a price.'''
    return {"tea": 2.5}[name]

@shop.tool(effect="destructive", scopes={"shop:write"})
def close_down() -> str:
    '''Close the shop.'''
    return "closed"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(TOOLS)
    return tmp_path


def _limbeck(home: Path, *arguments: str, script: str | None = None, **environment: str):
    return subprocess.run(
        [sys.executable, "-m", "limbeck", *arguments],
        input=script,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=home,
        env={
            **os.environ,
            "XDG_CONFIG_HOME": str(home / "config"),
            # What is not about docker must not depend on a daemon that may run here.
            "DOCKER_HOST": "unix:///nonexistent/docker.sock",
            **environment,
        },
    )


@pytest.mark.parametrize(
    ("script", "options", "code"),
    [
        ("print(1)", [], 0),
        ("1 / 0", [], 1),
        ("import os\nos.kill(os.getpid(), 9)", ["--gate", "off"], 1),
        ("import socket", [], 3),
        ("ls -la", [], 3),
        ("while True: pass", ["--limit", "wall=0.5"], 4),
        ("x = bytearray(1 << 30)", ["--limit", "memory=64MiB"], 4),
        ("print('x' * 10_000_000)", ["--limit", "output_max=1MiB"], 4),
        ("print(1)", ["--limit", "wall"], 2),
        ("print(1)", ["--limit", "wal=1"], 2),
        ("print(1)", ["--limit", "wall=-1"], 2),
        ("print(1)", ["--limit", "memory=lots"], 2),
        ("print(1)", ["--backend", "docker"], 5),
        ("print(1)", ["--context", "x"], 2),
        ("print(1)", ["--approve", "ask"], 2),
        ("print(1)", ["--data", "x"], 2),
        ("print(1)", ["--tools", "nowhere.py"], 2),
        ("print(1)", ["--tools", "no.such.module"], 2),
        ("print(1)", ["--tools", "shop.py:nope"], 2),
        ("print(1)", ["--tools", "shop.py"], 2),
        ("print(1)", ["--nonsense"], 2),
        ("print(1)", ["--config", "nowhere.toml"], 2),
    ],
)
def test_exit_codes(home: Path, script: str, options: list[str], code: int) -> None:
    done = _limbeck(home, "run", "-", *options, script=script)
    assert done.returncode == code, done.stderr
    if code == 2:
        assert done.stderr.strip()
        assert "Traceback" not in done.stderr


def test_later_options_say_so(home: Path) -> None:
    for option in ("--context", "--approve", "--request-text", "--interaction-id"):
        done = _limbeck(home, "run", "-", option, "x", script="print(1)")
        assert "not in this version" in done.stderr


def test_the_printout_goes_to_stdout_and_the_rest_to_stderr(home: Path) -> None:
    done = _limbeck(home, "run", "-", script="print('out')\n1 / 0")
    assert done.stdout == "out\n"
    assert "ZeroDivisionError" in done.stderr
    assert "line 2" in done.stderr


def test_json_is_alone_on_stdout(home: Path) -> None:
    done = _limbeck(home, "run", "-", "--json", script="print('out')")
    data = json.loads(done.stdout)
    assert (data["status"], data["printout"], done.stderr) == ("ok", "out\n", "")
    done = _limbeck(home, "run", "-", "--json", "--limit", "wal=1", script="print(1)")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["key"] == "limits.wal"
    assert "wall" in error["hint"]


def test_tools_scopes_and_operator_s_list(home: Path) -> None:
    call = "from tools import shop\nprint(shop.price('tea'))\nprint(shop.close_down())"
    done = _limbeck(home, "run", "-", "--tools", "shop.py", "--scope", "*", script=call)
    assert done.stdout == "2.5\n"
    assert "ApprovalRequired" in done.stderr
    config = home / "limbeck.toml"
    config.write_text('[policy]\nunconfirmed_destructive = ["shop.close_down"]\n')
    arguments = ["run", "-", "--tools", "shop.py:shop", "--scope", "shop:write"]
    done = _limbeck(home, *arguments, "--config", str(config), script=call)
    assert done.stdout == "2.5\nclosed\n"
    done = _limbeck(home, *arguments, script=call, LIMBECK_CONFIG=str(config))
    assert done.stdout == "2.5\nclosed\n"


def test_a_configuration_in_the_current_folder_is_mentioned_and_not_obeyed(home: Path) -> None:
    (home / "limbeck.toml").write_text('gate = "off"\n')
    done = _limbeck(home, "run", "-", script="import socket")
    assert done.returncode == 3
    assert "is not read" in done.stderr


def test_terminal_escapes_are_neutralised(home: Path) -> None:
    done = _limbeck(home, "run", "-", script="print('\\x1b[2J\\u202e')")
    assert done.stdout == "\\x1b[2J\\u202e\n"


def test_vet(home: Path) -> None:
    done = _limbeck(home, "vet", "-", script="import socket\nx = eval('1')")
    assert done.returncode == 3
    assert "line 1, col 8" in done.stdout
    assert "line 2, col 5" in done.stdout
    done = _limbeck(home, "vet", "-", "--json", script="import socket")
    assert json.loads(done.stdout)["faults"][0]["line"] == 1
    done = _limbeck(home, "vet", "-", script="print(1)")
    assert (done.returncode, done.stdout) == (0, "no faults\n")
    assert _limbeck(home, "vet", "-", script="rm -rf /").returncode == 3


def test_stubs(home: Path) -> None:
    done = _limbeck(home, "stubs", "--tools", "shop.py")
    assert "def price(name: str) -> float:" in done.stdout
    done = _limbeck(home, "stubs", "--tools", "shop.py", "--out", "out")
    assert done.returncode == 0
    names = sorted(path.name for path in (home / "out" / "tools").iterdir())
    assert names == ["__init__.py", "_bridge.py", "shop.py"]
    program = "from tools import shop\nshop.price('tea')"
    used = subprocess.run(
        [sys.executable, "-c", program], cwd=home / "out", capture_output=True, text=True
    )
    assert "runs only in a script" in used.stderr


def test_describe(home: Path) -> None:
    text = _limbeck(home, "describe", "--tools", "shop.py").stdout
    assert "price(name: str)" in text
    done = _limbeck(home, "describe", "--tools", "shop.py", "--style", "openai")
    assert json.loads(done.stdout)["function"]["name"] == "execute_code"


def test_doctor(home: Path) -> None:
    done = _limbeck(home, "doctor")
    assert done.returncode == 0
    assert "ok   bubblewrap" in done.stdout
    assert json.loads(_limbeck(home, "doctor", "--json").stdout)["works"] is True
    (home / "c.toml").write_text('bwrap = "/nonexistent"\n')
    done = _limbeck(home, "doctor", "--config", "c.toml")
    assert done.returncode == 5
    assert "FAIL bubblewrap" in done.stdout


def test_no_backend_is_exit_code_5(home: Path) -> None:
    (home / "c.toml").write_text('python = "/nonexistent"\n')
    done = _limbeck(home, "run", "-", "--config", "c.toml", script="print(1)")
    assert done.returncode == 5
    assert "Nothing ran." in done.stderr


def test_help_names_every_command(home: Path) -> None:
    text = _limbeck(home, "--help").stdout
    for name in ("run", "vet", "stubs", "describe", "doctor", "bench"):
        assert name in text
        assert _limbeck(home, name, "--help").returncode == 0
    assert _limbeck(home, "nonsense").returncode == 2
