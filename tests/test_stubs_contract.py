"""Contracts from functions: what the schema says, what comes in, what goes out."""

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import pytest
from pydantic import BaseModel, Field

from limbeck import ConfigurationError, ToolContext, Toolset
from limbeck.runtime import payload
from limbeck.runtime.errors import InvalidArguments, ResultInvalid
from limbeck.stubs.tool import HandlerKind, Tool


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Line(TypedDict):
    sku: str
    count: NotRequired[int]


class Tree(TypedDict):
    name: str
    children: list["Tree"]


class Node(BaseModel):
    name: str
    next: Optional["Node"] = None


@dataclasses.dataclass
class Address:
    street: str
    zip: str = "0000"


def _tool(function: Any, **options: Any) -> Tool:
    return Toolset("box").add(function, **{"effect": "read", **options})


def _of(annotation: Any, default: Any = ...) -> Tool:
    """A tool whose one parameter and result have a type."""

    def handler(value):  # type: ignore[no-untyped-def]
        return value

    handler.__annotations__ = {"value": annotation, "return": annotation}
    if default is not ...:
        handler.__defaults__ = (default,)
    return _tool(handler)


ROUND_TRIPS = [
    (int, 2**70),
    (float, 1.5),
    (str, "123"),
    (bool, True),
    (None, None),
    (bytes, b"\x00\xff"),
    (list[int], [1, 2]),
    (dict[str, float], {"a": 1.5}),
    (tuple[int, str], (1, "a")),
    (set[int], {1}),
    (Literal["a", 2], 2),
    (Color, Color.BLUE),
    (Optional[int], None),  # noqa: UP045
    (int | str, "5"),
    (Annotated[int, Field(ge=1, le=3)], 3),
    (Address, Address("s", "1")),
    (Line, {"sku": "a"}),
    (Tree, {"name": "a", "children": [{"name": "b", "children": []}]}),
    (Node, Node(name="a", next=Node(name="b"))),
    (list[Line | None], [None, {"sku": "x", "count": 2}]),
    (dict[str, list[Tree]], {"a": [{"name": "b", "children": []}]}),
    (datetime.datetime, datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC)),
    (datetime.date, datetime.date(2026, 1, 2)),
    (datetime.timedelta, datetime.timedelta(seconds=90)),
    (decimal.Decimal, decimal.Decimal("1.10")),
    (uuid.UUID, uuid.UUID(int=5)),
    (Any, {"x": [1, None, "a"]}),
]


@pytest.mark.parametrize(("annotation", "value"), ROUND_TRIPS, ids=lambda item: str(item)[:40])
def test_a_value_goes_out_and_comes_in_the_same(annotation: Any, value: Any) -> None:
    tool = _of(annotation)
    data = tool.write_result(value)
    arguments = tool.read_arguments(b'{"value":' + data + b"}")
    assert arguments == {"value": value}
    assert type(arguments["value"]) is type(value)


@pytest.mark.parametrize(
    ("annotation", "raw", "word"),
    [
        (int, '"123"', "whole number"),
        (int, "1.5", "whole number"),
        (int, "true", "whole number"),
        (str, "5", "text"),
        (bool, "1", "True or False"),
        (float, '"1.5"', "number"),
        (list[int], '"12"', "list"),
        (Literal["a", "b"], '"c"', "'a' or 'b'"),
        (Color, '"green"', "'red' or 'blue'"),
        (Annotated[int, Field(ge=1, le=3)], "7", "less than or equal to 3"),
        (Annotated[str, Field(pattern="^W")], '"x"', "pattern"),
        (datetime.date, '"tomorrow"', "date"),
        (Line, '{"count": 1}', "value.sku: missing"),
        (list[Line], '[{"sku": "a"}, {"sku": 5}]', "value[1].sku"),
    ],
)
def test_what_breaks_the_type_is_refused_and_told(annotation: Any, raw: str, word: str) -> None:
    with pytest.raises(InvalidArguments, match=r".*") as caught:
        _of(annotation).read_arguments(b'{"value":' + raw.encode() + b"}")
    assert word in str(caught.value)
    assert len(str(caught.value)) < 600


