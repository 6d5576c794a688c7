"""Limits and ends on real sandboxes, beyond what each backend owes (tests/kit/contract.py)."""

import pytest
from kit.sandboxed import BACKENDS, ON_ALL, ON_BOTH, WARM, execute, left_since, traces

from limbeck.sandbox.result import ExecutionResult

CHILDREN = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        x = bytearray(b"x") * (100 << 20)
        time.sleep(100)
        os._exit(0)
time.sleep(100)
"""


def _run(script: str, where: str = "bubblewrap", **limits: float) -> ExecutionResult:
    before = traces()
    result = execute(script, backend=BACKENDS[where], limits=limits)
    assert not left_since(before)
    return result


@ON_ALL
def test_the_result_tells_how_memory_is_held(where: str) -> None:
    wanted = "watcher" if where == "watcher" else WARM.sandbox.memory_limit
    assert _run("1", where).sandbox.memory_limit == wanted


@ON_BOTH
def test_the_host_keeps_the_sum_of_children_below_the_limit(where: str) -> None:
    watched = _run(CHILDREN, "watcher", wall=10)
    assert watched.status == "memory"
    assert watched.usage.memory_peak < 400 << 20
    hard = _run(CHILDREN, where, wall=3)
    assert hard.usage.memory_peak <= 257 << 20


def test_a_script_may_catch_memory_error_and_go_on() -> None:
    result = _run("try:\n    x = bytearray(1 << 30)\nexcept MemoryError:\n    print('caught')")
    assert (result.status, result.printout) == ("ok", "caught\n")


def test_an_uncaught_memory_error_names_its_line() -> None:
    result = _run("a = 1\nx = bytearray(1 << 30)")
    assert result.status == "memory"
    assert result.error.line == 2
    assert result.error.source == "x = bytearray(1 << 30)"


def test_a_long_printout_is_cut_counted_and_spooled(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    result = _run("for number in range(100_000): print(number)")
    whole = "".join(f"{number}\n" for number in range(100_000)).encode()
    assert result.status == "ok"
    assert result.truncated.total == len(whole)
    assert result.printout.startswith("0\n1\n")
    assert result.printout.endswith("99999\n")
    (artifact,) = result.artifacts
    with open(artifact.path, "rb") as file:
        assert file.read() == whole
    assert "the script finished" in result.for_model()


@pytest.mark.parametrize(
    ("script", "status", "exit_code"),
    [
        ("import os\nos._exit(7)", "error", 7),
        ("import os\nos._exit(0)", "ok", 0),
        ("import sys\nsys.exit(3)", "error", 3),
        ("import sys\nsys.exit()", "ok", 0),
        ("raise SystemExit('stop')", "error", 1),
        ("import os\nos.kill(os.getpid(), 11)", "killed", None),
        ("import os, sys\nos.closerange(0, 3)\nsys.exit(7)", "error", 7),
        ("import sys\nsys.stdout.close()\nsys.stderr.close()", "ok", 0),
        ("import os\nos.closerange(0, 256)\nos._exit(9)", "error", 9),
        ("1 / 0", "error", 1),
    ],
)
@ON_BOTH
def test_exit_codes_are_the_process_s_own(
    script: str, status: str, exit_code: int, where: str
) -> None:
    result = _run(script, where)
    assert (result.status, result.exit_code) == (status, exit_code)


@ON_BOTH
def test_process_1_cannot_be_killed_from_inside(where: str) -> None:
    script = """
import os, signal
for number in range(1, 65):
    try:
        os.kill(1, number)
    except OSError:
        pass
print(os.getppid())
"""
    result = _run(script, where)
    assert (result.status, result.printout) == ("ok", "1\n")


@ON_BOTH
def test_the_exit_report_cannot_be_forged(where: str) -> None:
    script = """
import os
for target in (0, 1, 2):
    try:
        os.write(target, b"exit 0 - exited\\n")
    except OSError:
        pass
for name in ("/proc/1/fd/1", "/proc/1/fd/0"):
    try:
        open(name, "wb").write(b"exit 0 - exited\\n")
    except OSError:
        pass
os._exit(9)
"""
    assert _run(script, where).exit_code == 9


@ON_BOTH
def test_a_child_lost_to_the_limit_does_not_speak_for_the_script(where: str) -> None:
    script = """
import mmap, os
child = os.fork()
if child == 0:
    m = mmap.mmap(-1, 512 << 20)
    for i in range(0, 512 << 20, 4096): m[i] = 1
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status))
"""
    result = _run(script, where)
    assert (result.status, result.printout) == ("ok", "-9\n")
    assert [warning.code for warning in result.warnings] == ["memory"]
    result = _run(f"{script}sys = __import__('sys')\nsys.stdout.flush()\nos._exit(3)", where)
    assert (result.status, result.exit_code) == ("error", 3)
