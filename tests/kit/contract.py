"""What every backend owes, through a real executor: `check_backend(make_backend)`.

Whoever writes a backend of their own runs this against it. A backend without walls (the fake one)
owes the same but for what only a wall can hold.
"""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from kit.sandboxed import left_since, traces

from limbeck import AsyncExecutor, Executor, Toolset
from limbeck.sandbox.backend import Backend
from limbeck.sandbox.result import ExecutionResult

MakeBackend = Callable[[], Backend]

FLOOD = "import os\nfor _ in range(100): os.write({}, b'x' * 1_000_000)"
SHARED = "import mmap\nm = mmap.mmap(-1, 512 << 20)\nfor i in range(0, 512 << 20, 4096): m[i] = 1"
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
DAEMON = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(1_000)
    os._exit(0)
print("parent done")
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A script and how it must end."""

    script: str
    status: str
    exit_code: int | None = None
    printout: str | None = None
    limits: tuple[tuple[str, float], ...] = ()
    gate: str = "off"
    wall_needed: bool = False
    """Only a backend with walls owes it."""
    started: bool = True

    def check(self, backend: Backend) -> None:
        before = traces()
        with Executor(backend=backend, gate=self.gate, limits=dict(self.limits)) as executor:
            result = executor.execute_code(self.script)
        check_shape(result)
        assert result.status == self.status, result.for_model()
        assert result.started is self.started
        if self.exit_code is not None:
            assert result.exit_code == self.exit_code
        if self.printout is not None:
            assert result.printout == self.printout
        assert not left_since(before)


def check_shape(result: ExecutionResult) -> None:
    """What holds whatever happened."""
    assert result.execution_id
    assert len(result.for_model()) <= 8_000
    assert (result.error is None) is (result.status == "ok")
    if result.status in ("timeout", "memory", "cpu", "output", "pids"):
        assert result.error.hint
        assert result.error.hint in result.for_model()
    if result.started:
        assert result.sandbox.start in ("cold", "warm", "queued", "kept")
        assert result.sandbox.memory_limit


SECOND = (("wall", 1.0),)

CASES = {
    "ok": Case(script="print(1)\n2", status="ok", exit_code=0, printout="1\n2\n"),
    "error": Case(script="1 / 0", status="error", exit_code=1),
    "exit": Case(script="import sys\nsys.exit(3)", status="error", exit_code=3),
    "hard exit": Case(
        script="import os\nprint('before')\nos._exit(7)",
        status="error", exit_code=7, printout="before\n",
    ),
    "signal": Case(
        script="import os\nprint('before')\nos.kill(os.getpid(), 9)",
        status="killed", printout="before\n",
    ),
    "refused": Case(script="import os\nos.fork()", status="refused", gate="on", started=False),
    "no Python": Case(script="def (", status="refused", started=False),
    "loop": Case(script="print('before')\nwhile True: pass", status="timeout", limits=SECOND, printout="before\n"),
    "sleep": Case(script="import time\ntime.sleep(1_000)", status="timeout", limits=SECOND),
    "deaf": Case(script=DEAF, status="timeout", limits=SECOND, wall_needed=True),
    "flood": Case(script=FLOOD.format(1), status="output"),
    "flood of stderr": Case(script=FLOOD.format(2), status="output"),
    "allocate": Case(script="x = bytearray(2 << 30)", status="memory", wall_needed=True),
    "grow": Case(
        script="x = []\nwhile True: x.append('a' * 1_000 + str(len(x)))",
        status="memory", wall_needed=True,
    ),
    "shared mapping": Case(script=SHARED, status="memory", wall_needed=True),
    "cpu": Case(
        script="while True: pass", status="cpu", limits=(("cpu_seconds", 0.5), ("wall", 30)),
        wall_needed=True,
    ),
    "threads": Case(script=THREADS, status="pids", wall_needed=True),
    "forks": Case(script=FORKS, status="pids", wall_needed=True),
    "daemon": Case(script=DAEMON, status="ok", printout="parent done\n", wall_needed=True),
    "closed streams": Case(
        script="import sys\nsys.stdout.close()\nsys.stderr.close()", status="ok", exit_code=0
    ),
    "all descriptors closed": Case(
        script="import os\nos.closerange(0, 256)\nos._exit(9)", status="error", exit_code=9
    ),
    "no bridge": Case(
        script="import os, time\nos.closerange(3, 256)\ntime.sleep(100)", status="killed"
    ),
}  # fmt: skip


def check_streams(backend: Backend) -> None:
    """Both streams come while the script runs, in order; calls and rows cross the bridge."""
    box = Toolset("box")

    @box.tool(effect="read")
    def rows(count: int):
        """Count."""
        yield from range(count)

    heard: list[tuple[str, str]] = []
    script = """
