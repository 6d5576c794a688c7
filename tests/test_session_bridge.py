"""Several executions on one stream: each with its token, and nothing served between them."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from kit.bridged import Bridged, bridged, in_thread, run

from limbeck.bridge.session import Execution
from limbeck.runtime import codec
from limbeck.runtime.channel import Channel
from limbeck.runtime.errors import BridgeClosed
from limbeck.runtime.turns import Inbox
from limbeck.stubs.tool import Toolset


class Box:
    """Counts what is called, and when it is cancelled."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.began = asyncio.Event()
        self.cancelled = 0
        self.toolset = box = Toolset("box")

        @box.tool(effect="read")
        async def note(text: str) -> int:
            """Take a note."""
            self.calls.append(text)
            return len(self.calls)

        @box.tool(effect="read")
        async def wait() -> int:
            """Never answer."""
            self.began.set()
            try:
                await asyncio.sleep(1_000)
            finally:
                self.cancelled += 1
            return 1


def note(text: str) -> Callable[[Channel], Any]:
    return lambda channel: channel.call("box.note", {"text": text})


async def end(bridge: Bridged) -> None:
    """What the host does when a script has ended."""
    bridge.execution.revoke()
    await bridge.listener.end_calls()


async def go_on(bridge: Bridged, number: int) -> None:
    """The next job on the stream, and the worker takes it."""
    last = bridge.channel._job
    bridge.execution = Execution(
        bridge.execution.session, wall=60, tool_loop=asyncio.get_running_loop()
    )
    bridge.execution.begin()
    bridge.listener.serve(bridge.execution, "pass", gate=False, keep=True, number=number)
    await bridge.script(lambda channel: channel.wait_for_job(last=last))


def test_each_execution_has_a_token_and_counts_of_its_own() -> None:
    async def test() -> None:
        box = Box()
        async with bridged(box.toolset) as bridge:
            first = bridge.execution
            assert await bridge.script(note("a")) == 1
            await bridge.script(lambda channel: channel.done(0, None, 1))
            assert (await bridge.listener.done).exit_code == 0
            await end(bridge)
            await go_on(bridge, 2)
            assert await bridge.script(note("b")) == 2
            await bridge.script(lambda channel: channel.done(3, None, 2))
            assert (await bridge.listener.done).exit_code == 3
            assert (first.counts.started, bridge.execution.counts.started) == (1, 1)
            assert first.token != bridge.execution.token

    run(test)


def test_calls_after_the_end_wait_for_the_next_job() -> None:
    """A thread that calls between two scripts, and in no one's name, is not refused."""

    async def test() -> None:
        box = Box()
        async with bridged(box.toolset) as bridge:
            await bridge.script(lambda channel: channel.done(0, None, 1))
            await bridge.listener.done
            await end(bridge)
            left = asyncio.ensure_future(bridge.script(note("left over")))
            for _ in range(20):
                await asyncio.sleep(0.01)
            assert (left.done(), box.calls) == (False, [])
            await go_on(bridge, 2)
            assert await left == 1
            assert bridge.execution.counts.started == 1

    run(test)


def test_the_old_token_serves_nothing_and_ends_nothing() -> None:
    async def test() -> None:
        box = Box()
        async with bridged(box.toolset) as bridge:
            old = bridge.execution
            await bridge.script(lambda channel: channel.done(0, None, 1))
            await bridge.listener.done
            await end(bridge)

            # Whoever still has the token, before the next job and after it.
            for job in (None, 2, 3):
                if job is not None:
                    await go_on(bridge, job)
                token, bridge.channel._token = bridge.channel._token, codec.token(old.token)
                bridge.channel._is_held = False
                if job == 3:
                    with pytest.raises(BridgeClosed):
                        await bridge.script(note("of the one before the one before"))
                    await bridge.listener.ended.wait()
                    assert bridge.listener.fault == "a message carries no valid token"
                    break
                with pytest.raises(BridgeClosed):
                    await bridge.script(note("old"))
                # Nor can it end the script that runs now.
                bridge.channel._put(codec.done(9, b"", job or 1))
                await asyncio.sleep(0.05)
                assert job is None or not bridge.listener.done.done()
                assert not bridge.listener.ended.is_set()
                bridge.channel._token = token
            assert box.calls == []
            assert old.counts.started == 0

    run(test)


