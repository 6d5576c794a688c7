"""Reads a message from a sandbox: hostile bytes, counted before they become objects.

An empty call takes two bytes on the wire and fifty in memory, and a Python object when somebody
looks at it: what a message may hold is bounded by number, not only by size.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from ..runtime.errors import ProtocolError
from ..runtime.wire import MAX_ITEMS, MAX_MESSAGE
from ..runtime.wire_pb2 import FromSandbox

_LEAST_BYTES = 2
"""Of a field of a message: its tag and its length."""

_OTHER_FIELDS = 4
"""hello, token, done, pong: fields that are no items."""

_TOO_MANY = f"a message holds more than {MAX_ITEMS:,} calls, credits and cancels"


def read_message(data: bytes) -> FromSandbox:
    """Parse one message. Raises ProtocolError."""
    if len(data) > MAX_MESSAGE:
        raise ProtocolError(f"a message of {len(data):,} bytes, the limit is {MAX_MESSAGE:,}")
    if len(data) > MAX_ITEMS * _LEAST_BYTES:
        _check_number(data)
    try:
        message = FromSandbox.FromString(data)
    except DecodeError:
        raise ProtocolError("no message of this protocol") from None
    if len(message.calls) + len(message.credits) + len(message.cancels) > MAX_ITEMS:
        raise ProtocolError(_TOO_MANY)
    return message


def _check_number(data: bytes) -> None:
    """Step from field to field, as far as may be. SAFETY: at most MAX_ITEMS steps."""
    position = 0
    for _ in range(MAX_ITEMS + _OTHER_FIELDS):
        if position >= len(data):
            return
        tag, position = _varint(data, position)
        position = _behind(data, position, tag & 7)
    if position < len(data):
        raise ProtocolError(_TOO_MANY)


def _behind(data: bytes, position: int, kind: int) -> int:
    if kind == 0:
        return _varint(data, position)[1]
    if kind == 1:
        return position + 8
    if kind == 2:
        size, position = _varint(data, position)
        return position + size
    if kind == 5:
        return position + 4
    raise ProtocolError("no message of this protocol")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    for byte in data[position : position + 10]:
        value |= (byte & 0x7F) << shift
        shift += 7
        position += 1
        if byte < 0x80:
            return value, position
    raise ProtocolError("no message of this protocol")