def test_int_is_fine_for_float_and_defaults_are_the_function_s() -> None:
    assert _of(float).read_arguments(b'{"value": 1}') == {"value": 1.0}
    assert _of(int, default=7).read_arguments(b"{}") == {}


def test_all_faults_at_once() -> None:
    def add(a: int, b: str, c: bool = False) -> None: ...

    with pytest.raises(InvalidArguments) as caught:
        _tool(add).read_arguments(b'{"a": "x", "c": 1, "d": 2}')
    problems = caught.value.details["problems"]
    assert {problem.split(":")[0] for problem in problems} == {"a", "b", "c", "d"}
    assert caught.value.details["parameters"] == ["a", "b", "c"]


@pytest.mark.parametrize("raw", [b"", b"[]", b"5", b'{"a":1,"a":2}', b"{}}", b"\xff", b'{"a":NaN}'])
def test_hostile_arguments_are_invalid_arguments(raw: bytes) -> None:
    def one(a: float) -> None: ...

    with pytest.raises(InvalidArguments):
        _tool(one).read_arguments(raw)


def test_parameters_may_be_named_like_anything_of_pydantic_s() -> None:
    def odd(model_config: int, schema: str, copy: bool, json: int, self_: int) -> None: ...

    raw = {"model_config": 1, "schema": "x", "copy": True, "json": 2, "self_": 3}
    tool = _tool(odd)
    assert tool.read_arguments(payload.encode(raw)) == raw
    assert list(tool.spec.input_schema["properties"]) == list(raw)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, "5"),
        (Line, {"count": 1}),
        (Annotated[int, Field(ge=1)], 0),
        (list[str], ["a", 5]),
        (Color, "green"),
        (None, 5),
        (Any, object()),
        (Any, {1: object()}),
    ],
)
def test_a_result_that_breaks_its_type_is_invalid(annotation: Any, value: Any) -> None:
    with pytest.raises(ResultInvalid):
        _of(annotation).write_result(value)


@pytest.mark.parametrize(
    ("annotation", "value", "plain"),
    [
        (Node, {"name": "a"}, {"name": "a", "next": None}),
        (Address, {"street": "s"}, {"street": "s", "zip": "0000"}),
        (datetime.date, "2026-01-02", "2026-01-02"),
        (Color, "red", "red"),
        (list[Node], [Node(name="a")], [{"name": "a", "next": None}]),
        (Any, (1, {2}, datetime.date(2026, 1, 2)), [1, [2], "2026-01-02"]),
        (Any, Node(name="a"), {"name": "a", "next": None}),
    ],
)
def test_the_plain_form_of_a_result_is_taken(annotation: Any, value: Any, plain: Any) -> None:
    assert payload.decode(_of(annotation).write_result(value)) == plain


def test_without_annotations_anything_plain_passes() -> None:
    def free(a, b=2):  # type: ignore[no-untyped-def]
        return a

    tool = _tool(free)
    assert tool.spec.output_schema is None
    assert tool.read_arguments(b'{"a": [1, {"x": null}]}') == {"a": [1, {"x": None}]}
    assert tool.write_result({"x": b"y"}) == b'{"x":{"$bytes":"eQ=="}}'


def test_context_is_neither_shown_nor_sent() -> None:
    def handler(a: int, ctx: ToolContext, other: ToolContext | None = None) -> None: ...

    tool = _tool(handler)
    assert list(tool.spec.input_schema["properties"]) == ["a"]
    assert tool.context_parameter is not None
    with pytest.raises(InvalidArguments):
        tool.read_arguments(b'{"a": 1, "ctx": {}}')


def test_kinds_and_row_types() -> None:
    def plain() -> int: ...
    async def coroutine() -> int: ...
    def rows() -> Iterator[Line]:
        yield {"sku": "a"}

    async def arows() -> AsyncIterator[int]:
        yield 1

    kinds = [_tool(one).kind for one in (plain, coroutine, rows, arows)]
    assert kinds == list(HandlerKind)
    tool = _tool(rows)
    assert tool.spec.streamed
    assert tool.spec.output_schema["properties"]["sku"] == {"type": "string"}
    assert tool.write_row({"sku": "a"}) == b'{"sku":"a"}'
    with pytest.raises(ResultInvalid, match="sku"):
        tool.write_row({})


