"""Sessions whose scripts try to get more than their turn, or are cancelled at any moment."""

import asyncio
import random
import time

import pytest
from kit.sandboxed import BACKEND, BACKENDS, ON_BOTH, left_since, traces

from limbeck import AsyncExecutor, Executor, Toolset

CHANNEL = """
import gc
from limbeck.runtime import codec
from limbeck.runtime.channel import Channel
channel = next(one for one in gc.get_objects() if type(one) is Channel)
"""


class Box:
    """Counts its calls."""

    def __init__(self) -> None:
        self.count = 0
        self.toolset = box = Toolset("box")

        @box.tool(effect="read", name="count")
        def counted() -> int:
            """Count."""
            self.count += 1
            return self.count


@ON_BOTH
def test_an_old_token_gives_nothing_in_a_later_script(where: str) -> None:
    before = traces()
    box = Box()
    with (
        Executor([box.toolset], backend=BACKENDS[where], gate="off") as executor,
        executor.session() as session,
    ):
        session.execute_code(CHANNEL + "first = channel._token")
        result = session.execute_code(
            "from tools import box\n"
            "second, channel._token = channel._token, first\n"
            "try:\n    box.count()\nexcept Exception as error:\n    print(type(error).__name__)\n"
            "channel._put(codec.done(0, b'', 1))\nchannel._put(codec.done(0, b'', 2))\n"
            "channel._token = second\nprint('goes on')"
        )
        assert result.printout == "BridgeClosed\ngoes on\n", result.for_model()
        assert (result.status, result.calls.started, box.count) == ("ok", 0, 0)
        result = session.execute_code("channel._token = first\nbox.count()")
        assert (result.status, result.error.code) == ("killed", "protocol_error")
        assert "state_gone" in [one.code for one in result.warnings]
        assert box.count == 0
    assert not left_since(before)


@ON_BOTH
def test_a_script_that_says_that_it_has_ended_is_stopped_there(where: str) -> None:
    """It goes on in the next script's time, in whose name it has nothing to say."""
    before = traces()
    box = Box()
    with (
        Executor([box.toolset], backend=BACKENDS[where], gate="off") as executor,
        executor.session() as session,
    ):
        result = session.execute_code(
            CHANNEL + "from tools import box\n"
            "channel.done(0, None, 1)\n"
            "for n in range(5):\n"
            "    print('late', n, flush=True)\n"
            "    try:\n        box.count()\n    except Exception as error: print(type(error).__name__)\n"
        )
        assert result.status == "ok", result.for_model()
        assert box.count == 0
        result = session.execute_code("print('next', box.count())", wall=1)
        # What it asked for waits for a job, and there is none as long as it is under way.
        assert (result.status, box.count) == ("timeout", 0), result.for_model()
        assert session.execute_code("print(1)").printout == "1\n"
    assert not left_since(before)


FORKING = """
import os, time
if os.fork() == 0:
    while True:
        if os.fork():
            time.sleep(0.0005)
            os._exit(0)
        os.setsid()
"""


@ON_BOTH
def test_what_forks_for_ever_stands_still_or_is_killed(where: str) -> None:
    before = traces()
    with Executor(backend=BACKENDS[where], gate="off") as executor, executor.session() as session:
        result = session.execute_code(FORKING)
        assert result.status == "ok", result.for_model()
        codes = [one.code for one in result.warnings]
        assert codes in (["threads_left"], ["state_gone"])
        if codes == ["threads_left"]:
            one = session._live.sandbox.sandbox
            used = one.usage().cpu_seconds
            time.sleep(0.5)
            assert one.usage().cpu_seconds - used < 0.1
    assert not left_since(before)


def test_alarms_that_a_script_left_behind_do_not_break_the_next() -> None:
    before = traces()
    script = """
import signal
def ring(*_):
    raise RuntimeError("ring")
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
x = {}
"""
    with Executor(backend=BACKEND, gate="off") as executor, executor.session() as session:
        for number in range(10):
            # It may ring while the script still runs: that is its own affair.
            first = session.execute_code(script.format(number))
            assert first.status == "ok" or first.error.message == "ring", first.for_model()
            second = session.execute_code("print(x)")
            assert second.printout == f"{number}\n", second.for_model() + str(second.error)
            assert second.sandbox.start == ("kept")
    assert not left_since(before)


def test_cancelled_at_any_moment_the_state_is_there_or_said_to_be_gone() -> None:
    rng = random.Random(17)

    async def run() -> None:
        async with AsyncExecutor(backend=BACKEND, gate="off", warm=2) as executor:
            session = executor.session()
            expected = None
            for number in range(25):
                running = asyncio.create_task(
                    session.execute_code(f"x = {number}\nimport time\ntime.sleep(0.004)")
                )
                await asyncio.sleep(rng.random() * 0.02)
                running.cancel()
                (outcome,) = await asyncio.gather(running, return_exceptions=True)
                if not isinstance(outcome, asyncio.CancelledError):
                    expected = number
                result = await session.execute_code("print(globals().get('x'))")
                assert result.status == "ok", result.for_model()
                if "state_gone" in [one.code for one in result.warnings]:
                    expected = None
                    assert result.printout == "None\n"
                elif isinstance(outcome, asyncio.CancelledError):
                    # It never began, or it had come to its end already.
                    assert result.printout in (f"{expected}\n", f"{number}\n")
                    expected = number if result.printout == f"{number}\n" else expected
                else:
                    assert result.printout == f"{expected}\n"
            assert executor._core.sessions.kept <= 1

    before = traces()
    asyncio.run(run())
    assert not left_since(before)


def test_closed_at_any_moment_nothing_is_left() -> None:
    rng = random.Random(18)

    async def run() -> None:
        async with AsyncExecutor(backend=BACKEND, gate="off", warm=2) as executor:
            for _ in range(12):
                session = executor.session()
                calls = [session.execute_code("import time\ntime.sleep(0.004)") for _ in range(3)]
                tasks = list(map(asyncio.create_task, calls))
                await asyncio.sleep(rng.random() * 0.03)
                await session.close()
                results = await asyncio.gather(*tasks)
                assert {one.status for one in results} <= {"ok", "cancelled", "unavailable"}
                assert executor._core.sessions.kept == 0

    before = traces()
    asyncio.run(run())
    assert not left_since(before)


@pytest.mark.parametrize("where", ["bubblewrap", "watcher"])
def test_many_sessions_side_by_side(where: str) -> None:
    async def one(executor: AsyncExecutor, number: int) -> None:
        async with executor.session(user=str(number)) as session:
            for step in range(3):
                result = await session.execute_code(
                    f"x = globals().get('x', {number}) + 1\nprint(x)"
                )
                assert result.printout == f"{number + step + 1}\n", result.for_model()

    async def run() -> None:
        executor = AsyncExecutor(backend=BACKENDS[where], gate="off", max_kept=64)
        async with executor:
            await asyncio.gather(*(one(executor, number * 100) for number in range(20)))

    before = traces()
    asyncio.run(run())
    assert not left_since(before)
