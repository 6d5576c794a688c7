"""The warm pool: its moves, and what it does on real sandboxes, also when they die while waiting."""

import asyncio
import contextlib
import os
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.sandboxed import BACKENDS, ON_BOTH, execute, left_since, traces

from limbeck import ConfigurationError, Executor, Toolset
from limbeck.runtime.errors import SandboxUnavailable
from limbeck.sandbox.pool import _MOVES, SandboxPool, Slot, SlotState

box = Toolset("box")


@box.tool(effect="read")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@given(st.lists(st.sampled_from(SlotState), max_size=6))
def test_only_the_table_s_moves_are_made(moves: list[SlotState]) -> None:
    slot = Slot()
    for move in moves:
        before = slot.state
        if move in _MOVES[before]:
            slot.move(move)
            assert slot.state is move
        else:
            with pytest.raises(ValueError, match=f"from {before} to {move}"):
                slot.move(move)
            assert slot.state is before


def _wait_until_warm(executor: Executor, count: int) -> None:
    import time

    for _ in range(400):
        if executor.statistics().warm >= count:
            return
        time.sleep(0.05)
    raise AssertionError(executor.statistics())


@ON_BOTH
def test_a_warm_sandbox_serves_one_script_and_the_pool_refills(where: str) -> None:
    before = traces()
    with Executor([box], backend=BACKENDS[where], warm=2) as executor:
        script = (
            "from tools import box\nimport os.path\nprint(box.add(1, 2))\nopen('/workspace/x', 'x')"
        )
        starts = []
        for _ in range(3):
            result = executor.execute_code(script)
            assert (result.status, result.printout.splitlines()[0]) == ("ok", "3")
            starts.append(result.sandbox.start)
            _wait_until_warm(executor, 2)
        statistics = executor.statistics()
        assert starts == ["cold", "warm", "warm"]
        assert (statistics.hits, statistics.misses, statistics.failures) == (2, 1, 0)
    assert not left_since(before)


@ON_BOTH
def test_a_sandbox_that_died_while_it_waited_is_not_lent(where: str) -> None:
    with Executor([box], backend=BACKENDS[where], warm=1) as executor:
        executor.execute_code("1")
        _wait_until_warm(executor, 1)
        ((_, waiting),) = executor._core._pool._warm
        for pid in _processes(waiting.sandbox.uid):
            with contextlib.suppress(ProcessLookupError):  # it went with the one before
                os.kill(pid, signal.SIGKILL)
        asyncio.run_coroutine_threadsafe(
            asyncio.wait_for(waiting.sandbox.wait(), 10), executor._thread.loop
        ).result()
        result = executor.execute_code("from tools import box\nprint(box.add(1, 2))")
        assert (result.status, result.printout) == ("ok", "3\n")
        assert executor.statistics().expired == 1


def _processes(uid: int) -> list[int]:
    if uid == os.geteuid():
        pytest.skip("only root tells a sandbox by its uid")
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == uid or _owner(name) == uid:
                    found.append(int(name))
            except OSError:
                continue
    return found


def _owner(pid: str) -> int:
    with open(f"/proc/{pid}/status") as file:
        (line,) = [line for line in file if line.startswith("Uid:")]
    return int(line.split()[1])


def test_old_ones_are_replaced() -> None:
    now = [0.0]

    class One:
        is_alive = True
        opened = 0.0
        closed = False

        async def close(self) -> None:
            self.closed = True

    async def run() -> None:
        made: list[One] = []

        async def open_one() -> One:
            made.append(One())
            made[-1].opened = now[0]
            return made[-1]

        pool = SandboxPool(open_one, 1, max_age=10, clock=lambda: now[0])
        assert pool.lease() is None
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        now[0] = 11
        assert pool.lease() is None
        await asyncio.sleep(0.01)
        assert made[0].closed
        assert pool.statistics().expired == 1
        assert pool.lease() is made[1]
        await pool.close()

    asyncio.run(run())


def test_failures_are_not_tried_again_at_once() -> None:
    now = [0.0]
    tries = []

    async def run() -> None:
        async def open_one():
            tries.append(now[0])
            raise SandboxUnavailable({"box": "no"})

        pool = SandboxPool(open_one, 1, clock=lambda: now[0])
        for moment in (0.0, 0.1, 0.6, 0.7, 1.7, 3.0, 4.0):
            now[0] = moment
            assert pool.lease() is None
            await asyncio.sleep(0.001)
        assert tries == [0.0, 0.6, 1.7, 4.0]
        assert pool.statistics().failures == 4
        await pool.close()

    asyncio.run(run())


def test_the_queue_is_bounded_and_says_so() -> None:
    from dataclasses import replace

    from limbeck import AsyncExecutor

    async def run() -> list[str]:
        executor = AsyncExecutor(backend=BACKENDS["bubblewrap"], gate="off")
        executor._settings = replace(executor._settings, max_sandboxes=1, max_queued=1)
        async with executor:
            script = "import time\ntime.sleep(1)"
            results = await asyncio.gather(*(executor.execute_code(script) for _ in range(3)))
        return sorted(
            result.error.code if result.error else result.sandbox.start for result in results
        )

    assert asyncio.run(run()) == ["cold", "queue_full", "queued"]


def test_warm_is_checked() -> None:
    with pytest.raises(ConfigurationError, match="warm"):
        Executor(warm=-1)
    assert execute("1", box, warm=0).sandbox.start == "cold"
