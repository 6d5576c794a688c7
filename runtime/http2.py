"""One gRPC call, a bidirectional stream of messages, over HTTP/2 on a connected socket.

The client's side, of the standard library alone, for a stock gRPC server at the other end. The
stream is the only one of its connection. Header blocks from the server are passed over unread: a
tool's failure is a message here, and a gRPC status only means that the stream is over.

Any thread may `send`; one at a time may `pump`, which reads and delivers. RFC 9113, and gRPC's
"HTTP/2 transport mapping".
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Callable

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 5, 6, 7, 8, 9

END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY_FLAG = 1, 1, 4, 8, 32

HEADER_TABLE_SIZE, ENABLE_PUSH, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = 1, 2, 4, 5

STREAM = 1
DEFAULT_WINDOW = 65_535
MAX_WINDOW = 2**31 - 1
DEFAULT_FRAME = 16_384

WINDOW = 4 * 1024 * 1024
"""Bytes that the server may send ahead."""

FRAME = 1024 * 1024
"""Bytes of the largest frame that we take."""

MAX_HEADERS = 64 * 1024
"""Bytes of one header block."""

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_RECEIVE = 256 * 1024


class StreamEnded(Exception):
    """The stream is over: ended by the server, broken, or closed by us."""


class GrpcStream:
    """The stream. `deliver` is called with each whole message, `opened` when windows grow."""

    def __init__(
        self,
        connected: socket.socket,
        path: str,
        *,
        deliver: Callable[[bytes], None],
        opened: Callable[[], None],
        max_message: int,
    ) -> None:
        self._socket = connected
        self._deliver = deliver
        self._opened = opened
        self._max_message = max_message
        self._lock = threading.Lock()
        """For what is written, and for the windows."""
        self._room = self._stream_room = DEFAULT_WINDOW
        self._initial_room = DEFAULT_WINDOW
        self._frame_room = DEFAULT_FRAME
        self._unread = bytearray()
        self._message = bytearray()
        self._spent = 0
        self._header_bytes: int | None = None
        self._last_headers = False
        self.ended = False
        settings = struct.pack(
            ">HIHIHIHI",
            HEADER_TABLE_SIZE, 0, ENABLE_PUSH, 0,
            INITIAL_WINDOW_SIZE, WINDOW, MAX_FRAME_SIZE, FRAME,
        )  # fmt: skip
        self._write(
            _PREFACE
            + _frame(SETTINGS, 0, 0, settings)
            + _frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW - DEFAULT_WINDOW))
            + _frame(HEADERS, END_HEADERS, STREAM, _request(path))
        )

    def send_some(self, data: memoryview) -> int:
        """Send what the windows allow of a message's rest: how many bytes. Raises StreamEnded."""
        with self._lock:
            size = min(len(data), self._room, self._stream_room, self._frame_room)
            if size <= 0:
                if self.ended:
                    raise StreamEnded
                return 0
            self._room -= size
            self._stream_room -= size
            self._write_locked(_frame(DATA, 0, STREAM, data[:size]))
            return size

    def pump(self) -> None:
        """Wait for bytes, and deliver what is whole. Raises StreamEnded."""
        if self.ended:
            raise StreamEnded
        try:
            data = self._socket.recv(_RECEIVE)
        except OSError:
            data = b""
        if not data:
            self._end()
        self._unread += data
        position = 0
        while len(self._unread) - position >= 9:
            size = int.from_bytes(self._unread[position : position + 3], "big")
            if size > FRAME:
                self._end()
            if len(self._unread) - position < 9 + size:
                break
            kind, flags = self._unread[position + 3], self._unread[position + 4]
            stream = int.from_bytes(self._unread[position + 5 : position + 9], "big") & MAX_WINDOW
            body = bytes(self._unread[position + 9 : position + 9 + size])
            position += 9 + size
            self._hear(kind, flags, stream, body)
        del self._unread[:position]

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    def is_readable(self, seconds: float) -> bool:
        """Whether there is something to `pump` within so many seconds."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def close(self) -> None:
        """End the stream; whoever pumps is told."""
        self.ended = True
        with contextlib.suppress(OSError):  # it is closed already
            self._socket.shutdown(socket.SHUT_RDWR)

    def abandon(self) -> None:
        """Drop it without a word to the server: in a forked child, whose parent goes on."""
        self.ended = True
        self._lock = threading.Lock()
        self._socket.close()

    def _end(self) -> None:
        self.ended = True
        raise StreamEnded

    def _hear(self, kind: int, flags: int, stream: int, body: bytes) -> None:
        if self._header_bytes is not None and kind != CONTINUATION:
            self._end()
        if kind == DATA:
            self._hear_data(flags, stream, body)
        elif kind in (HEADERS, CONTINUATION):
            self._hear_headers(kind, flags, stream, body)
        elif kind == WINDOW_UPDATE:
            self._hear_window(stream, body)
        elif kind == SETTINGS:
            self._hear_settings(flags, stream, body)
        elif kind == PING:
            if len(body) != 8 or stream:
                self._end()
            if not flags & ACK:
                self._write(_frame(PING, ACK, 0, body))
        elif kind == RST_STREAM:
            if stream == STREAM or not stream or len(body) != 4:
                self._end()
        elif kind == GOAWAY:
            # A server that still serves our stream lets it end by itself.
            if stream or len(body) < 8 or _number(body) < STREAM or _number(body[4:8]):
                self._end()
        elif kind == PUSH_PROMISE:
            self._end()

    def _hear_data(self, flags: int, stream: int, body: bytes) -> None:
        if stream != STREAM:
            self._end()
        self._spend(len(body))
        if flags & PADDED:
            if not body or body[0] >= len(body):
                self._end()
            body = body[1 : len(body) - body[0]]
        self._message += body
        self._take_messages()
        if flags & END_STREAM:
            self._end()

    def _take_messages(self) -> None:
        """Deliver what is whole: a byte of flags, four of size, the message."""
        position, data = 0, self._message
        while len(data) - position >= 5:
            size = int.from_bytes(data[position + 1 : position + 5], "big")
            if data[position] or size > self._max_message:
                self._end()  # Compressed, which we never offered, or larger than agreed.
            if len(data) - position < 5 + size:
                break
            message = bytes(data[position + 5 : position + 5 + size])
            position += 5 + size
            self._deliver(message)
        del data[:position]

    def _hear_headers(self, kind: int, flags: int, stream: int, body: bytes) -> None:
        if stream != STREAM:
            self._end()
        if kind == HEADERS:
            self._header_bytes = 0
            self._last_headers = bool(flags & END_STREAM)
        elif self._header_bytes is None:
            self._end()
        self._header_bytes = (self._header_bytes or 0) + len(body)
        if self._header_bytes > MAX_HEADERS:
            self._end()
        if flags & END_HEADERS:
            self._header_bytes = None
            if self._last_headers:
                self._end()

    def _hear_settings(self, flags: int, stream: int, body: bytes) -> None:
        if stream or len(body) % 6 or (flags & ACK and body):
            self._end()
        if flags & ACK:
            return
        with self._lock:
            for position in range(0, len(body), 6):
                key, value = struct.unpack_from(">HI", body, position)
                if key == INITIAL_WINDOW_SIZE:
                    if value > MAX_WINDOW:
                        self._end()
                    self._stream_room += value - self._initial_room
                    self._initial_room = value
                elif key == MAX_FRAME_SIZE:
                    if not DEFAULT_FRAME <= value < 1 << 24:
                        self._end()
                    self._frame_room = value
            self._write_locked(_frame(SETTINGS, ACK, 0, b""))
        self._opened()

    def _hear_window(self, stream: int, body: bytes) -> None:
        if len(body) != 4:
            self._end()
        more = _number(body)
        with self._lock:
            if stream == 0:
                self._room += more
            elif stream == STREAM:
                self._stream_room += more
            if not more or max(self._room, self._stream_room) > MAX_WINDOW:
                self._end()
        self._opened()

    def _spend(self, size: int) -> None:
        """Count what was read, and let the server send on when half the window is used."""
        self._spent += size
        if self._spent > WINDOW:
            self._end()
        if self._spent >= WINDOW // 2:
            update = struct.pack(">I", self._spent)
            self._spent = 0
            self._write(_frame(WINDOW_UPDATE, 0, 0, update) + _frame(WINDOW_UPDATE, 0, 1, update))

    def _write(self, data: bytes) -> None:
        with self._lock:
            self._write_locked(data)

    def _write_locked(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError:
            self.ended = True
            raise StreamEnded from None


def _frame(kind: int, flags: int, stream: int, body: bytes | memoryview) -> bytes:
    return b"".join((struct.pack(">IBI", len(body) << 8 | kind, flags, stream), body))


def _number(body: bytes) -> int:
    return int.from_bytes(body[:4], "big") & MAX_WINDOW


def _request(path: str) -> bytes:
    """The request's header block: literals that nobody indexes (RFC 7541)."""
    block = b"\x83\x86"  # :method POST, :scheme http
    for name, value in (
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("user-agent", "limbeck"),
    ):
        block += b"\0" + _string(name) + _string(value)
    return block


def _string(text: str) -> bytes:
    data = text.encode("ascii")
    if len(data) > 126:
        raise ValueError(f"{text[:40]!r} is too long for a header of ours")
    return bytes([len(data)]) + data
