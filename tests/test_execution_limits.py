"""Every limit on the real sandbox with the gate off: its status, its hint, and nothing left."""

import pytest
from kit.sandboxed import BACKENDS, ON_ALL, ON_BOTH, WARM, execute, left_since, traces

from limbeck.sandbox.result import ExecutionResult

FLOOD = "import os\nfor _ in range(100): os.write(1, b'x' * 1_000_000)"
FLOOD_STDERR = "import os\nfor _ in range(100): os.write(2, b'x' * 1_000_000)"
ALLOCATE = "x = bytearray(2 << 30)"
GROW = "x = []\nwhile True: x.append('a' * 1_000 + str(len(x)))"
SHARED = "import mmap\nm = mmap.mmap(-1, 512 << 20)\nfor i in range(0, 512 << 20, 4096): m[i] = 1"
LOOP = "while True: pass"
SLEEP = "import time\ntime.sleep(10_000)"
DEAF = """
import os, signal
for number in range(1, 65):
    if number not in (9, 19, 32, 33):
        signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
while True: pass
"""
THREADS = """
import threading, time
while True:
    threading.Thread(target=time.sleep, args=(1_000,), daemon=True).start()
"""
FORKS = """
import os, time
while True:
    if os.fork() == 0:
        time.sleep(1_000)
"""
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


@pytest.mark.parametrize(
    ("script", "status", "limits"),
    [
        (FLOOD, "output", {}),
        (FLOOD_STDERR, "output", {}),
        (ALLOCATE, "memory", {}),
        (GROW, "memory", {}),
        (SHARED, "memory", {}),
        (LOOP, "timeout", {"wall": 1}),
        (SLEEP, "timeout", {"wall": 1}),
        (DEAF, "timeout", {"wall": 1}),
        (LOOP, "cpu", {"cpu_seconds": 0.5, "wall": 30}),
        (THREADS, "pids", {}),
        (FORKS, "pids", {}),
    ],
    ids=[
        "flood", "flood of stderr", "allocate", "grow", "shared mapping", "loop", "sleep", "deaf",
        "cpu", "threads", "forks",
    ],
)  # fmt: skip
@ON_ALL
def test_each_limit_has_its_status(
    script: str, status: str, limits: dict[str, float], where: str
) -> None:
    result = _run(script, where, **limits)
    assert result.status == status
    assert result.started
    assert result.error is not None
    assert result.error.hint
    assert result.error.hint in result.for_model()
    assert result.sandbox.memory_limit == ("watcher" if where == "watcher" else BACKEND_LIMIT)
    assert len(result.for_model()) <= 8_000


BACKEND_LIMIT = WARM.sandbox.memory_limit


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


@ON_BOTH
def test_what_was_printed_before_the_end_is_kept(where: str) -> None:
    for script, status in (
        ("print('before')\nwhile True: pass", "timeout"),
        ("import os\nprint('before')\nos._exit(7)", "error"),
        ("import os\nprint('before')\nos.kill(os.getpid(), 9)", "killed"),
    ):
        result = _run(script, where, wall=1)
        assert (result.status, result.printout) == (status, "before\n")


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
def test_nothing_outlives_the_result(where: str) -> None:
    script = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1_000)
    os._exit(0)
print("parent done")
"""
    result = _run(script, where)
    assert (result.status, result.printout) == ("ok", "parent done\n")


@ON_BOTH
def test_a_script_that_closes_the_stream_is_killed(where: str) -> None:
    script = "import os, time\nos.closerange(3, 256)\ntime.sleep(100)"
    result = _run(script, where, wall=20)
    assert result.status == "killed"
    assert result.error.code in ("bridge_closed", "signal")


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
