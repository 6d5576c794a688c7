"""One gRPC call, a bidirectional stream of messages, over HTTP/2 on a connected socket.

The client's side, of the standard library alone, for a stock gRPC server at the other end. The
stream is the only one of its connection. Header blocks from the server are passed over unread: a
tool's failure is a message here, and a gRPC status only means that the stream is over.

No locks: one thread at a time may `pump`, which reads and delivers, and one at a time may
`send_some`; they share only counters that one of them writes and the other reads. Both may be
interrupted at any place. Where that loses nothing the next one goes on; where a message may have
been cut the stream is broken for good. RFC 9113, and gRPC's "HTTP/2 transport mapping".
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
from collections import deque
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

MAX_UNWRITTEN = 1_000
"""Answers to pings and settings that may wait for a server that does not read."""

PATIENCE = 2.0
"""Seconds after which who reads looks whether there is something to write after all."""

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_RECEIVE = (256 * 1024,)
_WRITE = 256 * 1024
_HEAD = struct.Struct(">IBI")


class StreamEnded(Exception):
    """The stream is over: ended by the server, broken, or closed by us."""


class GrpcStream:
    """The stream. `deliver` is called with each whole message, `opened` when one may send on."""

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
        self.ended = False
        # Of whoever pumps. What may be sent is counted from the beginning, never down.
        self._granted = self._stream_granted = DEFAULT_WINDOW
        self._initial = DEFAULT_WINDOW
        self._frame_room = DEFAULT_FRAME
        self._arrived: deque[bytes] = deque()
        self._unread = bytearray()
        self._message = bytearray()
        self._spent = 0
        self._heard_settings = self._heard_headers = False
        self._header_bytes: int | None = None
        self._last_headers = False
        self.hearing = False
        """Between two whole frames: whoever is interrupted here leaves it set."""
        # Of whoever sends.
        self._used = 0
        self._unsent = memoryview(b"")
        self._sending = False
        # From the one who pumps to the one who sends.
        self._control: deque[bytes] = deque()
        settings = struct.pack(
            ">HIHIHIHI",
            HEADER_TABLE_SIZE, 0, ENABLE_PUSH, 0,
            INITIAL_WINDOW_SIZE, WINDOW, MAX_FRAME_SIZE, FRAME,
        )  # fmt: skip
        # Nobody waits in the kernel for ever: what was missed meanwhile is made up for.
        for option, seconds in ((socket.SO_RCVTIMEO, PATIENCE), (socket.SO_SNDTIMEO, 0.1)):
            connected.setsockopt(
                socket.SOL_SOCKET, option, struct.pack("ll", *divmod(int(seconds * 1e6), 10**6))
            )
        self._write(
            _PREFACE
            + _frame(SETTINGS, 0, 0, settings)
            + _frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW - DEFAULT_WINDOW))
            + _frame(HEADERS, END_HEADERS, STREAM, _request(path))
        )

    # Whoever sends.

    @property
    def room(self) -> int:
        """Bytes of messages that the server takes now; below zero when it took room back."""
        return min(self._granted, self._stream_granted) - self._used

    @property
    def is_owing(self) -> bool:
        """Whether something is to be written that is no message."""
        return bool(self._control or self._unsent)

    @property
    def is_stuck(self) -> bool:
        """Whether the kernel took only a part of the last write: the server does not read."""
        return bool(self._unsent)

    def send_some(self, data: memoryview) -> int:
        """Send what the windows allow of a message's rest: how many bytes. Raises StreamEnded."""
        if self._unsent:
            self._write(self._unsent)
            if self._unsent:
                return 0
        frames: list[bytes | memoryview] = []
        sent = 0
        while self._control:
            frames.append(self._control.popleft())
        most = min(len(data), self.room, _WRITE)
        while sent < most:
            body = data[sent : min(sent + self._frame_room, most)]
            frames += (_HEAD.pack(len(body) << 8 | DATA, 0, STREAM), body)
            sent += len(body)
        if frames:
            self._used += sent
            self._write(b"".join(frames))
        return sent

    def _write(self, data: bytes | memoryview) -> None:
        if self._sending or self.ended:
            self._end()  # Nobody knows how much of the last write has gone.
        self._sending = True
        # A server that reads is waited for a little; one that did not is only asked again.
        flags = socket.MSG_DONTWAIT if self._unsent else 0
        try:
            sent = self._socket.send(data, flags)
            while sent < len(data):
                data = memoryview(data)[sent:]
                sent = self._socket.send(data, flags)
            self._unsent = memoryview(b"")
        except BlockingIOError:
            self._unsent = memoryview(data)
        except OSError:
            self._end()
        self._sending = False

    # Whoever reads.

    def pump(self) -> None:
        """Wait for bytes, and deliver what is whole. Raises StreamEnded."""
        if self.ended or self.hearing:
            self._end()
        if not self._arrived:
            try:
                # In one step: an interrupt behind recv() must not lose what it returned.
                self._arrived.extend(map(self._socket.recv, _RECEIVE))
            except BlockingIOError:
                return
            except OSError:
                self._end()
        self.hearing = True
        if self._arrived:  # No handler's call has heard it meanwhile.
            data = self._arrived.popleft()
            if not data:
                self._end()
            self._hear_all(data)
        self.hearing = False

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    def is_readable(self, seconds: float) -> bool:
        """Whether there is something to `pump` within so many seconds."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def wait_to_write(self) -> bool:
        """Wait a little until one may write on, or read: whether one may read."""
        try:
            return bool(select.select([self._socket], [self._socket], [], PATIENCE)[0])
        except (OSError, ValueError):
            return True  # It is closed: who reads will notice.

    def close(self) -> None:
        """End the stream; whoever pumps is told."""
        self.ended = True
        with contextlib.suppress(OSError):  # it is closed already
            self._socket.shutdown(socket.SHUT_RDWR)

    def abandon(self) -> None:
        """Drop it without a word to the server: in a forked child, whose parent goes on."""
        self.ended = True
        self._socket.close()

    def _end(self) -> None:
        self.ended = True
        raise StreamEnded

    def _hear_all(self, data: bytes | bytearray) -> None:
        if self._unread:
            self._unread += data
            data = self._unread
        position, end = 0, len(data)
        while end - position >= 9:
            start, flags, stream = _HEAD.unpack_from(data, position)
            size = start >> 8
            if size > FRAME:
                self._end()
            if end - position < 9 + size:
                break
            body = data[position + 9 : position + 9 + size]
            position += 9 + size
            self._hear(start & 0xFF, flags, stream & MAX_WINDOW, body)
        if data is self._unread:
            del self._unread[:position]
        else:
            self._unread[:] = data[position:]

    def _hear(self, kind: int, flags: int, stream: int, body: bytes | bytearray) -> None:
        if self._header_bytes is not None and kind != CONTINUATION:
            self._end()
        if kind == DATA:
            self._hear_data(flags, stream, body)
        elif not self._heard_settings and kind != SETTINGS:
            self._end()
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
                self._answer(_frame(PING, ACK, 0, body))
        elif kind == GOAWAY:
            # A server that still serves our stream lets it end by itself.
            if stream or len(body) < 8 or _number(body) < STREAM or _number(body[4:8]):
                self._end()
        elif kind in (RST_STREAM, PUSH_PROMISE):
            self._end()

    def _hear_data(self, flags: int, stream: int, body: bytes | bytearray) -> None:
        if stream != STREAM or not self._heard_headers:
            self._end()
        self._spend(len(body))
        if flags & PADDED:
            if not body or body[0] >= len(body):
                self._end()
            body = body[1 : len(body) - body[0]]
        self._take_messages(body)
        if flags & END_STREAM:
            self._end()

    def _take_messages(self, data: bytes | bytearray) -> None:
        """Deliver what is whole: a byte of flags, four of size, the message."""
        if self._message:
            self._message += data
            data = self._message
        position, end = 0, len(data)
        while end - position >= 5:
            size = int.from_bytes(data[position + 1 : position + 5], "big")
            if data[position] or size > self._max_message:
                self._end()  # Compressed, which we never offered, or larger than agreed.
            if end - position < 5 + size:
                break
            message = bytes(data[position + 5 : position + 5 + size])
            position += 5 + size
            self._deliver(message)
        if data is self._message:
            del self._message[:position]
        else:
            self._message[:] = data[position:]

    def _hear_headers(self, kind: int, flags: int, stream: int, body: bytes | bytearray) -> None:
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
            self._heard_headers = True
            if self._last_headers:
                self._end()

    def _hear_settings(self, flags: int, stream: int, body: bytes | bytearray) -> None:
        if stream or len(body) % 6 or (flags & ACK and body):
            self._end()
        if flags & ACK:
            return
        self._heard_settings = True
        for key, value in struct.iter_unpack(">HI", body):
            if key == INITIAL_WINDOW_SIZE:
                if value > MAX_WINDOW:
                    self._end()
                self._stream_granted += value - self._initial
                self._initial = value
                self._check_windows()
            elif key == MAX_FRAME_SIZE:
                if not DEFAULT_FRAME <= value < 1 << 24:
                    self._end()
                self._frame_room = value
        self._answer(_frame(SETTINGS, ACK, 0, b""))

    def _hear_window(self, stream: int, body: bytes | bytearray) -> None:
        if len(body) != 4 or stream not in (0, STREAM) or not _number(body):
            self._end()
        if stream:
            self._stream_granted += _number(body)
        else:
            self._granted += _number(body)
        self._check_windows()
        self._opened()

    def _check_windows(self) -> None:
        if max(self._granted, self._stream_granted) - self._used > MAX_WINDOW:
            self._end()

    def _spend(self, size: int) -> None:
        """Count what was read, and let the server send on when half the window is used."""
        self._spent += size
        if self._spent >= WINDOW // 2:
            update = struct.pack(">I", self._spent)
            self._spent = 0
            self._answer(_frame(WINDOW_UPDATE, 0, 0, update) + _frame(WINDOW_UPDATE, 0, 1, update))

    def _answer(self, frame: bytes) -> None:
        if len(self._control) >= MAX_UNWRITTEN:
            self._end()
        self._control.append(frame)
        self._opened()


def _frame(kind: int, flags: int, stream: int, body: bytes | bytearray) -> bytes:
    return _HEAD.pack(len(body) << 8 | kind, flags, stream) + body


def _number(body: bytes | bytearray) -> int:
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
