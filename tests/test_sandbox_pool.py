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
from limbeck.sandbox import warm
from limbeck.sandbox.backend import Limits
from limbeck.sandbox.pool import SandboxPool
from limbeck.sandbox.slot import MOVES, Slot, SlotState

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
        if move in MOVES[before]:
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
        waiting = _waiting(executor)
        for pid in _processes(waiting.sandbox.uid):
            with contextlib.suppress(ProcessLookupError):  # it went with the one before
                os.kill(pid, signal.SIGKILL)
        asyncio.run_coroutine_threadsafe(
            asyncio.wait_for(waiting.sandbox.wait(), 10), executor._thread.loop
        ).result()
        result = executor.execute_code("from tools import box\nprint(box.add(1, 2))")
        assert (result.status, result.printout) == ("ok", "3\n")
        assert executor.statistics().expired == 1


def _waiting(executor: Executor):
    (shelf,) = executor._core._pool._shelves.values()
    ((_, one),) = shelf
    return one


@ON_BOTH
def test_one_that_stands_still_gives_no_answer_and_is_not_lent(where: str, monkeypatch) -> None:
    monkeypatch.setattr(warm, "PING_SECONDS", 0.5)
    with Executor([box], backend=BACKENDS[where], warm=1) as executor:
        executor.execute_code("1")
        _wait_until_warm(executor, 1)
        waiting = _waiting(executor)
        loop = executor._thread.loop
        threads = asyncio.run_coroutine_threadsafe(waiting.sandbox.freeze(), loop).result()
        assert threads >= 1
        assert waiting.is_alive
        result = executor.execute_code("from tools import box\nprint(box.add(1, 2))")
        assert (result.status, result.printout) == ("ok", "3\n")
        assert executor.statistics().expired == 1


@ON_BOTH
def test_a_script_with_other_limits_does_not_get_a_warm_one(where: str) -> None:
    with Executor(backend=BACKENDS[where], warm=1) as executor:
        executor.execute_code("1")
        _wait_until_warm(executor, 1)
        less = executor.execute_code("1", limits={"memory": 100 << 20})
        assert less.sandbox.start == "cold"
        assert executor.statistics().warm == 1
        # The wall is the host's to hold.
        assert executor.execute_code("1", limits={"wall": 5}).sandbox.start == "warm"


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


class Made:
    """A warm sandbox that is none: for the pool's own moves, with a clock of ours."""

    def __init__(self, opened: float, limits: Limits) -> None:
        self.opened, self.limits = opened, limits
        self.closed = False

    async def answers(self) -> bool:
        return True

    async def close(self) -> None:
        assert not self.closed
        self.closed = True


class Opener:
    """Opens sandboxes that are none, or fails."""

    def __init__(self, *, fails: bool = False) -> None:
        self.now = 0.0
        self.fails = fails
        self.image = "first"
        self.made: list[Made] = []
        self.tries: list[float] = []

    def pool(self, **options) -> SandboxPool:
        return SandboxPool(
            self._open, self._shape, {Limits(): 1}, clock=lambda: self.now, **options
        )

    def _shape(self, limits: Limits) -> tuple[object, ...]:
        return (self.image, limits.held)

    async def _open(self, limits: Limits) -> Made:
        self.tries.append(self.now)
        if self.fails:
            raise SandboxUnavailable({"box": "no"})
        self.made.append(Made(self.now, limits))
        return self.made[-1]


def test_old_ones_are_replaced() -> None:
    async def run() -> None:
        opener = Opener()
        pool = opener.pool(max_age=10)
        assert await pool.lease(Limits()) is None
        await asyncio.sleep(0.01)
        opener.now = 11
        assert await pool.lease(Limits()) is None
        await asyncio.sleep(0.01)
        assert opener.made[0].closed
        assert pool.statistics().expired == 1
        assert await pool.lease(Limits()) is opener.made[1]
        await pool.close()

    asyncio.run(run())


def test_each_key_has_its_own_and_what_no_key_wants_is_closed() -> None:
    async def run() -> None:
        opener = Opener()
        pool = opener.pool()
        pool.fill()
        await asyncio.sleep(0.01)
        assert await pool.lease(Limits(memory=64 << 20)) is None
        assert pool.statistics().warm == 1
        opener.image = "second"
        assert await pool.lease(Limits(wall=1)) is None
        await asyncio.sleep(0.01)
        assert [one.closed for one in opener.made] == [True, False]
        assert await pool.lease(Limits(wall=1)) is opener.made[1]
        await pool.close()

    asyncio.run(run())


def test_failures_are_not_tried_again_at_once() -> None:
    async def run() -> None:
        opener = Opener(fails=True)
        pool = opener.pool()
        for moment in (0.0, 0.1, 0.6, 0.7, 1.7, 3.0, 4.0):
            opener.now = moment
            assert await pool.lease(Limits()) is None
            await asyncio.sleep(0.001)
        assert opener.tries == [0.0, 0.6, 1.7, 4.0]
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
