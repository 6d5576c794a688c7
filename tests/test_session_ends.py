"""How a session loses its state, and that it says so; how it ends, and that nothing is left."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from kit.sandboxed import BACKEND, BACKENDS, NO_DOCKER, ON_BOTH, left_since, traces

from limbeck import AsyncExecutor, ConfigurationError, Executor
from limbeck.sandbox.folders import base_folder
from limbeck.sandbox.warm import WarmSandbox


def gone(result) -> str:
    """What a result says of a lost state, "" when it says nothing."""
    found = [one.message for one in result.warnings if one.code == "state_gone"]
    assert all(message in result.for_model() for message in found)
    return "; ".join(found)


def until(condition, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.01)


LOST = {
    "timeout": ("while True: pass", "timeout"),
    "memory": ("import mmap\nm = mmap.mmap(-1, 512 << 20)\nfor i in range(0, 512 << 20, 4096): m[i] = 1", "memory"),
    "cpu": ("import threading\nwhile True: pass", "cpu"),
    "hard exit": ("import os\nos._exit(0)", "ok"),
    "signal": ("import os\nos.kill(os.getpid(), 9)", "killed"),
    "broken protocol": ("import os\nfor n in range(3, 256):\n    try:\n        os.write(n, b'junk' * 100)\n    except OSError: pass\nimport time\ntime.sleep(50)", "killed"),
    "output": ("import os\nwhile True: os.write(1, b'x' * 60_000)", "output"),
}  # fmt: skip


@ON_BOTH
def test_what_kills_the_sandbox_takes_the_state_along(where: str) -> None:
    before = traces()
    limits = {"wall": 20, "output_max": 1 << 20}
    with (
        Executor(backend=BACKENDS[where], gate="off", limits=limits) as executor,
        executor.session() as session,
    ):
        for name, (script, status) in LOST.items():
            first = session.execute_code("x = 1\nopen('f', 'x').close()")
            assert first.status == "ok", (name, first.for_model())
            assert not gone(first)
            own = {"wall": 1} if name == "timeout" else {"cpu_seconds": 0.5}
            killed = session.execute_code(script, limits=own if name in ("timeout", "cpu") else {})
            assert killed.status == status, (name, killed.for_model())
            assert f"ended with the script ({status})" in gone(killed), name
        # The printouts and the numbers are the session's: they go on.
        result = session.execute_code(
            "import os\nprint('x' in globals(), os.listdir('.'), len(os.listdir('/data/printouts')))"
        )
        assert result.printout == f"False [] {2 * len(LOST)}\n"
        assert (result.sandbox.start, result.warnings) == ("cold", ())
    assert not left_since(before)


def test_a_cancelled_script_takes_the_state_along_and_the_next_result_says_so() -> None:
    async def run() -> None:
        async with (
            AsyncExecutor(backend=BACKEND, gate="off") as executor,
            executor.session() as session,
        ):
            began = asyncio.Event()
            await session.execute_code("x = 1")
            running = asyncio.create_task(
                session.execute_code(
                    "print(1, flush=True)\nwhile True: pass", on_output=lambda *_: began.set()
                )
            )
            await began.wait()
            waiting = asyncio.create_task(session.execute_code("print('x' in globals())"))
            await asyncio.sleep(0)
            # One that waits for its turn is cancelled without any harm to the one that runs.
            also = asyncio.create_task(session.execute_code("never"))
            await asyncio.sleep(0.05)
            also.cancel()
            assert (await asyncio.gather(also, return_exceptions=True))[0].__class__ is (
                asyncio.CancelledError
            )
            assert not running.done()
            running.cancel()
            assert (await asyncio.gather(running, return_exceptions=True))[0].__class__ is (
                asyncio.CancelledError
            )
            result = await waiting
            assert result.printout == "False\n"
            assert "the execution before was cancelled" in gone(result)
            assert not gone(await session.execute_code("1"))

    before = traces()
    asyncio.run(run())
    assert not left_since(before)


@ON_BOTH
def test_cpu_is_limited_for_each_script_anew(where: str) -> None:
    script = "import resource\nprint(*resource.getrlimit(resource.RLIMIT_CPU))"
    with Executor(backend=BACKENDS[where], gate="off") as executor, executor.session() as session:
        for seconds in (3, 30, 9):
            result = session.execute_code(script, limits={"cpu_seconds": seconds})
            soft, hard = map(int, result.printout.split())
            assert 5 <= soft - seconds <= 7
            assert hard == 24 * 3600
        soft, hard = map(int, executor.execute_code(script).printout.split())
        assert soft == hard
        assert 70 <= soft <= 72
        assert executor.execute_code(script, wall=1).printout.split()[1] in ("11", "12")


class Clock:
    """Seconds that a test moves."""

    def __init__(self, executor: Executor) -> None:
        self.now = time.monotonic()
        self._executor = executor
        self.sessions.clock = lambda: self.now

    @property
    def sessions(self):
        return self._executor._core.sessions

    def move(self, seconds: float) -> None:
        self.now += seconds
        self._executor._thread.loop.call_soon_threadsafe(self.sessions.sweep)


def test_idle_and_old_sandboxes_end_and_the_next_result_says_so() -> None:
    before = traces()
    with (
        Executor(backend=BACKEND, gate="off") as executor,
        executor.session(idle=60, life=600) as session,
    ):
        session.execute_code("x = 1")
        clock = Clock(executor)
        for _ in range(5):  # Used again and again it is not idle.
            clock.move(50)
            assert session.execute_code("print(x)").printout == "1\n"
        clock.move(61)
        until(lambda: not clock.sessions.kept)
        result = session.execute_code("print('x' in globals())\nx = 2")
        assert (result.printout, gone(result)[-31:]) == (
            "False\n",
            "gone: it was not used for 1 min",
        )
        assert not gone(session.execute_code("print(x)"))
        for _ in range(11):
            clock.move(50)
            assert not gone(session.execute_code("print(x)"))
        clock.move(51)
        result = session.execute_code("print('x' in globals())")
        assert "its sandbox had lived for 10 min" in gone(result)
    assert not left_since(before)


def test_the_longest_idle_one_makes_room_and_none_holds_a_place_to_run() -> None:
    before = traces()
    with Executor(backend=BACKEND, gate="off", max_kept=2) as executor:
        sessions = [executor.session() for _ in range(3)]
        for number, one in enumerate(sessions):
            one.execute_code(f"x = {number}")
        assert executor._core.sessions.kept == 2
        assert executor._core._slots._value == executor.settings.max_sandboxes
        result = sessions[0].execute_code("print('x' in globals())")
        assert result.printout == "False\n"
        assert "made room" in gone(result)
        assert sessions[2].execute_code("print(x)").printout == "2\n"
        assert "made room" in gone(sessions[1].execute_code("1"))
    assert not left_since(before)


@pytest.mark.parametrize("noticed", [True, False])
def test_a_sandbox_that_dies_while_it_stands_still_is_replaced(
    noticed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = traces()
    with Executor(backend=BACKEND, gate="off") as executor, executor.session() as session:
        session.execute_code("x = 1")
        killing = session._live.sandbox.sandbox.kill()
        asyncio.run_coroutine_threadsafe(killing, executor._thread.loop).result(20)
        if not noticed:
            monkeypatch.setattr(WarmSandbox, "is_alive", True)
        result = session.execute_code("print('x' in globals())")
        assert result.printout == "False\n", result.for_model()
        assert "lost while it stood still" in gone(result)
    assert not left_since(before)


def test_what_could_not_be_given_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    with Executor(backend=BACKEND, gate="off") as executor, executor.session() as session:
        session.execute_code("x = 1")
        (tmp_path / "d").mkdir()
        (tmp_path / "d" / "link").symlink_to("/etc/passwd")
        result = session.execute_code("print(x)", data=[tmp_path / "d"])
        assert (result.status, result.started) == ("unavailable", False)
        assert session.execute_code("print(x)").printout == "1\n"
        with pytest.raises(ConfigurationError, match="fixed for the whole session"):
            session.execute_code("1", limits={"memory": 100 << 20})
        with pytest.raises(ConfigurationError, match="fixed for the whole session"):
            session.execute_code("1", limits={"profile": "data"})
        with pytest.raises(ConfigurationError, match=r"limits\.memory: .* is above"):
            executor.execute_code("1", limits={"profile": "data"})
        with pytest.raises(ConfigurationError, match=r"limits\.wall: 61 is above"):
            session.execute_code("1", wall=61)


@ON_BOTH
def test_closing_and_dropping_leave_nothing(where: str) -> None:
    before = traces()
    with Executor(backend=BACKENDS[where], gate="off") as executor:
        session = executor.session()
        session.execute_code("x = 1")
        session.close()
        session.close()
        with pytest.raises(ConfigurationError, match="closed"):
            session.execute_code("1")
        executor.session().close()  # Nothing ran in it.
        dropped = executor.session()
        dropped.execute_code("x = 1")
        assert executor._core.sessions.kept == 1
        del dropped
        gc.collect()
        until(lambda: not executor._core.sessions.kept)

        # Closing cancels what runs in it.
        session = executor.session()
        began = threading.Event()
        results = []

        def run() -> None:
            script = "print(1, flush=True)\nwhile True: pass"
            results.append(session.execute_code(script, on_output=lambda *_: began.set()))

        thread = threading.Thread(target=run)
        thread.start()
        began.wait(20)
        session.close()
        thread.join(20)
        assert results[0].status == "cancelled"
        unused = executor.session()
        last = executor.session()
        last.execute_code("x = 1")
    with pytest.raises(ConfigurationError, match="closed"):
        last.execute_code("1")
    with pytest.raises(ConfigurationError, match="closed"):
        unused.execute_code("1")
    last.close()
    assert not left_since(before)


HOST = textwrap.dedent("""
    import sys, time
    from limbeck import Executor
    executor = Executor(gate="off", backend=sys.argv[1])
    session = executor.session()
    session.execute_code('''
    import os, threading, time
    threading.Thread(target=time.sleep, args=(1_000,), daemon=True).start()
    if os.fork() == 0:
        os.setsid()
        time.sleep(1_000)
    ''')
    print(session._live.sandbox.sandbox.uid, flush=True)
    time.sleep(1_000)
