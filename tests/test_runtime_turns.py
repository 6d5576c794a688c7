"""Who waits, who reads: interrupts and calls within calls, at every place where Python has them.

The interpreter runs signal handlers and raises what other threads send at the start of a function
and behind a call: there a profiler stands too. So each test does one call again and again, and
breaks into it one place later each time.
"""

import contextlib
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kit.raw_server import Outcome, Peer, answer, data, echo, peer, prefixed, window

import limbeck.runtime
from limbeck.runtime import http2, turns
from limbeck.runtime.errors import BridgeClosed, ToolError
from limbeck.runtime.turns import Inbox, Room, Turns
from limbeck.runtime.wire_pb2 import FromHost, ToolResult

RUNTIME = os.path.dirname(limbeck.runtime.__file__)


@pytest.fixture(autouse=True)
def impatient(monkeypatch) -> Iterator[None]:
    """What is only mended after a while is mended soon; no thread is left behind."""
    monkeypatch.setattr(turns, "PATIENCE", 0.03)
    monkeypatch.setattr(http2, "PATIENCE", 0.03)
    before, end = threading.active_count(), time.monotonic() + 10
    yield
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() <= before, "a thread still waits"


class Breaker:
    """Does something at the n-th place of a thread's own code in the runtime."""

    def __init__(self, place: int, action: Callable[[], Any]) -> None:
        self.left = place
        self._action = action
        self.where = ""

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event not in ("call", "c_return") or not code.co_filename.startswith(RUNTIME):
            return
        if code.co_name == "__del__":
            return  # The collector's, of another test's channel.
        self.left -= 1
        if self.left == 0:
            sys.setprofile(None)
            self.where = f"{code.co_qualname}:{frame.f_lineno} {event} {argument}"
            self._action()

    def around(self, function: Callable[[], Any]) -> Any:
        sys.setprofile(self)
        try:
            return function()
        finally:
            sys.setprofile(None)


class Scene:
    """A call (a) that is broken into, and another thread's (b) that must not suffer."""

    def __init__(self, one: Peer, *, b_reads: bool) -> None:
        self._one = one
        self._b_reads = b_reads
        self._b_id = 0
        self._b: Outcome | None = None
        self._lock = threading.Lock()
        threading.Thread(target=self._serve, daemon=True).start()

    def run(self, breaker: Breaker) -> tuple[Outcome, Outcome]:
        if self._b_reads:
            self._start_b()
            while not self._b_id:
                time.sleep(0.0005)
        a = Outcome(lambda: breaker.around(lambda: self._one.channel.call("box.a", {"n": "a"})))
        a._thread.join(10)
        assert not a.is_running, f"a hangs after {breaker.where}"
        self._start_b()
        assert self._b is not None
        while self._b.is_running and not self._b_id:
            time.sleep(0.0005)
        self._answer(self._b_id, b'{"n":"b"}')
        self._b._thread.join(10)
        assert not self._b.is_running, f"b hangs after {breaker.where}"
        return a, self._b

    def _start_b(self) -> None:
        with self._lock:
            if self._b is None:
                self._b = self._one.call("box.b", n="b")

    def _answer(self, number: int, value: bytes) -> None:
        with contextlib.suppress(OSError):  # the stream was given up
            self._one.send(data(prefixed(answer(number, value))))

    def _serve(self) -> None:
        held = 0
        for message in self._one.messages(3600):
            for call in message.calls:
                if call.tool == "box.b":
                    self._b_id = call.id
                    if held:
                        self._answer(held, b'{"n":"a"}')
                elif call.tool == "box.a":
                    held = call.id
                    if self._b_id and self._b_reads:
                        self._answer(self._b_id, b'{"n":"b"}')
                        self._answer(held, b'{"n":"a"}')
                    elif self._b_id:
                        self._answer(held, b'{"n":"a"}')
                    else:
                        self._start_b()
                else:
                    self._answer(call.id, b'{"n":"c"}')


def _value(outcome: Outcome, *errors: type[BaseException]) -> Any:
    try:
        return outcome.get()["n"]
    except errors as error:
        return type(error)


@pytest.mark.parametrize("b_reads", [False, True])
def test_an_interrupt_at_any_place_leaves_nobody_waiting(b_reads: bool) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    lost = 0
    for place in itertools.count(1):
        breaker = Breaker(place, interrupt)
        with peer() as one:
            a, b = Scene(one, b_reads=b_reads).run(breaker)
            got = _value(b, BridgeClosed)
            assert got in ("b", BridgeClosed), breaker.where
            assert _value(a, KeyboardInterrupt, BridgeClosed) in (
                "a", KeyboardInterrupt, BridgeClosed,
            )  # fmt: skip
            assert _value(one.call("box.c"), BridgeClosed) in ("c", BridgeClosed)
            lost += got is BridgeClosed
        if breaker.left > 0:
            break
    assert lost < place / 2, "most interrupts must not cost the stream"