DOCSTRINGS = {
    "google": """Cancel an order.

    Not for orders in transit.

    Args:
        order_id: The number
            of the order.
        reason: Why.

    Returns:
        Nothing.
    """,
    "numpy": """Cancel an order.

    Not for orders in transit.

    Parameters
    ----------
    order_id : int
        The number of the order.
    reason
        Why.
    """,
    "rest": """Cancel an order.

    Not for orders in transit.

    :param order_id: The number of the order.
    :param reason: Why.
    """,
}


@pytest.mark.parametrize("style", DOCSTRINGS)
def test_docstrings_of_three_styles(style: str) -> None:
    def cancel(order_id: int, reason: str = "") -> None: ...

    cancel.__doc__ = DOCSTRINGS[style]
    spec = _tool(cancel).spec
    assert spec.description == "Cancel an order.\n\nNot for orders in transit."
    properties = spec.input_schema["properties"]
    assert properties["order_id"]["description"] == "The number of the order."
    assert properties["reason"]["description"] == "Why."


def test_what_cannot_be_a_tool_is_named() -> None:
    class Opaque: ...

    def star(*names: int) -> None: ...
    def stars(**names: int) -> None: ...
    def only(a: int, /) -> None: ...
    def opaque(a: Opaque) -> None: ...
    def opaque_result() -> Opaque: ...
    def unknown(a: "Nowhere") -> None: ...  # noqa: F821

    for function, word in (
        (star, r"\*names"),
        (stars, r"\*\*names"),
        (only, "positional-only"),
        (opaque, "'a'"),
        (opaque_result, "the result"),
        (unknown, "Nowhere"),
    ):
        with pytest.raises(ConfigurationError, match=f"box.{function.__name__}.*{word}"):
            _tool(function)


def test_options_are_checked() -> None:
    def f() -> None: ...

    for options, word in (
        ({"effect": "delete"}, "read, write, destructive"),
        ({"approval": "allow"}, "unconfirmed_destructive"),
        ({"approval": "never"}, "ask or deny"),
        ({"scopes": "a"}, "single text"),
        ({"scopes": {"*"}}, "not a scope"),
        ({"timeout": 0}, "above 0"),
        ({"name": "!!"}, "not a name"),
    ):
        with pytest.raises(ConfigurationError, match=word):
            _tool(f, **options)


def test_names_are_mapped_and_collisions_named() -> None:
    def f() -> None: ...

    assert _tool(f, name="get-order").spec.qualified == "box.get_order"
    assert _tool(f, name="class").spec.name == "class_"
    assert Toolset("json").name == "json_"
    assert Toolset("search").name == "search_"
    assert Toolset("2fa").name == "n2fa"
    box = Toolset("box")
    box.add(f, name="a-b")
    with pytest.raises(ConfigurationError, match=r"box\.a_b.*two tools"):
        box.add(f, name="a.b")


def test_a_tool_that_says_nothing_is_destructive() -> None:
    box = Toolset("box")

    @box.tool
    def f() -> None: ...

    assert box.tools[0].spec.effect == "destructive"
    assert f() is None


def test_json_schema_survives_json() -> None:
    for annotation, _ in ROUND_TRIPS:
        json.dumps(_of(annotation).spec.input_schema)


def test_defaults_by_field_are_handed_over() -> None:
    tool = _tool(lambda n=Field(5, ge=1), tags=Field(default_factory=list): None, name="f")
    assert tool.read_arguments(b"{}") == {"n": 5, "tags": []}

    def g(more: Annotated[list[str], Field(default_factory=list)], n: int = Field(5, ge=1)): ...

    tool = _tool(g)
    assert tool.read_arguments(b"{}") == {"more": [], "n": 5}
    assert list(tool.spec.input_schema["properties"]) == ["more", "n"]
    with pytest.raises(InvalidArguments, match="n"):
        tool.read_arguments(b'{"n": 0}')
