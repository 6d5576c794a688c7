"""A client that speaks HTTP/2 frames on a unix socket: it keeps to no rule it is not told to.

Frames and header blocks come from hyperframe and hpack; windows, states and limits are nobody's
but the test's. Blocking: it runs in a thread, or in a process of its own.
"""

import socket
import struct
from collections import defaultdict
from pathlib import Path

import hpack
from hyperframe.frame import (
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from limbeck.runtime.wire import ATTACH
from limbeck.runtime.wire_pb2 import FromHost, FromSandbox, Hello, Job, ToolCall, ToolResult

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME = 16_384
SECONDS = 10.0
WIDE = 2**31 - 1


class Gone(Exception):
    """The host closed the connection."""


class RawClient:
    """One connection. Streams are numbers; what arrives is sorted by them."""

    def __init__(self, path: Path, *, preface: bool = True, window: int = WIDE) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(SECONDS)
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise
        self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
        self.token = b""
        self.data: dict[int, bytearray] = defaultdict(bytearray)
        self.headers: dict[int, dict[str, str]] = defaultdict(dict)
        self.resets: dict[int, int] = {}
        self.goaway: GoAwayFrame | None = None
        self._windows = defaultdict(lambda: 65_535)
        self._read = bytearray()
        self._ids = iter(range(1, 2**31))
        if preface:
            settings = {SettingsFrame.INITIAL_WINDOW_SIZE: window}
            self.send(PREFACE + SettingsFrame(0, settings=settings).serialize())
            if window:
                self.frame(WindowUpdateFrame(0, window_increment=WIDE - 65_535))

    def close(self) -> None:
        self.socket.close()

    # -- out ----------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Gone from error

    def frame(self, *frames: Frame) -> None:
        self.send(b"".join(frame.serialize() for frame in frames))

    def block(self, path: str = ATTACH, **extra: str) -> bytes:
        fields = {
            ":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost",
            "te": "trailers", "content-type": "application/grpc",
        }  # fmt: skip
        extra = {name.replace("_", "-"): value for name, value in extra.items()}
        return self.encoder.encode([*fields.items(), *extra.items()])

    def open(self, stream: int = 1, path: str = ATTACH, **extra: str) -> None:
        flags = ["END_HEADERS"]
        self.frame(HeadersFrame(stream, self.block(path, **extra), flags=flags))

    def message(self, data: bytes, stream: int = 1, *, compressed: bool = False) -> None:
        """One gRPC message, as fast as the host's windows allow, unless it ends the stream."""
        self._part(stream, memoryview(struct.pack(">?I", compressed, len(data))))
        self._part(stream, memoryview(data))

    def _part(self, stream: int, rest: memoryview) -> None:
        while rest and not self._is_over(stream):
            room = min(len(rest), FRAME, self._windows[0], self._windows[stream])
            if room <= 0:
                self.pump()
                continue
            self.frame(DataFrame(stream, bytes(rest[:room])))
            rest = rest[room:]
            self._windows[0] -= room
            self._windows[stream] -= room

    def say(self, **fields: object) -> None:
        """One message of the protocol, with the token."""
        fields.setdefault("token", self.token)
        self.message(FromSandbox(**fields).SerializeToString())

    def call(self, tool: str, arguments: bytes = b"{}", **fields: object) -> int:
        call_id = next(self._ids)
        self.say(calls=[ToolCall(id=call_id, tool=tool, arguments=arguments)], **fields)
        return call_id

    # -- in -----------------------------------------------------------------------------------

    def pump(self) -> None:
        """Take one frame. Raises Gone."""
        header = self._take(9)
        frame, length = Frame.parse_frame_header(memoryview(header))
        frame.parse_body(memoryview(self._take(length)))
        if isinstance(frame, DataFrame):
            self.data[frame.stream_id] += frame.data
        elif isinstance(frame, HeadersFrame):
            self.headers[frame.stream_id].update(self.decoder.decode(frame.data))
        elif isinstance(frame, RstStreamFrame):
            self.resets[frame.stream_id] = frame.error_code
        elif isinstance(frame, GoAwayFrame):
            self.goaway = frame
        elif isinstance(frame, WindowUpdateFrame):
            self._windows[frame.stream_id] += frame.window_increment
        elif isinstance(frame, SettingsFrame) and "ACK" not in frame.flags:
            self.frame(SettingsFrame(0, flags=["ACK"]))

    def from_host(self, stream: int = 1) -> FromHost:
        """The next message on a stream. Raises Gone when there will be none."""
        data = self.data[stream]
        while len(data) < 5 or len(data) < 5 + int.from_bytes(data[1:5], "big"):
            if self._is_over(stream):
                raise Gone
            self.pump()
        size = 5 + int.from_bytes(data[1:5], "big")
        message = FromHost.FromString(bytes(data[5:size]))
        del data[:size]
        return message

    def attach(self, protocol: int = 1) -> None:
        self.open()
        hello = FromSandbox(hello=Hello(protocol=protocol, gate="gate"))
        self.message(hello.SerializeToString())

    def job(self) -> Job:
        job = self.from_host().job
        self.token = job.token
        return job

    def answer(self, call_id: int) -> ToolResult:
        while True:
            for result in self.from_host().results:
                if result.id == call_id:
                    return result

    def status(self, stream: int = 1) -> str:
        """How the host ended a stream: a gRPC status, a reset, or that the connection is gone."""
        try:
            while not self._is_over(stream):
                self.pump()
        except Gone:
            return "gone"
        found = self.headers[stream].get("grpc-status")
        return f"grpc {found}" if found is not None else "reset"

    def _is_over(self, stream: int) -> bool:
        return "grpc-status" in self.headers[stream] or stream in self.resets

    def _take(self, size: int) -> bytes:
        while len(self._read) < size:
            try:
                more = self.socket.recv(262_144)
            except ConnectionResetError:
                more = b""
            if not more:
                raise Gone
            self._read += more
        data = bytes(self._read[:size])
        del self._read[:size]
        return data
