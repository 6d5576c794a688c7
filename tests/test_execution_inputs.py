"""Bad input, each with a clear error: what a model sends wrong, what a tool does wrong."""

import asyncio
import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from typing import TypedDict

import pytest
from kit.sandboxed import BACKEND, BACKENDS, ON_BOTH, execute, left_since, traces

from limbeck import AsyncExecutor, ConfigurationError, Executor, ToolFailed, Toolset
from limbeck.sandbox.result import ExecutionResult


class Order(TypedDict):
    id: int
    total: float


orders = Toolset("orders", "Orders of the shop.")
let_go = threading.Event()


@orders.tool(effect="read")
def get_order(order_id: int, full: bool = False) -> Order:
    """Look an order up."""
    if order_id == 404:
        raise ToolFailed("not_found", "no order 404", hint="list the orders first.")
    return {"id": order_id, "total": 9.5}


@orders.tool(effect="read")
def broken(order_id: int) -> Order:
    """Fail inside."""
    raise RuntimeError("database password is hunter2")


@orders.tool(effect="read")
def lying(order_id: int) -> Order:
    """Answer against the schema."""
    return {"id": "many"}  # type: ignore[typeddict-item]


@orders.tool(effect="destructive")
def delete_order(order_id: int) -> None:
    """Delete an order."""


@orders.tool(effect="read", timeout=1)
def sleepy() -> None:
    """Sleep for ten minutes."""
    time.sleep(600)


def _run(script: str, **options: object) -> ExecutionResult:
    before = traces()
    options.setdefault("gate", "on")
    result = execute(script, orders, **options)
    assert not left_since(before)
    return result


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        ("from tools import orders\norders.nope(1)", "UnknownTool", ["orders.nope"]),
        (
            "from tools import orders\norders.get_ordr(1)",
            "UnknownTool",
            ["mean orders.get_order"],
        ),
        ("from tools import nope", "UnknownTool", ["nope"]),
        ("from tools import ordrs", "UnknownTool", ["orders?"]),
        ("import tools.nope", "UnknownTool", ["nope"]),
        ("from tools import emit", "ImportError", ["not in this version"]),
        (
            "from tools import orders\norders.get_order('5', full=1)",
            "InvalidArguments",
            ["order_id", "whole number", "'5'", "full", "True or False", "order_id, full"],
        ),
        (
            "from tools import orders\norders.get_order()",
            "InvalidArguments",
            ["order_id: missing", "the parameters of orders.get_order are: order_id, full"],
        ),
        (
            "from tools import orders\norders.get_order('5', x=2, y=3)",
            "InvalidArguments",
            ["order_id: must be a whole number", "x: there is no", "y: there is no"],
        ),
        (
            "from tools import orders\norders.get_order(1, 2, 3, order_id=4)",
            "InvalidArguments",
            ["3 arguments without a name", "order_id: given twice", "are: order_id, full"],
        ),
        ("from tools import orders\norders.get_order(404)", "ToolFailed", ["no order", "list the"]),
        ("from tools import orders\norders.broken(1)", "ToolFailed", ["internal error"]),
        ("from tools import orders\norders.lying(1)", "ResultInvalid", ["id", "total", "missing"]),
        ("from tools import orders\norders.delete_order(1)", "ApprovalRequired", ["approval"]),
        ("from tools import orders\norders.sleepy()", "ToolTimeout", ["within 1 s"]),
        ("from tools import orders\norders.get_order(float('nan'))", "InvalidArguments", ["NaN"]),
        ("from tools import orders\norders.get_order({1, 2})", "InvalidArguments", ["set"]),
    ],
)
@ON_BOTH
def test_a_wrong_call_is_an_error_with_a_mend(
    script: str, kind: str, words: list[str], where: str
) -> None:
    result = _run(script, backend=BACKENDS[where])
    assert result.status == "error"
    assert result.error.type == kind
    text = result.for_model()
    assert all(word in text for word in words), text
    assert "hunter2" not in text
    assert "/limbeck" not in text
    assert result.error.line is not None


