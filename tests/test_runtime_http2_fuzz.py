"""Mutated server streams: the channel ends or answers, raises its own errors only, keeps little."""

import contextlib
import os
import random
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from kit.raw_server import (
    RESPONSE,
    TRAILERS,
    Outcome,
    answer,
    data,
    frame,
    goaway,
    greeting,
    headers,
    prefixed,
    settings,
    trailers,
    window,
)

from limbeck.runtime.channel import Channel
from limbeck.runtime.errors import ToolError
from limbeck.runtime.http2 import CONTINUATION, END_HEADERS, FRAME, PING
from limbeck.runtime.wire import MAX_ANSWER
from limbeck.runtime.wire_pb2 import FromHost, ToolResult

ORDINARY = 2_000
"""Inputs of the ordinary run; the soak goes on for SOAK seconds."""

SOAK = 60.0

CALLS = 4

ERROR = b'{"code": "tool_failed", "tool": "a.b", "message": "no", "details": {"error": "x"}}'

GREETING = [settings(x4=65_535), headers(RESPONSE), greeting(x4=1 << 20)]

PIECES = [
    *GREETING,
    data(prefixed(answer(1, b'{"n": [1, 2.5, "x"]}'))),
    data(prefixed(answer(2, b"3")) + prefixed(answer(3, b"null")), size=4),
    data(prefixed(FromHost(results=[ToolResult(id=3, error=ERROR)]))),
    data(prefixed(FromHost(results=[ToolResult(id=4, stream=True, rows=[b"1", b'"2"'])]))),
    data(prefixed(FromHost(results=[ToolResult(id=4, stream=True, last=True)]))),
    data(prefixed(FromHost(ping=True))),
    frame(PING, body=b"12345678"),
    window(1000) + window(70_000, stream=1),
    settings(x4=10, x5=20_000),
    headers(RESPONSE[:3], 0) + frame(CONTINUATION, END_HEADERS, 1, RESPONSE[3:]),
    goaway(1),
    trailers(),
    headers(TRAILERS),
]

FOUND = [
    # The size of a frame at its limit, and no more of it.
    greeting() + (FRAME << 8).to_bytes(4, "big") + b"\0\0\0\0\x01",
    # A job that allows no call at all.
    greeting().replace(b"\x28\x40", b"\x28\x00"),
    # The end in the midst of a message.
    greeting() + data(prefixed(answer(1, b"1")))[:-1] + trailers(),
]
"""Inputs that tell a fault from its mend."""


def _mutated(rng: random.Random) -> bytes:
    """A stream that a good server could send, and a few changes."""
    pieces = [rng.choice(PIECES) for _ in range(rng.randrange(1, 8))]
    stream = bytearray((greeting() if rng.random() < 0.9 else b"") + b"".join(pieces))
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        _change(stream, rng)
    return bytes(stream)


def _change(stream: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(stream) + 1)
    kind = rng.randrange(6)
    if kind == 0 and at < len(stream):
        stream[at] ^= 1 << rng.randrange(8)
    elif kind == 1 and at < len(stream):
        stream[at] = rng.choice((0, 1, 127, 128, 255))
    elif kind == 2:
        stream[at:at] = rng.randbytes(rng.randrange(1, 12))
    elif kind == 3:
        del stream[at : at + rng.randrange(1, 12)]
    elif kind == 4:
        stream[at:at] = rng.choice(PIECES)
    else:
        del stream[at:]


class Target:
    """A socket that feeds each channel one stream of bytes."""

    def __init__(self) -> None:
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._address = f"\0limbeck-fuzz-{os.getpid()}-{id(self)}"
        self._listening.bind(self._address)
        self._listening.listen()

    def close(self) -> None:
        self._listening.close()

    def feed(self, stream: bytes, cut: int) -> None:
        """One worker's life; whatever is not a ToolError fails, and so does what hangs."""
        channel = Channel(f"unix:{self._address}", "gate")
        connected, _ = self._listening.accept()
        with connected:
            connected.sendall(stream[:cut])
            outcome = Outcome(lambda: _life(channel))
            if stream.startswith(greeting()) and cut == len(greeting()):
                _wait_for_calls(channel, outcome)
            with contextlib.suppress(OSError):  # it gave up on us
                connected.sendall(stream[cut:])
                connected.shutdown(socket.SHUT_WR)
            outcome.get()
        _check_memory(channel)
        channel.close()


def _life(channel: Channel) -> None:
    """What a script does: a few calls at a time, and rows."""
    with contextlib.suppress(ToolError):
        channel.wait_for_job()
        calls = [Outcome(lambda: channel.call("a.b", {"n": 1})) for _ in range(CALLS - 1)]
        calls.append(Outcome(lambda: list(channel.stream("a.rows", {}))))
        for outcome in calls:
            with contextlib.suppress(ToolError):
                outcome.get()
        channel.done(0, None)


def _wait_for_calls(channel: Channel, life: Outcome) -> None:
    while len(channel._waiting) < CALLS and life.is_running:
        time.sleep(0.0005)


def _check_memory(channel: Channel) -> None:
    stream = channel._stream
    assert len(stream._unread) <= FRAME + 9
    assert len(stream._message) <= MAX_ANSWER + 5
    assert len(stream._control) <= 1_000
    assert not channel._waiting


@pytest.fixture
def target() -> Iterator[Target]:
    one = Target()
    before = threading.active_count()
    yield one
    one.close()
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before, "a thread still waits"


@pytest.mark.parametrize("number", range(len(FOUND)))
def test_inputs_found(target: Target, number: int) -> None:
    target.feed(FOUND[number], len(FOUND[number]) // 2)


def test_mutated_streams(target: Target) -> None:
    for seed in range(ORDINARY):
        _feed(target, seed)


@pytest.mark.slow
def test_many_more_mutated_streams(target: Target) -> None:
    seed, deadline = random.randrange(1 << 32), time.monotonic() + SOAK
    while time.monotonic() < deadline:
        _feed(target, seed)
        seed += 1


def _feed(target: Target, seed: int) -> None:
    rng = random.Random(seed)
    stream = _mutated(rng)
    cut = len(greeting()) if rng.random() < 0.7 else rng.randrange(len(stream) + 1)
    try:
        target.feed(stream, cut)
    except BaseException as error:
        error.add_note(f"seed {seed}, the server sent {stream!r}")
        raise
