"""Who gets a thread, a stream or a turn: late handlers, calls that never began, cooldowns."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from kit.bridged import bridged, run

from limbeck import Toolset
from limbeck.bridge.audit import Outcome
from limbeck.bridge.policy.cooldown import Cooldowns
from limbeck.bridge.start import Start
from limbeck.bridge.threads import DaemonPool
from limbeck.runtime.errors import BudgetExceeded, RateLimited, ToolTimeout

box = Toolset("box")
release = threading.Event()
began: list[str] = []


@box.tool(effect="write", timeout=0.3)
def stuck() -> None:
    """Wait until the test lets go."""
    began.append("stuck")
    release.wait(30)


@box.tool(effect="write", timeout=0.3)
async def blocked() -> None:
    """Run on a loop that does not turn."""
    began.append("blocked")


@box.tool(effect="write", timeout=0.2)
def endless() -> Iterator[int]:
    """Give one row, and never another."""
    yield 1
    release.wait(30)


@box.tool(effect="write", cooldown_seconds=60)
def seldom() -> int:
    """Rest between two calls."""
    return 1


@box.tool(effect="write", cooldown_seconds=60, approval="deny")
def never() -> int:
    """Be denied behind the cooldown."""
    return 1


@pytest.fixture(autouse=True)
def _fresh():
    release.clear()
    began.clear()
    yield
    release.set()


def test_the_first_of_begin_and_give_up_decides() -> None:
    one, other = Start(), Start()
    assert (one.begin(), one.give_up(), one.begun) == (True, False, True)
    assert (other.give_up(), other.begin(), other.begun) == (True, False, False)


def test_a_call_that_never_began_has_no_unknown_outcome() -> None:
    async def test() -> None:
        async with bridged(box, threads={"max_threads": 1, "max_late": 0}) as bridge:
            first = asyncio.create_task(bridge.script(lambda c: c.call("box.stuck", {})))
            with pytest.raises(ToolTimeout):
                await first
            with pytest.raises(ToolTimeout, match="was not run") as caught:
                await bridge.script(lambda c: c.call("box.stuck", {}))
            assert caught.value.begun is False
            outcomes = [event.outcome for event in bridge.audit.events()]
            assert outcomes == [Outcome.UNKNOWN, Outcome.DENIED]
            counts = bridge.execution.counts
            assert (counts.unknown_outcome, counts.denied) == (1, 1)
            assert bridge.execution.spending.writes == 1
            assert began == ["stuck"]

    run(test)


def test_a_coroutine_whose_loop_did_not_turn_never_began() -> None:
    loop = asyncio.new_event_loop()  # Nobody runs it.

    async def test() -> None:
        async with bridged(box, tool_loop=loop) as bridge:
            with pytest.raises(ToolTimeout, match="was not run"):
                await bridge.script(lambda c: c.call("box.blocked", {}))
            assert [event.outcome for event in bridge.audit.events()] == [Outcome.DENIED]

    run(test)
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()
    assert began == []


def test_late_threads_are_replaced_and_nobody_holds_all() -> None:
    async def test() -> None:
        pool = DaemonPool("test", 4, max_late=4, most_of_one=3)
        hogs = [
            asyncio.create_task(pool.run(lambda: release.wait(30), owner="hog")) for _ in range(9)
        ]
        await asyncio.sleep(0)
        assert await pool.run(lambda: 1, owner="other") == 1
        for hog in hogs[:3]:
            hog.cancel()
        await asyncio.wait(hogs[:3])
        # Its late handlers still count as its own; the others have all four threads.
        values = [pool.run(lambda: barrier.wait(10), owner="other") for _ in range(3)]
        barrier = threading.Barrier(3)
        assert sorted(await asyncio.gather(*values)) == [0, 1, 2]
        release.set()
        assert await asyncio.gather(*hogs[3:]) == [True] * 6
        while pool._running or pool._late:
            await asyncio.sleep(0.01)
        assert (pool._running, pool._late, dict(pool._held), pool._waiting) == (0, 0, {}, {})
        pool.close()

    run(test)


def test_who_holds_the_fewest_is_next() -> None:
    async def test() -> None:
        pool, order = DaemonPool("test", 1, max_late=0), []
        first = asyncio.create_task(pool.run(lambda: release.wait(30), owner="a"))
        await asyncio.sleep(0)
        jobs = [
            asyncio.create_task(pool.run(lambda name=name: order.append(name), owner=name))
            for name in "aaabbc"
        ]
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(first, *jobs)
        assert order == ["a", "b", "c", "a", "b", "a"]
        pool.close()

    run(test)


def test_generators_that_do_not_end_keep_their_places() -> None:
    async def test() -> None:
        async with bridged(box) as bridge:

            def script(channel) -> None:
                for _ in range(16):
                    with pytest.raises(ToolTimeout):
                        list(channel.stream("box.endless", {}))
                with pytest.raises(BudgetExceeded, match="open streams"):
                    list(channel.stream("box.endless", {}))
                release.set()

            await bridge.script(script)
            outcomes = [event.outcome for event in bridge.audit.events()]
            assert outcomes == [Outcome.UNKNOWN] * 16 + [Outcome.DENIED]

    run(test)


def test_a_tool_rests_between_two_calls() -> None:
    now = [100.0]

    async def test() -> None:
        async with bridged(box, clock=lambda: now[0]) as bridge:
            assert await bridge.script(lambda c: c.call("box.seldom", {})) == 1
            now[0] += 45
            with pytest.raises(RateLimited, match="rests for 60 s") as caught:
                await bridge.script(lambda c: c.call("box.seldom", {}))
            assert (caught.value.retry_after, caught.value.cooldown_seconds) == (15, 60)
            now[0] += 15
            assert await bridge.script(lambda c: c.call("box.seldom", {})) == 1
            outcomes = [event.outcome for event in bridge.audit.events()]
            assert outcomes == [Outcome.OK, Outcome.DENIED, Outcome.OK]
            assert bridge.execution.spending.writes == 2
            for _ in range(2):  # What never began does not make it rest.
                with pytest.raises(Exception, match="switched off"):
                    await bridge.script(lambda c: c.call("box.never", {}))

    run(test)


def test_principals_rest_apart_and_are_forgotten() -> None:
    now = [0.0]
    cooldowns = Cooldowns(lambda: now[0])
    for number in range(5_000):
        now[0] += 1
        assert cooldowns.claim((None, str(number), "t"), 10) == 0
    assert cooldowns.claim((None, "4999", "t"), 10) == 10
    assert len(cooldowns._until) < 2_000


def test_a_burst_of_one_execution_lets_another_in_between() -> None:
    from limbeck.bridge.conversation import CALLS_A_TURN
    from limbeck.runtime.wire_pb2 import FromSandbox, ToolCall

    turns: list[str] = []

    async def test() -> None:
        async with bridged(box) as bridge:
            conversation = bridge.listener._conversation
            conversation._start = lambda call: turns.append("call")

            async def other() -> None:
                for _ in range(3):
                    turns.append("other")
                    await asyncio.sleep(0)

            calls = [ToolCall(id=number) for number in range(1, 65)]
            task = asyncio.create_task(other())
            await conversation.hear(FromSandbox(calls=calls))
            await task
            assert turns.index("other") < CALLS_A_TURN

    run(test)