@ON_BOTH
def test_every_error_can_be_caught_and_is_never_a_value(where: str) -> None:
    script = """
from tools import orders
for attempt in (lambda: orders.get_order(404), lambda: orders.delete_order(1)):
    try:
        attempt()
    except ToolError as error:
        print(error.code, error.tool, error.retryable)
try:
    orders.get_order(404)
except ToolFailed as error:
    print(error.error, error.hint)
"""
    result = _run(script, backend=BACKENDS[where])
    assert result.printout == (
        "tool_failed orders.get_order False\n"
        "approval_required orders.delete_order False\n"
        "not_found list the orders first.\n"
    )
    counts = result.calls
    assert (counts.started, counts.failed, counts.denied) == (3, 2, 1)
    assert counts.by_tool == {"orders.get_order": 2, "orders.delete_order": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("   \n\n", ["empty"]),
        ("ls -la /data", ["shell", "ls -la"]),
        ("$ pip install pandas", ["shell"]),
        ("#!/bin/bash\nset -e\necho hi", ["shell"]),
        ("cd /tmp && cat x.csv", ["shell"]),
        ("I will look the order up and then print it for you.", ["prose"]),
        ('{"order_id": 5,', ["data"]),
        ("def f(:\n    pass", ["line 1, col 7", "invalid syntax", "def f(:"]),
        ("x = 1\nif x:\nprint(x)", ["line 3", "indented block", "print(x)"]),
        ("print('a", ["line 1", "unterminated"]),
        ("print(1)\nreturn 5", ["line 2", "return", "print the value"]),
        ("x = 1\0", ["NUL"]),
        ("x = '\ud800'", ["surrogate"]),
        ("x = 1\n" * 200_000, ["bytes", "limit"]),
        ("(" * 5_000, ["parentheses"]),
        ("-" * 300_000 + "1", ["bytes"]),
        ("-" * 200_000 + "1", ["nested too deeply"]),
        ("import requests", ["no network", "call a tool"]),
        ("eval('1')", ["eval", "line 1"]),
    ],
)
def test_what_is_no_script_is_refused_and_nothing_runs(text: str, words: list[str]) -> None:
    result = _run(text)
    assert result.status == "refused"
    assert not result.started
    model = result.for_model()
    assert all(word in model for word in words), model
    assert "Nothing ran." in model


