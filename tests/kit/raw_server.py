"""A server of frames as data: a plain socket, for what no gRPC server would do.

`Peer` is the server's end of one Channel. Tests say which bytes it sends; what the client sends is
read as frames and as messages.
"""

import contextlib
import itertools
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from limbeck.runtime.channel import Channel
from limbeck.runtime.http2 import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    SETTINGS,
    WINDOW_UPDATE,
)
from limbeck.runtime.wire_pb2 import FromHost, FromSandbox, Job, ToolResult

SECONDS = 10
"""Whoever still waits then hangs."""

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
RESPONSE = b"\x88" + b"\0\x0ccontent-type\x10application/grpc"
TRAILERS = b"\0\x0bgrpc-status\x010"

_numbers = itertools.count()


def frame(kind: int, flags: int = 0, stream: int = 0, body: bytes = b"") -> bytes:
    return struct.pack(">IBI", len(body) << 8 | kind, flags, stream) + body


def settings(**values: int) -> bytes:
    """SETTINGS; the keys are x1, x2, ... by their number."""
    pairs = [struct.pack(">HI", int(key[1:]), value) for key, value in values.items()]
    return frame(SETTINGS, body=b"".join(pairs))


def window(more: int, stream: int = 0) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", more))


def headers(block: bytes = RESPONSE, flags: int = END_HEADERS, stream: int = 1) -> bytes:
    return frame(HEADERS, flags, stream, block)


def trailers() -> bytes:
    return headers(TRAILERS, END_HEADERS | END_STREAM)


def goaway(last: int, code: int = 0, text: bytes = b"") -> bytes:
    return frame(GOAWAY, body=struct.pack(">II", last, code) + text)


def prefixed(message: FromHost | bytes, flag: int = 0) -> bytes:
    """A gRPC message with its prefix."""
    data = message if isinstance(message, bytes) else message.SerializeToString()
    return struct.pack(">BI", flag, len(data)) + data


def data(payload: bytes, size: int = 16_384) -> bytes:
    """DATA frames of at most so many bytes."""
    parts = [payload[at : at + size] for at in range(0, len(payload), size)]
    return b"".join(frame(DATA, 0, 1, part) for part in parts)


def job(inflight: int = 64, arguments: int = 1 << 20) -> FromHost:
    return FromHost(job=Job(token=b"t" * 32, max_inflight=inflight, max_arguments=arguments))


def answer(number: int, value: bytes) -> FromHost:
    return FromHost(results=[ToolResult(id=number, value=value)])


def greeting(**values: int) -> bytes:
    """All that a server says until the job is there."""
    return settings(**values) + headers() + data(prefixed(job()))


class Outcome:
    """What a thread of the script's came to."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self._function = function
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.value = self._function()
        except BaseException as error:
            self.error = error

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def get(self) -> Any:
        """Its value, or its error; a thread that hangs fails the test."""
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "it hangs"
        if self.error is not None:
            raise self.error
        return self.value


class Peer:
    """The server's end of one channel."""

    def __init__(self, connected: socket.socket, channel: Channel) -> None:
        self.socket = connected
        self.channel = channel
        self._bytes = bytearray()
        self._messages = bytearray()
        self._greeted = False
        self.data_bytes = 0
        """Of all DATA frames read."""

    def send(self, *frames: bytes) -> None:
        self.socket.sendall(b"".join(frames))

    def greet(self, **values: int) -> None:
        """Say what a server says, and wait until the worker has its job."""
        waiting = Outcome(self.channel.wait_for_job)
        self.send(greeting(**values))
        waiting.get()

    def frames(self, seconds: float = SECONDS) -> Iterator[tuple[int, int, int, bytes]]:
        """What the client sends: kind, flags, stream, body; ends when nothing comes in time."""
        while True:
            if not self._greeted and len(self._bytes) >= len(PREFACE):
                assert self._bytes.startswith(PREFACE)
                del self._bytes[: len(PREFACE)]
                self._greeted = True
            while self._greeted and len(self._bytes) >= 9:
                start, flags, stream = struct.unpack_from(">IBI", self._bytes)
                size = start >> 8
                if len(self._bytes) < 9 + size:
                    break
                body = bytes(self._bytes[9 : 9 + size])
                del self._bytes[: 9 + size]
                if start & 0xFF == DATA:
                    self.data_bytes += size
                yield start & 0xFF, flags, stream, body
            try:
                if not self._is_readable(seconds):
                    return
                more = self.socket.recv(1 << 16)
            except (OSError, ValueError):
                return  # It is closed.
            if not more:
                return
            self._bytes += more

    def _is_readable(self, seconds: float) -> bool:
        """In short waits: one that has begun does not see that the socket is closed."""
        end = time.monotonic() + seconds
        while True:
            left = max(end - time.monotonic(), 0.0)
            if select.select([self.socket], [], [], min(left, 0.1))[0]:
                return True
            if left <= 0.1:
                return False

    def messages(self, seconds: float = SECONDS) -> Iterator[FromSandbox]:
        """The messages that the client sends."""
        for kind, _, _, body in self.frames(seconds):
            if kind != DATA:
                continue
            self._messages += body
            while len(self._messages) >= 5:
                size = int.from_bytes(self._messages[1:5], "big")
                if len(self._messages) < 5 + size:
                    break
                message = FromSandbox.FromString(bytes(self._messages[5 : 5 + size]))
                del self._messages[: 5 + size]
                yield message

    def wait_for(self, kind: int, flags: int = 0) -> bytes:
        """The body of the next frame of a kind that has these flags."""
        for found, has, _, body in self.frames():
            if found == kind and has & flags == flags:
                return body
        raise AssertionError(f"no frame {kind} came")

    def wait_for_call(self) -> Any:
        """The next call."""
        return next(one for one in self.messages() if one.calls).calls[0]

    def wait_for_pong(self, word: bytes) -> None:
        """Until the client has heard everything up to here."""
        self.send(frame(PING, body=word))
        while self.wait_for(PING, ACK) != word:
            pass

    def call(self, tool: str = "box.echo", **arguments: Any) -> Outcome:
        """Start a call in a thread."""
        return Outcome(lambda: self.channel.call(tool, arguments))


@contextlib.contextmanager
def peer(greet: bool = True, **values: int) -> Iterator[Peer]:
    """A channel and its server's end."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        address = f"\0limbeck-test-{os.getpid()}-{next(_numbers)}"
        listening.bind(address)
        listening.listen()
        channel = Channel(f"unix:{address}", "gate")
        connected, _ = listening.accept()
    with connected:
        try:
            one = Peer(connected, channel)
            if greet:
                one.greet(**values)
            yield one
        finally:
            channel.close()  # First: it wakes whoever reads at the server's end.


def echo(peer: Peer, count: int | None = None, *, wait: float = 0.0) -> None:
    """Answer each call with its arguments, until the client goes (or so many calls)."""
    served = 0
    with contextlib.suppress(OSError):
        for message in peer.messages(3600):
            time.sleep(wait)
            results = [ToolResult(id=one.id, value=one.arguments) for one in message.calls]
            if results:
                peer.send(data(prefixed(FromHost(results=results))))
            served += len(results)
            if served == count:
                return
