"""The error tree: every class crosses the wire with its fields and can be caught by name."""

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limbeck.runtime import errors, payload
from limbeck.runtime.errors import (
    TOOL_ERRORS,
    BudgetExceeded,
    InvalidArguments,
    RateLimited,
    ToolError,
    ToolFailed,
    UnknownTool,
    from_wire,
    to_wire,
)

SAMPLES: dict[str, object] = {
    "tool": "orders.get_order",
    "near": ["orders.get_orders"],
    "problems": ["order_id: missing"],
    "parameters": ["order_id"],
    "reason": "too dear",
    "seconds": 1.5,
    "proposal_id": "p1",
    "retry_after": 2.0,
    "budget": "calls",
    "used": 10,
    "limit": 10,
    "times": 3,
    "size": 99,
    "error": "not_shipped",
    "message": "the order is in transit",
}


def _sample(cls: type[ToolError]) -> ToolError:
    names = [
        parameter.name
        for parameter in inspect.signature(cls).parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    return cls(*(SAMPLES[name] for name in names))


@pytest.mark.parametrize("cls", TOOL_ERRORS.values(), ids=lambda cls: cls.__name__)
def test_every_error_crosses_the_wire(cls: type[ToolError]) -> None:
    error = _sample(cls)
    copy = from_wire(payload.decode_strict(payload.encode(to_wire(error))))
    assert type(copy) is cls
    assert to_wire(copy) == to_wire(error)
    assert str(copy) == str(error)


def test_every_tool_error_is_in_the_table() -> None:
    classes = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, ToolError)
    }
    assert classes == set(TOOL_ERRORS.values())
    assert len(TOOL_ERRORS) == len(classes)


def test_fields_of_the_subject_are_attributes() -> None:
    assert from_wire(to_wire(RateLimited("t", 2.5))).retry_after == 2.5
    spent = from_wire(to_wire(BudgetExceeded("t", "writes", 7, 8)))
    assert (spent.budget, spent.used, spent.limit) == ("writes", 7, 8)
    assert from_wire(to_wire(ToolFailed("gone", "it is gone"))).error == "gone"
    with pytest.raises(AttributeError):
        _ = RateLimited("t", 1).budget


def test_messages_say_what_to_do() -> None:
    assert "did you mean orders.get_order?" in str(UnknownTool("orders.get", ["orders.get_order"]))
    text = str(InvalidArguments("orders.get_order", ["id: unknown"], ["order_id"]))
    assert "id: unknown" in text
    assert "the parameters of orders.get_order are: order_id." in text


@given(st.dictionaries(st.text(), st.none() | st.text() | st.integers()))
def test_any_object_becomes_some_tool_error(data: dict[str, object]) -> None:
    data.pop("details", None)
    assert isinstance(from_wire(data), ToolError)
