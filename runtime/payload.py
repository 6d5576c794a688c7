"""Values as JSON in bytes, both ways over the bridge.

Plain JSON, with one addition: bytes inside a structure travel as `{"$bytes": base64}`. A dict of
the user's that looks like that travels with one more dollar sign, and loses it on arrival.
`decode_strict` is the one parser for everything that comes from a sandbox.
"""

from __future__ import annotations

import binascii
import json
import math
import re
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 64
"""Levels of lists and objects; deeper is refused before it is parsed."""

_DOLLAR_KEY = re.compile(r"\$+bytes\Z")
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


class PayloadError(ValueError):
    """Not a payload: the text says what is wrong and what to send instead."""


def encode(value: Any, *, default: Callable[[Any], Any] | None = None) -> bytes:
    """JSON of plain data (str, int, float, bool, None, list, tuple, dict, bytes).

    `default` turns anything else into plain data. Raises PayloadError.
    """

    def fallback(item: Any) -> Any:
        if isinstance(item, bytes | bytearray | memoryview):
            return {"$bytes": binascii.b2a_base64(item, newline=False).decode()}
        if default is not None:
            return default(item)
        raise PayloadError(
            f"a {type(item).__name__} is not plain data; send str, int, float, "
            "bool, None, list, dict or bytes"
        )

    try:
        # An escaped user key would hide among the encoder's own, so it is looked for first.
        text = json.dumps(value, default=fallback, ensure_ascii=False, separators=(",", ":"))
        if "$bytes" in text:
            escaped = _escape(value)
            text = json.dumps(escaped, default=fallback, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise PayloadError("nested too deeply, or a structure that holds itself") from None
    except PayloadError:
        raise
    except (TypeError, ValueError) as error:
        raise PayloadError(str(error)) from None
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(_escape(value), default=fallback, separators=(",", ":")).encode()


def decode(data: bytes) -> Any:
    """The value of a payload that our own host wrote."""
    if b'"$' in data:
        return json.loads(data, object_hook=_unescape)
    return json.loads(data)


def decode_strict(data: bytes) -> Any:
    """The value of a payload from a sandbox.

    Refused, each with a PayloadError: bytes that are no UTF-8, depth over 64, numbers over 4,300
    digits or out of range, NaN and Infinity, duplicate keys, lone surrogates.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise PayloadError("not UTF-8") from None
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH:
        _check_depth(data)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_strict_object,
            parse_float=_finite,
            parse_constant=_no_constant,
        )
    except PayloadError:
        raise
    except RecursionError:
        raise PayloadError(f"more than {MAX_DEPTH} levels deep") from None
    except ValueError as error:
        raise PayloadError(f"not JSON: {error}") from None
    if b"\\u" in data:
        _check_surrogates(value)
    return value


def _check_depth(data: bytes) -> None:
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(data):
        first = token.group()[:1]
        if first in (b"[", b"{"):
            depth += 1
            if depth > MAX_DEPTH:
                raise PayloadError(f"more than {MAX_DEPTH} levels deep")
        elif first in (b"]", b"}"):
            depth -= 1


def _check_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False, default=lambda _: None).encode()
    except UnicodeEncodeError:
        raise PayloadError("a lone surrogate is not text") from None


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise PayloadError(f"the number {text[:20]} is out of range")
    return number


def _no_constant(name: str) -> Any:
    raise PayloadError(f"{name} is not JSON; send None or a text")


def _strict_object(pairs: list[tuple[str, Any]]) -> Any:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise PayloadError(f"the key {twice[:40]!r} stands twice in one object")
    return _unescape(result)


def _unescape(item: dict[str, Any]) -> Any:
    if len(item) != 1:
        return item
    ((key, inner),) = item.items()
    if not _DOLLAR_KEY.match(key):
        return item
    if key != "$bytes":
        return {key[1:]: inner}
    try:
        return binascii.a2b_base64(inner, strict_mode=True)
    except (binascii.Error, TypeError, ValueError):
        raise PayloadError("$bytes holds no base64") from None


def _escape(value: Any) -> Any:
    if isinstance(value, dict):
        inner = {key: _escape(item) for key, item in value.items()}
        if len(inner) == 1:
            ((key, item),) = inner.items()
            if isinstance(key, str) and _DOLLAR_KEY.match(key):
                return {f"${key}": item}
        return inner
    if isinstance(value, list | tuple):
        return [_escape(item) for item in value]
    return value
