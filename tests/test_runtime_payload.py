"""Payloads: what goes in comes out, and what a sandbox may not send is refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limbeck.runtime import payload

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.binary()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | st.sampled_from(["$bytes", "$$bytes"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_a_value_survives_both_parsers(value: object) -> None:
    data = payload.encode(value)
    assert payload.decode(data) == value
    assert payload.decode_strict(data) == value


def test_integers_stay_integers_and_text_stays_text() -> None:
    value = payload.decode(payload.encode({"id": 2**53 + 1, "code": "123"}))
    assert value == {"id": 9007199254740993, "code": "123"}
    assert type(value["id"]) is int
    assert type(value["code"]) is str


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b'{"a": 1, "a": 2}', "twice"),
        (b"[1e999]", "out of range"),
        (b"[-1e999]", "out of range"),
        (b"NaN", "NaN"),
        (b"[-Infinity]", "Infinity"),
        (b'"\\ud800"', "surrogate"),
        (b'{"\\udfff": 1}', "surrogate"),
        (b"[" * 65 + b"]" * 65, "levels"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "levels"),
        (b"[" * 1_000_000, "levels"),
        (b"\xff", "UTF-8"),
        (b'"\xed\xa0\x80"', "UTF-8"),
        (b"1" * 4_301, "limit"),
        (b'{"$bytes": "!"}', "base64"),
        (b'{"$bytes": 5}', "base64"),
        (b"", "JSON"),
        (b"{} {}", "JSON"),
        (b"\xef\xbb\xbf{}", "JSON"),
    ],
)
def test_the_strict_parser_refuses(data: bytes, word: str) -> None:
    with pytest.raises(payload.PayloadError, match=word):
        payload.decode_strict(data)


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 64 + b"]" * 64,
        b'["' + b"[" * 500 + b'"]',
        b'["\\"[[[[", ' + b"[1]," * 100 + b"2]",
        b'"\\ud83d\\ude00"',
        b"9" * 4_300,
    ],
)
def test_the_strict_parser_takes_what_only_looks_wrong(data: bytes) -> None:
    payload.decode_strict(data)


def test_nan_may_travel_to_the_script() -> None:
    assert math.isnan(payload.decode(payload.encode(float("nan"))))


@pytest.mark.parametrize("value", [object(), {1, 2}, {"a": print}, 1j])
def test_what_is_not_plain_data_is_named(value: object) -> None:
    with pytest.raises(payload.PayloadError, match="plain data"):
        payload.encode(value)


def test_a_structure_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(payload.PayloadError):
        payload.encode(loop)


def test_lone_surrogates_travel_to_the_script_as_they_are() -> None:
    assert payload.decode(payload.encode(["\ud800", b"x"])) == ["\ud800", b"x"]