import sys, time
from tools import box
print("one", flush=True)
print("two", file=sys.stderr, flush=True)
print(sum(box.rows(10_000)))
"""
    before = traces()
    with Executor([box], backend=backend, gate="off") as executor:
        result = executor.execute_code(script, on_output=lambda *item: heard.append(item))
    assert result.status == "ok", result.for_model()
    assert "".join(text for stream, text in heard if stream == "stdout") == "one\n49995000\n"
    assert ("stderr", "two\n") in heard
    assert result.calls.succeeded == 1
    assert not left_since(before)


def check_cancelling(backend: Backend) -> None:
    """A cancelled execution is dead when the await ends."""

    async def run() -> None:
        async with AsyncExecutor(backend=backend, gate="off") as executor:
            began = asyncio.Event()
            task = asyncio.create_task(
                executor.execute_code(
                    "print(1, flush=True)\nwhile True: pass", on_output=lambda *_: began.set()
                )
            )
            await asyncio.wait_for(began.wait(), 60)
            task.cancel()
            assert (await asyncio.gather(task, return_exceptions=True))[
                0
            ].__class__ is asyncio.CancelledError

    before = traces()
    asyncio.run(run())
    assert not left_since(before)


def check_closing(backend: Backend) -> None:
    """Closing an executor cancels what runs, and says so."""
    from concurrent.futures import ThreadPoolExecutor

    before = traces()
    executor = Executor(backend=backend, gate="off")
    heard: list[str] = []
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(
            executor.execute_code,
            "print(1, flush=True)\nwhile True: pass",
            on_output=lambda _, text: heard.append(text),
        )
        while not heard:
            time.sleep(0.01)
        executor.close()
        result = running.result()
    check_shape(result)
    assert result.status == "cancelled"
    assert not left_since(before)


def check_warm(backend: Backend) -> None:
    """A warm sandbox serves one script, and nothing of it is left for the next."""
    before = traces()
    with Executor(backend=backend, gate="off", warm=1) as executor:
        starts = []
        for number in range(3):
            script = f"import os\nprint(os.listdir('.'))\nopen('left{number}', 'x').close()"
            result = executor.execute_code(script)
            starts.append(result.sandbox.start)
            assert "left" not in result.printout
            deadline = time.monotonic() + 60
            while not executor.statistics().warm and time.monotonic() < deadline:
                time.sleep(0.02)
        assert starts == ["cold", "warm", "warm"]
    assert not left_since(before)


def check_inputs(backend: Backend) -> None:
    """Input files are read under /data."""
    with Executor(backend=backend, gate="off") as executor:
        result = executor.execute_code("print(open('/data/x', 'rb').read())", data={"x": b"abc"})
    assert result.printout == "b'abc'\n"


def check_session(backend: Backend) -> None:
    """A session's scripts go on where the last one ended, until one of them ends the sandbox."""
    before = traces()
    with Executor(backend=backend, gate="off") as executor, executor.session() as session:
        session.execute_code("import os\nx = 1")
        result = session.execute_code("print(x)")
        assert (result.printout, result.sandbox.start, result.warnings) == ("1\n", "kept", ())
        result = session.execute_code("os._exit(0)")
        assert [one.code for one in result.warnings if one.code != "left_early"] == ["state_gone"]
        assert session.execute_code("print('x' in globals())").printout == "False\n"
    assert not left_since(before)


def check_unavailable(backend: Backend) -> None:
    """Where no sandbox can start, nothing runs and the result says why."""

    class Broken:
        def __getattr__(self, name: str):
            return getattr(backend, name)

        async def create(self, limits):
            raise OSError(28, os.strerror(28))

    with Executor(backend=Broken(), gate="off") as executor:
        result = executor.execute_code("print(1)")
    check_shape(result)
    assert (result.status, result.started) == ("unavailable", False)
    assert os.strerror(28) in result.for_model()


WAYS: dict[str, Callable[[Backend], None]] = {
    "streams": check_streams,
    "cancelling": check_cancelling,
    "closing": check_closing,
    "warm": check_warm,
    "session": check_session,
    "unavailable": check_unavailable,
}


def checks(*, walls: bool = True) -> dict[str, Callable[[Backend], None]]:
    """All checks by name; without walls only those that need none."""
    cases = {name: case.check for name, case in CASES.items() if walls or not case.wall_needed}
    ways = WAYS | ({"inputs": check_inputs} if walls else {})
    return cases | ways


def check_backend(make_backend: MakeBackend, *, walls: bool = True) -> None:
    """Run every check, each on a backend of its own."""
    for check in checks(walls=walls).values():
        check(make_backend())
