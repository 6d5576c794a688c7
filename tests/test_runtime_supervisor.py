"""Process 1 on its own, with small workers in the worker's place; here its number is not 1."""

import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import limbeck.runtime
from limbeck.runtime import clock

REAL = Path(limbeck.runtime.__file__).parent
WAITS = "print('up', file=sys.stderr, flush=True); threading.Event().wait()"


@contextmanager
def _supervised(folder: Path, body: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Process 1 with a worker whose `main` is `body`."""
    runtime = folder / "limbeck" / "runtime"
    runtime.mkdir(parents=True)
    for package in (runtime.parent, runtime):
        (package / "__init__.py").touch()
    for name in ("clock.py", "supervisor.py"):
        shutil.copy(REAL / name, runtime)
    lines = ["import os, resource, sys, threading", "def main(bridge, tools):"]
    lines += [f"    {line}" for line in [*body.splitlines(), "os._exit(0)"]]
    (runtime / "worker.py").write_text("\n".join(lines))
    start = "from limbeck.runtime.supervisor import main; main()"
    with subprocess.Popen(
        [sys.executable, "-s", "-S", "-P", "-c", start, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": str(folder)},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _report(process: subprocess.Popen[bytes]) -> list[str]:
    """The report without its CPU time; the end of the pipe ends the wait."""
    return process.stdout.read().decode().split()[:4]


def _say(process: subprocess.Popen[bytes], *messages: bytes) -> None:
    process.stdin.write(b"".join(messages))
    process.stdin.flush()


@pytest.mark.parametrize(
    ("body", "report"),
    [
        ("os._exit(7)", ["exit", "7", "-", "exited"]),
        ("os.kill(os.getpid(), 9)", ["exit", "-", "9", "exited"]),
        ("raise RuntimeError('no start')", ["exit", "1", "-", "exited"]),
        ("os.kill(os.getppid(), 2); os.kill(os.getppid(), 15)", ["exit", "0", "-", "exited"]),
    ],
)
def test_the_worker_s_end_is_reported(tmp_path: Path, body: str, report: list[str]) -> None:
    with _supervised(tmp_path, body) as process:
        assert _report(process) == report


def test_a_worker_that_fails_says_why_on_stderr(tmp_path: Path) -> None:
    with _supervised(tmp_path, "raise RuntimeError('no start')") as process:
        assert b"RuntimeError: no start" in process.stderr.read()


def test_what_the_worker_prints_never_reaches_the_report(tmp_path: Path) -> None:
    body = "os.write(1, b'exit 0 - exited 0\\n'); os._exit(3)"
    with _supervised(tmp_path, body) as process:
        out, errors = process.stdout.read(), process.stderr.read()
    assert out.split()[:4] == [b"exit", b"3", b"-", b"exited"]
    assert out.count(b"\n") == 1
    assert b"exit 0 - exited 0" in errors


def test_the_worker_has_no_way_to_the_clock(tmp_path: Path) -> None:
    body = "print(sorted(os.listdir('/proc/self/fd')), os.read(0, 1), file=sys.stderr)"
    with _supervised(tmp_path, body) as process:
        # 3 is the folder that is being listed.
        assert process.stderr.read().strip() == b"['0', '1', '2', '3'] b''"


@pytest.mark.parametrize("end", [clock.message(clock.END), b""])
def test_the_host_s_end_is_everybody_s(tmp_path: Path, end: bytes) -> None:
    body = "print(os.getpid(), file=sys.stderr, flush=True); threading.Event().wait()"
    with _supervised(tmp_path, body) as process:
        worker = os.pidfd_open(int(process.stderr.readline()))
        _say(process, end)
        if not end:
            process.stdin.close()
        assert _report(process) == ["exit", "-", "-", "ended"]
        select.select([worker], [], [])
        os.close(worker)


def test_the_deadline_comes_although_the_host_is_late(tmp_path: Path) -> None:
    with _supervised(tmp_path, WAITS) as process:
        _say(process, clock.message(clock.START, 0))
        assert _report(process) == ["exit", "-", "-", "deadline"]


def test_a_paused_clock_stands_still(tmp_path: Path) -> None:
    with _supervised(tmp_path, WAITS) as process:
        process.stderr.readline()
        _say(process, clock.message(clock.START, 0), clock.message(clock.PAUSE))
        # Longer than the deadline; nothing may come, so that there is nothing to wait for.
        assert select.select([process.stdout], [], [], 1.5)[0] == []
        _say(process, clock.message(clock.RESUME))
        assert _report(process) == ["exit", "-", "-", "deadline"]


def test_a_message_in_pieces_is_one_message(tmp_path: Path) -> None:
    message = clock.message(clock.END)
    with _supervised(tmp_path, WAITS) as process:
        process.stderr.readline()
        _say(process, message[:5])
        _say(process, message[5:])
        assert _report(process) == ["exit", "-", "-", "ended"]


def test_limits_are_set_hard_before_the_worker_runs(tmp_path: Path) -> None:
    wanted = {"DATA": 200 << 20, "FSIZE": 1 << 20, "CPU": 9, "NOFILE": 256, "CORE": 1, "MEMLOCK": 0}
    body = (
        f"limits = {{n: resource.getrlimit(getattr(resource, 'RLIMIT_' + n)) for n in {[*wanted]}}}\n"
        f"wanted = {{n: (v, v) for n, v in {wanted}.items()}}\n"
        "os._exit(0 if limits == wanted else 1)"
    )
    arguments = [f"data={200 << 20}", f"fsize={1 << 20}", "cpu=9"]
    with _supervised(tmp_path, body, *arguments) as process:
        assert _report(process) == ["exit", "0", "-", "exited"]


def test_a_cpu_limit_is_a_kill(tmp_path: Path) -> None:
    with _supervised(tmp_path, "while True: pass", "cpu=1") as process:
        _, code, number, word = _report(process)
    assert (code, word) == ("-", "exited")
    assert int(number) in (signal.SIGXCPU, signal.SIGKILL)
