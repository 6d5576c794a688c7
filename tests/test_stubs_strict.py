"""Arguments: no coercion changes what was said, wherever in a structure it stands."""

import dataclasses
import datetime
import decimal
import enum
from typing import Any, Literal, TypedDict

import pytest
from pydantic import BaseModel

from limbeck import Toolset
from limbeck.runtime import payload
from limbeck.runtime.errors import InvalidArguments
from limbeck.stubs.tool import Tool


class Number(enum.IntEnum):
    ONE = 1


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"
    HALF = 0.5


class Lenient(enum.Enum):
    A = "a"

    @classmethod
    def _missing_(cls, value: object) -> "Lenient | None":
        return cls.A if value == "AA" else None


class Blob(BaseModel):
    data: bytes
    more: Any = None
    rate: float = 1.0
    when: datetime.date | None = None


@dataclasses.dataclass
class Part:
    data: bytes
    more: Any = None


class Row(TypedDict):
    data: bytes
    more: Any


def _of(annotation: Any) -> Tool:
    def handler(value):  # type: ignore[no-untyped-def]
        return value

    handler.__annotations__ = {"value": annotation}
    return Toolset("box").add(handler, effect="read")


def _read(annotation: Any, value: Any) -> Any:
    return _of(annotation).read_arguments(payload.encode({"value": value}))["value"]


@pytest.mark.parametrize(
    ("annotation", "sent", "taken"),
    [
        (Any, b"\x00\xff", b"\x00\xff"),
        (Any, [{"a": b"x"}], [{"a": b"x"}]),
        (Any, {"$bytes": "x", "b": b"y"}, {"$bytes": "x", "b": b"y"}),
        (dict[str, Any], {"a": b"x", "b": [b"y", "z", 1]}, {"a": b"x", "b": [b"y", "z", 1]}),
        (list[Any], [b"x", "eA=="], [b"x", "eA=="]),
        (bytes, b"x", b"x"),
        (bytes | None, b"x", b"x"),
        (bytes | str, b"x", b"x"),
        (bytes | str, "eA==", "eA=="),
        (str | bytes, b"x", b"x"),
        (Blob, {"data": b"x", "more": [b"y"]}, Blob(data=b"x", more=[b"y"])),
        (list[Blob], [{"data": b"x"}], [Blob(data=b"x")]),
        (Part, {"data": b"x", "more": b"y"}, Part(b"x", b"y")),
        (Row, {"data": b"x", "more": {"a": b"y"}}, {"data": b"x", "more": {"a": b"y"}}),
        (int | float, 10**400, 10**400),
        (float, 10**300, 1e300),
        (Number, 1, Number.ONE),
        (Mixed, 0.5, Mixed.HALF),
        (Mixed, "two", Mixed.TWO),
        (Lenient, "AA", Lenient.A),
        (Literal[1, "a"], 1, 1),
        (Literal[True], True, True),
        (decimal.Decimal, 0.1, decimal.Decimal("0.1")),
        (decimal.Decimal, "0.10", decimal.Decimal("0.10")),
        (datetime.datetime, "2026-01-02T03:04:05", datetime.datetime(2026, 1, 2, 3, 4, 5)),
        (str | datetime.date, "2026-01-02", "2026-01-02"),
        (datetime.date | str, "2026-01-02", datetime.date(2026, 1, 2)),
        (datetime.date | str, "20260102", "20260102"),
        (set[datetime.date], ["2026-01-02"], {datetime.date(2026, 1, 2)}),
        (tuple[int, str], [1, "a"], (1, "a")),
    ],
    ids=lambda item: str(item)[:40],
)
def test_what_is_taken_is_what_was_sent(annotation: Any, sent: Any, taken: Any) -> None:
    value = _read(annotation, sent)
    assert value == taken
    assert type(value) is type(taken)


@pytest.mark.parametrize(
    ("annotation", "sent", "words"),
    [
        (bytes, "eA==", ["must be bytes, got 'eA==' (str)"]),
        (Blob, {"data": "eA=="}, ["value.data: must be bytes"]),
        (Part, {"data": "eA=="}, ["value.data: must be bytes"]),
        (str, b"x", ["must be a text, got b'x' (bytes)"]),
        (list[str], ["a", b"x"], ["value[1]: must be a text, got b'x' (bytes)"]),
        (dict[str, str], {"a": b"x"}, ["value.a: must be a text"]),
        (dict[str, Any], b"x", ["must be a dict, got b'x' (bytes)"]),
        (Row, b"x", ["must be a dict, got b'x' (bytes)"]),
        (datetime.date, b"x", ["value: "]),
        (Literal["eA=="], b"x", ["must be one of 'eA==', got b'x' (bytes)"]),
        (float, 10**400, ["finite number"]),
        (list[float], [1.0, -(10**400)], ["value[1]", "finite number"]),
        (Blob, {"data": b"", "rate": 10**400}, ["value.rate", "finite number"]),
        (float, True, ["must be a number"]),
        (float, "NaN", ["must be a number"]),
        (int, 1.0, ["must be a whole number"]),
        (bool, 1, ["must be True or False"]),
        (bool, "true", ["must be True or False"]),
        (Literal[1], True, ["must be one of 1, got True (bool)"]),
        (Literal[1], 1.0, ["must be one of 1, got 1.0 (float)"]),
        (Literal[True], 1, ["must be one of True"]),
        (Literal[0, "a"], False, ["must be one of 0 or 'a'"]),
        (Number, True, ["must be one of 1, got True (bool)"]),
        (Number, 1.0, ["must be one of 1"]),
        (Mixed, True, ["must be one of 1 or 'two' or 0.5"]),
        (datetime.datetime, "1234567890", ["must be a valid datetime, got '1234567890' (str)"]),
        (datetime.datetime, 1234567890, ["must be a valid datetime"]),
        (datetime.date, "20260102", ["must be a valid date"]),
        (Blob, {"data": b"", "when": "86400"}, ["value.when: must be a valid date"]),
        (datetime.timedelta, 90, ["value: "]),
        (decimal.Decimal, True, ["value: "]),
        (decimal.Decimal, "NaN", ["finite number"]),
        (tuple[int, str], [1, "a", "b"], ["value: "]),
        (set[int], "12", ["must be a list"]),
    ],
    ids=lambda item: str(item)[:40],
)
def test_what_would_change_on_the_way_is_refused(annotation: Any, sent: Any, words: Any) -> None:
    with pytest.raises(InvalidArguments) as caught:
        _read(annotation, sent)
    for word in words:
        assert word in str(caught.value)
    assert "\\x00" not in str(caught.value)


def test_a_text_cannot_pass_for_bytes() -> None:
    for text in ("\0", "\0" + "0" * 32 + ":eA==", "$bytes"):
        assert _read(Any, [text, b"x"]) == [text, b"x"]
