"""The bridge's messages in protobuf's wire format, as far as the sandbox's side needs it.

Written by hand, because the library costs more to import than all else in a worker. wire.proto is
the source; tests compare every message with the library's own coding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class CodecError(ValueError):
    """Not a message."""


def varint(number: int) -> bytes:
    """A number of at most 64 bits; a negative one as its two's complement."""
    if 0 <= number < 128:
        return _SMALL[number]
    number &= 0xFFFFFFFFFFFFFFFF
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)
    return bytes(data)


_SMALL = [bytes([number]) for number in range(128)]


def _number(field: int, value: int) -> bytes:
    """A field with a number; nothing for 0, as proto3 has it."""
    return varint(field << 3) + varint(value) if value else b""


def _bytes(field: int, value: bytes) -> bytes:
    """A field with bytes, a text or a message."""
    return varint(field << 3 | _BYTES) + varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode()) if value else b""


# FromSandbox: parts that may be joined in any order make one message.


def hello(protocol: int, python: str, gate: str) -> bytes:
    """Who connects."""
    return _bytes(1, _number(1, protocol) + _text(2, python) + _text(3, gate))


def token(value: bytes) -> bytes:
    """The execution's token, for each message behind Hello."""
    return _bytes(2, value)


def call(number: int, tool: str, arguments: bytes) -> bytes:
    """One tool call; `arguments` is a JSON object."""
    inner = _number(1, number) + _text(2, tool) + (_bytes(3, arguments) if arguments else b"")
    return _bytes(3, inner)


def credit(number: int, parts: int) -> bytes:
    """So many more messages of rows may come for a call."""
    return _bytes(4, _number(1, number) + _number(2, parts))


def cancels(numbers: Iterable[int]) -> bytes:
    """Calls whose answer is no longer wanted."""
    packed = b"".join(map(varint, numbers))
    return _bytes(5, packed) if packed else b""


def done(exit_code: int, error: bytes, number: int = 0) -> bytes:
    """The script's end; `error` is JSON, or empty; `number` is that of the job."""
    inner = _number(1, exit_code) + (_bytes(2, error) if error else b"") + _number(3, number)
    return _bytes(6, inner)


PONG = varint(7 << 3) + varint(1)


class Job:
    """What to run."""

    __slots__ = (
        "cpu_seconds", "execution_id", "gate", "keep", "max_arguments", "max_inflight", "number",
        "open_modules", "script", "token",
    )  # fmt: skip

    def __init__(self) -> None:
        self.execution_id = ""
        self.token = b""
        self.script = ""
        self.gate = False
        self.max_inflight = 0
        self.max_arguments = 0
        self.open_modules: list[str] = []
        self.keep = False
        self.number = 0
        self.cpu_seconds = 0


class Result:
    """The answer to one call, or a part of its rows."""

    __slots__ = ("error", "id", "last", "rows", "stream", "value")

    def __init__(self) -> None:
        self.id = 0
        self.value: bytes = b""
        self.error: bytes = b""
        self.stream = False
        self.rows: list[bytes] = []
        self.last = False


class FromHost:
    """One message of the host."""

    __slots__ = ("job", "ping", "results")

    def __init__(self) -> None:
        self.job: Job | None = None
        self.results: list[Result] = []
        self.ping = False


def read_from_host(data: bytes) -> FromHost:
    """Read one message. Raises CodecError."""
    message = FromHost()
    for field, value in _fields(memoryview(data)):
        if field == 2:
            message.results.append(_read_result(_as_bytes(value)))
        elif field == 1:
            message.job = _read_job(_as_bytes(value))
        elif field == 3:
            message.ping = bool(value)
    return message


def _read_result(data: memoryview) -> Result:
    result = Result()
    for field, value in _fields(data):
        if field == 1:
            result.id = _as_number(value)
        elif field == 2:
            result.value = bytes(_as_bytes(value))
        elif field == 3:
            result.error = bytes(_as_bytes(value))
        elif field == 4:
            result.stream = bool(value)
        elif field == 5:
            result.rows.append(bytes(_as_bytes(value)))
        elif field == 6:
            result.last = bool(value)
    return result


def _read_job(data: memoryview) -> Job:
    job = Job()
    for field, value in _fields(data):
        if field == 1:
            job.execution_id = _as_text(value)
        elif field == 2:
            job.token = bytes(_as_bytes(value))
        elif field == 3:
            job.script = _as_text(value)
        elif field == 4:
            job.gate = bool(value)
        elif field == 5:
            job.max_inflight = _as_number(value)
        elif field == 6:
            job.max_arguments = _as_number(value)
        elif field == 7:
            job.open_modules.append(_as_text(value))
        elif field == 8:
            job.keep = bool(value)
        elif field == 9:
            job.number = _as_number(value)
        elif field == 10:
            job.cpu_seconds = _as_number(value)
    return job


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Number and value of each field; unknown ones too, which a newer host may send."""
    position, end = 0, len(data)
    while position < end:
        key, position = _read_varint(data, position)
        kind = key & 7
        if kind == _BYTES:
            size, position = _read_varint(data, position)
            if position + size > end:
                raise CodecError("a field is longer than its message")
            yield key >> 3, data[position : position + size]
            position += size
        elif kind == _VARINT:
            value, position = _read_varint(data, position)
            yield key >> 3, value
        elif kind in (_FIXED64, _FIXED32):
            position += 8 if kind == _FIXED64 else 4
            if position > end:
                raise CodecError("a field is longer than its message")
        else:
            raise CodecError(f"wire type {kind}")


def _read_varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    try:
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value, position
            shift += 7
            if shift > 63:
                raise CodecError("a number of more than 64 bits")
    except IndexError:
        raise CodecError("a number without an end") from None


def _as_bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise CodecError("a number where bytes belong")
    return value


def _as_text(value: int | memoryview) -> str:
    try:
        return str(_as_bytes(value), "utf-8")
    except UnicodeDecodeError:
        raise CodecError("a text that is no UTF-8") from None


def _as_number(value: int | memoryview) -> int:
    if not isinstance(value, int):
        raise CodecError("bytes where a number belongs")
    return value
