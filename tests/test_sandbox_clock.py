"""The host's clock on real sandboxes: they stand still and go on, and die in either state."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.sandboxed import BACKENDS, ON_BOTH, left_since, traces

from limbeck import Executor
from limbeck.runtime.errors import SandboxUnavailable
from limbeck.sandbox.folders import base_folder

TICKING = """
import itertools, os, threading, time
def tick(name):
    for number in itertools.count():
        print(name, number, flush=True)
        time.sleep(0.02)
if os.fork() == 0:
    os.setsid()
    tick("child")
threading.Thread(target=tick, args=("thread",), daemon=True).start()
tick("main")
"""
FORKING = """
import os, time
print("began", flush=True)
while True:
    if os.fork():
        time.sleep(0.001)
        os._exit(0)
    os.setsid()
"""


class Running:
    """An execution under way, and its sandbox."""

    def __init__(self, where: str, script: str, **limits) -> None:
        self.lines: list[str] = []
        self.executor = Executor(backend=BACKENDS[where], gate="off", limits=limits)
        self.executor._ready()
        core, self.loop = self.executor._core, self.executor._thread.loop
        opened, open_one = [], core._open

        async def remember(*arguments):
            opened.append(await open_one(*arguments))
            return opened[-1]

        core._open = remember
        from concurrent.futures import ThreadPoolExecutor

        self._thread = ThreadPoolExecutor(1)
        self.result = self._thread.submit(
            self.executor.execute_code, script, on_output=lambda _, text: self.lines.append(text)
        )
        until(lambda: self.lines)
        self.sandbox = opened[0].sandbox

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def close(self) -> None:
        self.executor.close()
        self._thread.shutdown()


def until(condition, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.01)


@pytest.fixture
def running(where: str) -> Iterator[Running]:
    before = traces()
    one = Running(where, TICKING, wall=30)
    yield one
    one.close()
    assert not left_since(before)


@ON_BOTH
def test_frozen_nothing_inside_runs_and_thawed_it_goes_on(running: Running, where: str) -> None:
    until(lambda: any("child" in line for line in running.lines))
    assert running.call(running.sandbox.freeze()) >= 3
    time.sleep(0.3)  # What was printed before it stopped may still be on its way.
    heard = len(running.lines)
    time.sleep(0.5)
    assert len(running.lines) == heard
    running.call(running.sandbox.thaw())
    until(lambda: {line.split()[0] for line in running.lines[heard:]} >= {"main", "child"})


@ON_BOTH
def test_a_frozen_sandbox_dies_of_a_kill(running: Running, where: str) -> None:
    running.call(running.sandbox.freeze())
    report = running.call(running.sandbox.kill())
    assert report.cause == "killed"
    assert running.result.result(20).status == "killed"


@ON_BOTH
def test_a_frozen_sandbox_still_meets_the_host_s_deadline(where: str) -> None:
    one = Running(where, TICKING, wall=2)
    try:
        one.call(one.sandbox.freeze())
        assert one.result.result(30).status == "timeout"
    finally:
        one.close()


@ON_BOTH
def test_what_forks_all_the_time_is_stopped_or_killed_never_left_running(where: str) -> None:
    one = Running(where, FORKING, wall=30)
    try:
        one.call(one.sandbox.freeze())
        used = one.call(_usage(one.sandbox))
        time.sleep(0.7)
        assert one.call(_usage(one.sandbox)) - used < 0.2
    except SandboxUnavailable:
        pass
    finally:
        one.close()


async def _usage(sandbox) -> float:
    return sandbox.usage().cpu_seconds


@ON_BOTH
def test_asked_after_its_end_it_says_so(running: Running, where: str) -> None:
    running.call(running.sandbox.kill())
    with pytest.raises(SandboxUnavailable):
        running.call(running.sandbox.freeze())
    with pytest.raises(SandboxUnavailable):
        running.call(running.sandbox.thaw())


HOST = textwrap.dedent("""
    import asyncio, sys, threading
    from limbeck import Executor
    from limbeck.sandbox.warm import WarmSandbox

    opened = []
    open_one = WarmSandbox.open.__func__

    async def remember(*arguments):
        opened.append(await open_one(WarmSandbox, *arguments))
        return opened[-1]

    WarmSandbox.open = remember
    executor = Executor(gate="off", backend=sys.argv[1])

    def freeze(stream, text):
        global frozen
        sandbox = opened[0].sandbox
        if "freeze" in sys.argv and not frozen:
            frozen = True
            loop = executor._thread.loop
            asyncio.run_coroutine_threadsafe(sandbox.freeze(), loop).result()
        print(sandbox.uid, flush=True)

    frozen = False
    executor.execute_code("print('up', flush=True)\\nwhile True: pass", on_output=freeze)
""")


@pytest.mark.parametrize("state", ["running", "freeze"])
@ON_BOTH
def test_a_killed_host_s_sandbox_dies_in_either_state(where: str, state: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root tells a sandbox by its uid")
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, where, state], stdout=subprocess.PIPE, text=True
    )
    uid = int(host.stdout.readline())
    states = {state for _, state in _processes(uid)}
    assert ("T" in states) is (state == "freeze"), states
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdout.close()
    until(lambda: not _processes(uid), 10)
    asyncio.run(BACKENDS[where].reap())
    assert not [path for path in base_folder().iterdir() if _owner(path) == host.pid]


def _processes(uid: int) -> list[tuple[int, str]]:
    """Living processes of a uid, with their states."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                lines = (path / "status").read_text().splitlines()
            except OSError:
                continue
            fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
            state = fields["State"][0]
            if int(fields["Uid"].split()[0]) == uid and state not in "ZX":
                found.append((int(path.name), state))
    return found


def _owner(path: Path) -> int:
    try:
        return int((path / "owner").read_text().split()[0])
    except OSError:
        return 0


WAKING = """
import ctypes, os, signal, struct, time
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGCONT, lambda *_: None)
# struct sigevent: value, signo, notify SIGEV_SIGNAL
event = struct.pack("qii", 0, signal.SIGCONT, 0).ljust(64, b"\\0")
timer = ctypes.c_void_p()
made = libc.syscall(222, 1, event, ctypes.byref(timer))
print("timer", made, flush=True)
read, write = os.pipe()
print("signal", libc.fcntl(read, 10, signal.SIGCONT), "owner", libc.fcntl(read, 8, os.getpid()), flush=True)
while True:
    print("tick", flush=True)
    time.sleep(0.02)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of timer_create")
@ON_BOTH
def test_what_is_frozen_cannot_have_set_itself_an_alarm(where: str) -> None:
    before = traces()
    one = Running(where, WAKING, wall=30)
    try:
        until(lambda: any("tick" in line for line in one.lines))
        text = "".join(one.lines)
        assert "timer -1" in text
        assert "signal -1 owner -1" in text
        one.call(one.sandbox.freeze())
        time.sleep(0.3)
        heard = len(one.lines)
        time.sleep(0.5)
        assert len(one.lines) == heard
    finally:
        one.close()
    assert not left_since(before)
