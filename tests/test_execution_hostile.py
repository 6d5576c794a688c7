"""Executions on a host that runs out of things, or whose script tries to make it so."""

import asyncio
import json
import os
import subprocess
import sys
import threading

import pytest
from kit.sandboxed import BACKEND, BACKENDS, ON_BOTH, execute

from limbeck.sandbox.cancelling import Cancelled, unless
from limbeck.sandbox.core import Core, Request, Settings
from limbeck.sandbox.loop import own_loop
from limbeck.sandbox.result import ExecutionResult
from limbeck.stubs.catalog import Catalog


@ON_BOTH
def test_a_script_opens_no_descriptor_on_the_host(where: str) -> None:
    script = """
import os, socket, time
connected = 0
for _ in range(4):
    if os.fork() == 0:
        kept = []
        for _ in range(500):
            for name in ("/bridge/s", "/bridge/o"):
                one = socket.socket(socket.AF_UNIX)
                try:
                    one.connect(name)
                    kept.append(one)
                except OSError:
                    one.close()
        os._exit(min(len(kept), 255))
seen = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(4)]
print(seen)
"""
    assert execute(script, backend=BACKENDS[where]).printout == "[0, 0, 0, 0]\n"


def test_a_broken_protocol_is_told() -> None:
    script = """
import sys
from limbeck.runtime import codec
from limbeck.runtime.channel import Channel
for frame in sys._current_frames().values():
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, Channel):
                channel = value
        frame = frame.f_back
channel._put(codec.cancels(range(5_000)))
__import__("time").sleep(20)
"""
    result = execute(script)
    assert result.status == "killed", result.for_model()
    assert result.error.code == "protocol_error"
    assert "1,024" in result.error.message


_SHORT = """
import os, resource, sys
from limbeck import Executor
from limbeck.sandbox import warm
warm.START_SECONDS = 2.0
from kit.sandboxed import BACKEND, left_since, traces
import json
seen = []
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
with Executor(backend=BACKEND, gate=sys.argv[1]) as executor:
    assert executor.execute_code("print(1)").status == "ok"
    before = traces()
    for spare in range(0, 44, 2):
        opened = max(map(int, os.listdir("/proc/self/fd")))
        free = opened + 1 - len(os.listdir("/proc/self/fd"))
        holes = [os.open("/dev/null", os.O_RDONLY) for _ in range(max(free, 0))]
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 1 + spare, hard))
        result = executor.execute_code("print(1)")
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        for hole in holes:
            os.close(hole)
        seen.append((result.status, result.error.message if result.error else ""))
    assert executor.execute_code("print(1)").status == "ok"
    left = left_since(before)
print(json.dumps([seen, [name for name in left if not name.startswith("cgroup")]]))
"""


@pytest.mark.parametrize("gate", ["off", "on"])
def test_a_host_without_descriptors_is_unavailable(gate: str) -> None:
    """Whatever is the first that there is none for: a pipe, a socket, the bridge, the child."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _SHORT, gate],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": "tests"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    seen, left = json.loads(done.stdout.splitlines()[-1])
    assert {status for status, _ in seen} == {"ok", "unavailable"}, seen
    assert any("ulimit" in text for _, text in seen)
    assert not left


def test_a_queued_execution_is_cancelled_at_once() -> None:
    going = threading.Event()

    async def both() -> tuple[ExecutionResult, bool, ExecutionResult]:
        settings = Settings(
            whole=Catalog.of(),
            scopes=frozenset(),
            backend=BACKEND,
            gate=False,
            max_sandboxes=1,
        )
        core, loop = Core(settings), asyncio.get_running_loop()
        long = Request(
            script="print(1)\nimport time\ntime.sleep(50)",
            tool_loop=loop,
            cancel=asyncio.Event(),
            on_output=lambda *_: going.set(),
        )
        first = asyncio.create_task(core.execute(long))
        while not going.is_set():
            await asyncio.sleep(0.01)
        cancel = asyncio.Event()
        request = Request(script="print(2)", tool_loop=loop, cancel=cancel)
        queued = asyncio.create_task(core.execute(request))
        while not core._queued:
            await asyncio.sleep(0.01)
        cancel.set()
        result = await queued
        waited = first.done()
        long.cancel.set()
        last = await first
        await core.close()
        return result, waited, last

    result, waited, last = own_loop().submit(both()).result(120)
    assert (result.status, result.started, waited) == ("cancelled", False, False)
    assert last.status == "cancelled"


def test_what_comes_too_late_for_a_cancel_is_kept() -> None:
    async def test() -> None:
        cancel = asyncio.Event()
        assert await unless(cancel, asyncio.sleep(0, 1)) == 1
        cancel.set()
        ended = []

        async def step() -> None:
            try:
                await asyncio.sleep(600)
            finally:
                ended.append(True)

        with pytest.raises(Cancelled):
            await unless(cancel, step())
        assert ended == [True]

    asyncio.run(test())