@pytest.mark.parametrize("b_reads", [False, True])
def test_a_call_within_a_call_at_any_place(b_reads: bool) -> None:
    refused = 0
    for place in itertools.count(1):
        seen: list[Any] = []
        with peer() as one:

            def nested() -> None:
                try:
                    seen.append(one.channel.call("box.c", {})["n"])
                except ToolError as error:
                    seen.append("closed" if isinstance(error, BridgeClosed) else "refused")

            breaker = Breaker(place, nested)
            a, b = Scene(one, b_reads=b_reads).run(breaker)
            assert (a.get(), b.get()) == ({"n": "a"}, {"n": "b"}), breaker.where
            assert one.call("box.c").get() == {"n": "c"}
        if breaker.left > 0:
            break
        assert seen in (["c"], ["refused"]), breaker.where
        refused += seen == ["refused"]
    assert 0 < refused < place


@pytest.mark.parametrize("b_reads", [False, True])
def test_a_stream_that_is_dropped_at_any_place(b_reads: bool) -> None:
    """The collector may close a half-read stream inside anybody's call."""
    for place in itertools.count(1):
        with peer() as one:
            rows = one.channel.stream("box.rows", {})
            first = Outcome(lambda: next(rows))
            call = one.wait_for_call()
            part = ToolResult(id=call.id, stream=True, rows=[b"1"])
            one.send(data(prefixed(FromHost(results=[part]))))
            assert first.get() == 1
            breaker = Breaker(place, rows.close)
            a, b = Scene(one, b_reads=b_reads).run(breaker)
            assert (a.get(), b.get()) == ({"n": "a"}, {"n": "b"}), breaker.where
        if breaker.left > 0:
            break


def test_a_signal_handler_may_call_a_tool_while_its_thread_waits() -> None:
    got: list[Any] = []
    with peer() as one:

        def handler(*_: object) -> None:
            try:
                got.append(one.channel.call("box.echo", {"n": "handler"})["n"])
            except ToolError as error:
                got.append(type(error))  # It came in the midst of a message.

        threading.Thread(target=echo, args=(one,), kwargs={"wait": 0.01}, daemon=True).start()
        before = signal.signal(signal.SIGALRM, handler)
        try:
            for number in range(30):
                signal.setitimer(signal.ITIMER_REAL, 0.005)
                assert one.channel.call("box.echo", {"n": number}) == {"n": number}
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
    assert got.count("handler") > 15
    assert set(got) <= {"handler", ToolError}


def test_deep_recursion_does_not_break_the_stream() -> None:
    with peer() as one:
        one.send(window(1 << 30), window(1 << 30, stream=1))
        threading.Thread(target=echo, args=(one,), daemon=True).start()

        def deeper(level: int) -> int:
            try:
                assert one.channel.call("box.echo", {"n": level}) == {"n": level}
                return deeper(level + 1)
            except RecursionError:
                return level

        assert deeper(0) > 100
        assert one.channel.call("box.echo", {"n": 1}) == {"n": 1}


def test_a_forked_child_finds_the_stream_closed_and_its_parent_does_not() -> None:
    with peer() as one:
        one.send(window(1 << 30), window(1 << 30, stream=1))
        threading.Thread(target=echo, args=(one,), daemon=True).start()
        stop = threading.Event()

        def calling(number: int) -> None:
            while not stop.is_set():
                assert one.channel.call("box.echo", {"n": number}) == {"n": number}

        threads = [Outcome(lambda n=n: calling(n)) for n in range(6)]
        for _ in range(15):
            child = os.fork()
            if child == 0:
                try:
                    signal.alarm(10)
                    one.channel.call("box.echo", {})
                except BridgeClosed:
                    os._exit(7)
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        stop.set()
        for thread in threads:
            thread.get()


def test_no_more_than_so_many_are_in_a_room() -> None:
    room, inside, most = Room(3), [], []

    def visit(number: int) -> None:
        for _ in range(50):
            inbox = Inbox()
            with inbox.inside:
                room.enter(inbox)
                inside.append(number)
                most.append(len(inside))
                inside.pop()
                room.leave(inbox)

    for visitor in [Outcome(lambda n=n: visit(n)) for n in range(20)]:
        visitor.get()
    assert max(most) <= 3


def test_a_place_is_free_when_its_thread_is_gone_and_not_before() -> None:
    room, first, second = Room(1), Inbox(), Inbox()
    second.thread = 0  # Of another one: who is below on the same stack is let in.
    with first.inside:
        room.enter(first)
        other = Outcome(lambda: second.inside.acquire() and room.enter(second))
        other._thread.join(0.2)
        assert other.is_running
    other.get()  # Nobody said that the first had left.


def test_who_waits_is_told_that_nothing_will_come() -> None:
    inbox = Inbox()
    with inbox.inside:
        assert Turns(lambda: False).wait(inbox) is None