def test_an_end_that_is_said_again_does_not_end_the_next_script() -> None:
    async def test() -> None:
        async with bridged(Box().toolset) as bridge:
            await bridge.script(lambda channel: channel.done(0, None, 1))
            await bridge.listener.done
            await end(bridge)
            await go_on(bridge, 2)
            bridge.channel._put(codec.done(9, b"", 1))  # With the new token, of the old script.
            assert await bridge.script(note("a")) == 1
            assert not bridge.listener.done.done()

    run(test)


def test_who_waits_for_an_answer_is_told_once_that_it_is_over() -> None:
    async def test() -> None:
        box = Box()
        async with bridged(box.toolset) as bridge:
            channel = bridge.channel
            told: list[Any] = []

            def ask() -> None:
                try:
                    told.append(channel.call("box.wait", {}))
                except BridgeClosed as error:
                    told.append(error)

            threads = [threading.Thread(target=ask, daemon=True) for _ in range(70)]
            for thread in threads:
                thread.start()
            await box.began.wait()
            await bridge.script(lambda channel: channel.done(0, None, 1))
            await bridge.listener.done
            await end(bridge)
            cancelled = box.cancelled
            # Some calls never left the worker: they go out with the next job.
            await in_thread(lambda: [thread.join(1) for thread in threads[:1]])
            await go_on(bridge, 2)
            await bridge.script(note("alive"))
            await end(bridge)
            await in_thread(lambda: [thread.join(20) for thread in threads])
            assert len(told) == 70
            assert {type(one) for one in told} == {BridgeClosed}
            assert cancelled > 0
            assert not bridge.listener.ended.is_set()

    run(test)


def test_results_that_nobody_reads_are_dropped_at_the_end() -> None:
    async def test() -> None:
        box = Toolset("box")

        @box.tool(effect="read")
        def large() -> str:
            """Give 4 MiB."""
            return "x" * (4 << 20)

        async with bridged(box) as bridge:
            channel, inbox = bridge.channel, Inbox()

            def ask() -> None:
                for _ in range(6):
                    channel.post("box.large", {}, inbox)
                channel.flush()

            await bridge.script(lambda _: ask())
            writer = bridge.listener._writer
            while writer.unwritten < 6 * (4 << 20):
                await asyncio.sleep(0.01)
            await end(bridge)
            # One is being written; the others are not held until somebody reads.
            assert writer.unwritten < 5 << 20
            bridge.listener.serve(bridge.execution, "", gate=False, number=2)
            last = channel._job
            await bridge.script(lambda channel: channel.wait_for_job(last=last))
            answers = await bridge.script(lambda channel: [channel.wait(inbox) for _ in range(6)])
            assert sorted(len(one.value) for one in answers)[:5] == [0] * 5
            assert len({one.id for one in answers}) == 6

    run(test)


def test_an_interrupted_worker_reports_and_waits_all_the_same() -> None:
    """`done` and `wait_for_job` may be called again, wherever they were interrupted."""

    class Interrupt(Exception):
        pass

    async def test() -> None:
        async with bridged(Box().toolset) as bridge:
            for number in range(1, 30):
                await bridge.script(lambda channel, n=number: _interrupted(channel, n, Interrupt))
                assert (await bridge.listener.done).number == number
                await end(bridge)
                last = bridge.channel._job
                bridge.execution = Execution(
                    bridge.execution.session, wall=60, tool_loop=asyncio.get_running_loop()
                )
                bridge.listener.serve(bridge.execution, "", gate=False, number=number + 1)
                job = await bridge.script(
                    lambda channel, last=last, n=number: _taken(channel, last, n, Interrupt)
                )
                assert job.number == number + 1

    run(test)


def _interrupted(channel: Channel, number: int, error: type[Exception]) -> None:
    _again(lambda: channel.done(0, None, number), 2 * number, error)


def _taken(channel: Channel, last: Any, number: int, error: type[Exception]) -> Any:
    return _again(lambda: channel.wait_for_job(last=last), 2 * number, error)


def _again(step: Callable[[], Any], line: int, error: type[Exception]) -> Any:
    """Take a step; its `line`-th line of the channel's own code raises, the first time."""
    import sys

    left = line

    def trace(frame, event, _):
        nonlocal left
        if not frame.f_code.co_filename.endswith("/channel.py"):
            return None
        if event == "line":
            left -= 1
            # Sending and reading are of one piece: what is cut there ends the stream.
            if left <= 0 and frame.f_code.co_name in ("done", "wait_for_job", "_adopt"):
                sys.settrace(None)
                raise error
        return trace

    sys.settrace(trace)
    try:
        return step()
    except error:
        return step()
    finally:
        sys.settrace(None)