""")


@ON_BOTH
def test_a_killed_host_s_frozen_session_dies(where: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root tells a sandbox by its uid")
    host = subprocess.Popen([sys.executable, "-c", HOST, where], stdout=subprocess.PIPE, text=True)
    uid = int(host.stdout.readline())
    assert _states(uid).count("T") >= 2  # The worker and its child; process 1 waits.
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdout.close()
    until(lambda: not _states(uid))
    asyncio.run(BACKENDS[where].reap())
    assert not [path for path in base_folder().iterdir() if _owner(path) == host.pid]


def _states(uid: int) -> str:
    """States of a uid's living processes."""
    found = ""
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                lines = (path / "status").read_text().splitlines()
            except OSError:
                continue
            fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
            if int(fields["Uid"].split()[0]) == uid and fields["State"][0] not in "ZX":
                found += fields["State"][0]
    return found


def _owner(path: Path) -> int:
    try:
        return int((path / "owner").read_text().split()[0])
    except OSError:
        return 0


@pytest.mark.slow
def test_a_session_that_stood_still_for_75_s_goes_on() -> None:
    """Longer than grpc lets a peer leave a ping unanswered, unless it is told otherwise."""
    names = ["bubblewrap"] if NO_DOCKER is not None else ["bubblewrap", "docker"]
    executors = [Executor(backend=BACKENDS[name], gate="off") for name in names]
    sessions = [one.session() for one in executors]
    for one in sessions:
        assert one.execute_code("x = 41").status == "ok"
    time.sleep(75)
    for one in sessions:
        result = one.execute_code("print(x + 1)")
        assert (result.printout, result.sandbox.start) == ("42\n", "kept"), result.for_model()
    for one in executors:
        one.close()