def test_all_faults_come_at_once_in_order() -> None:
    result = _run("import socket\nx = eval('1')\ny.__globals__\nimport requests\n")
    lines = [fault.split(":")[0] for fault in result.error.faults]
    assert lines == ["line 1, col 8", "line 2, col 5", "line 3, col 1", "line 4, col 8"]


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(1)\n```",
        "```\nprint(1)\n```",
        "~~~py\nprint(1)\n~~~\n",
        "  ```python\nprint(1)\n  ```  ",
        "Here is the script:\n\n```python\nprint(1)\n```\n\nIt prints one.",
        "\ufeffprint(1)",
        "print(1)\r\n",
    ],
)
def test_fences_and_other_wrapping_are_removed(text: str) -> None:
    assert _run(text).printout == "1\n"


@pytest.mark.parametrize(
    ("script", "printout"),
    [
        ("1 + 1", "2\n"),
        ("'text'", "text\n"),
        ("None", ""),
        ("print('x')", "x\n"),
        ("[1, 'a']", "[1, 'a']\n"),
        ("import asyncio\nawait asyncio.sleep(0, 5)", "5\n"),
        ("import asyncio\nasync def main():\n    print('m')\nasyncio.run(main())", "m\n"),
        ("async def f():\n    return 3\nprint(await f())", "3\n"),
        ("x = 5  # a comment\nx  # trailing", "5\n"),
    ],
)
@ON_BOTH
def test_a_last_expression_is_shown_as_in_a_notebook(
    script: str, printout: str, where: str
) -> None:
    result = _run(script, backend=BACKENDS[where])
    assert (result.status, result.printout) == ("ok", printout)


@pytest.mark.parametrize(
    ("script", "printout"),
    [
        (
            "from concurrent.futures import ThreadPoolExecutor\n"
            "pool = ThreadPoolExecutor(2)\nfuture = pool.submit(print, 'late')",
            "late\n",
        ),
        (
            "import threading, time\ndef f():\n    time.sleep(0.2)\n    print('late')\n"
            "threading.Thread(target=f).start()\nraise SystemExit(0)",
            "late\n",
        ),
        ("import atexit\natexit.register(print, 'bye')\nprint('hi')", "hi\nbye\n"),
    ],
)
def test_a_script_ends_as_python_does(script: str, printout: str) -> None:
    result = _run(
        f"{script}\nNone" if "raise" not in script else script, gate="off", limits={"wall": 10}
    )
    assert (result.status, result.printout) == ("ok", printout)


@ON_BOTH
def test_tracebacks_show_the_script_s_own_frames(where: str) -> None:
    script = """
import json

def load(text):
    return json.loads(text)

try:
    load("{")
except ValueError as error:
    raise KeyError("no data") from error
"""
    result = _run(script)
    assert result.error.type == "KeyError"
    assert result.error.line == 10
    trace = result.error.traceback
    assert "json/decoder" not in trace
    assert "caused by JSONDecodeError" in trace
    assert trace.endswith("KeyError: 'no data'")


@ON_BOTH
def test_hostile_exceptions_are_reported_all_the_same(where: str) -> None:
    script = """
class Evil(Exception):
    def __str__(self):
        raise SystemExit(0)
raise Evil()
"""
    result = _run(script, backend=BACKENDS[where])
    assert result.status == "error"
    assert result.error.type == "Evil"
    result = _run("raise ValueError('\\x1b[2J\\u202e' + 'x' * 1_000_000)", backend=BACKENDS[where])
    assert len(result.for_model()) <= 8_000
    assert "\x1b" not in result.for_model()


@pytest.mark.slow
def test_a_long_computation_without_a_call_keeps_its_stream() -> None:
    script = """
import time
from tools import orders
end = time.monotonic() + 75
while time.monotonic() < end:
    pass
print(orders.get_order(1)["id"])
"""
    result = _run(script, limits={"wall": 120})
    assert (result.status, result.printout) == ("ok", "1\n")


def test_a_sleeping_plain_handler_does_not_hold_the_process() -> None:
    program = textwrap.dedent("""
        import time
        from limbeck import Executor, Toolset
        box = Toolset("box")

        @box.tool(effect="read", timeout=1)
        def sleepy() -> None:
            time.sleep(600)

        with Executor([box]) as executor:
            print(executor.execute_code("from tools import box\\nbox.sleepy()").error.type)
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "ToolTimeout\n"


blocking = Toolset("blocking")


@blocking.tool(effect="read")
async def block(seconds: float) -> str:
    """Block the loop that it runs on, as a careless coroutine does."""
    time.sleep(seconds)
    return "done"


BLOCKED = "from tools import blocking\nblocking.block(5)"


def test_a_blocking_coroutine_cannot_stall_the_deadline() -> None:
    result = execute(BLOCKED, blocking, limits={"wall": 1})
    assert result.status == "timeout"
    assert result.usage.wall < 3


def test_nor_with_the_async_face() -> None:
    async def run() -> ExecutionResult:
        async with AsyncExecutor([blocking], backend=BACKEND, limits={"wall": 1}) as executor:
            return await executor.execute_code(BLOCKED)

    result = asyncio.run(run())
    assert result.status == "timeout"
    assert result.usage.wall < 3


def test_scoped_tools_need_scopes() -> None:
    scoped = Toolset("scoped")
    scoped.add(lambda: None, name="secret", effect="read", scopes={"a:read"})
    with pytest.raises(ConfigurationError, match="a:read"):
        Executor([scoped])
    with pytest.raises(ConfigurationError, match="single text"):
        Executor([scoped], scopes="a:read")
    for scopes, status in (({"b"}, "error"), ({"a:read"}, "ok"), ({"*"}, "ok")):
        result = execute("from tools import scoped\nscoped.secret()", scoped, scopes=scopes)
        assert result.status == status


def test_an_unconfirmed_destructive_tool_must_exist() -> None:
    from limbeck import Policy

    with pytest.raises(ConfigurationError, match=r"orders\.delete_order"):
        Executor([orders], policy=Policy(unconfirmed_destructive=frozenset({"orders.delete_ordr"})))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops the uid")
def test_an_interpreter_under_a_closed_home_is_named(tmp_path) -> None:
    closed = tmp_path / "home"
    closed.mkdir(mode=0o700)
    python = closed / "python"
    shutil.copyfile("/usr/bin/python3.11", python)
    python.chmod(0o755)
    result = execute("print(1)", backend=_with(python=str(python)))
    assert result.status == "unavailable"
    assert not result.started
    text = result.for_model()
    assert "cannot be reached" in text
    assert "Nothing ran." in text


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"python": "/nonexistent/python"}, "No such file"),
        ({"python": "/bin/true"}, "no Python"),
        ({"bwrap": "/bin/true"}, "no bubblewrap"),
        ({"bwrap": "/nonexistent/bwrap"}, "no bubblewrap"),
    ],
)
def test_a_backend_that_cannot_start_says_why(setting: dict[str, str], words: str) -> None:
    result = execute("print(1)", backend=_with(**setting))
    assert result.status == "unavailable"
    assert words in result.for_model()


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("bwrap: setting up uid map: Permission denied", "AppArmor"),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "AppArmor"),
        ("bwrap: No permissions to create new namespace, likely", "switched off"),
        ("bwrap: Creating new namespace failed: Operation not permitted", "switched off"),
        ("bwrap: Creating new namespace failed, likely because (ENOSPC)", "limit of namespaces"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "masks /proc"),
    ],
)
def test_a_host_without_user_namespaces_gets_its_mend(tmp_path, message: str, cause: str) -> None:
    program = tmp_path / "bwrap"
    program.write_text(
        "#!/bin/sh\n"
        '[ "$1" = --version ] && { echo bubblewrap 0.11.0; exit 0; }\n'
        f'echo "{message}" >&2; exit 1\n'
    )
    program.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and str(folder) != "/":
            folder.chmod(folder.stat().st_mode | 0o055)
    result = execute("print(1)", backend=_with(bwrap=str(program)))
    assert result.status == "unavailable"
    text = result.for_model()
    assert cause in text
    assert "Hint:" in text


NO_NAMESPACES = """
import ctypes, os, sys
ready, go = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    # A user namespace in which everybody is who they were, and no further one can be made.
    assert ctypes.CDLL(None).unshare(0x10000000) == 0
    os.write(ready[1], b"x")
    os.read(go[0], 1)
    open("/proc/sys/user/max_user_namespaces", "w").write("0")
    os.execv(sys.executable, [sys.executable, "-m", "limbeck", "run", "-", "--backend", "bubblewrap"])
os.read(ready[0], 1)
for name in ("uid_map", "gid_map"):
    open(f"/proc/{child}/{name}", "w").write("0 0 4294967295")
os.write(go[1], b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can map all users")
def test_user_namespaces_off_for_real() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_NAMESPACES], input="print(1)", capture_output=True, text=True
    )
    assert done.returncode == 5, done.stderr
    assert "limit of namespaces" in done.stderr
    assert "namespaces" in done.stderr.split("limit of namespaces")[1]
    assert "Hint:" in done.stderr
    assert "Nothing ran." in done.stderr


def _with(**settings: str):
    from limbeck.sandbox.bubblewrap import BubblewrapBackend

    return BubblewrapBackend(**settings)
