"""The example's tools against recorded results of the suite's own, call by call."""

import json
import lzma
import sys
from pathlib import Path

import pytest

from limbeck import Catalog, ToolFailed

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "examples"))
import retail  # noqa: E402

TASKS = json.loads(lzma.decompress((ROOT / "tests/data/retail_calls.json.xz").read_bytes()))


@pytest.fixture(scope="module")
def database() -> str:
    return json.dumps(retail.load_database())


def test_every_recorded_call_gives_the_recorded_result(database: str) -> None:
    compared = 0
    for task in TASKS:
        catalog = Catalog.of(retail.make_toolset(json.loads(database)))
        for call in task["calls"]:
            tool = catalog.tool(f"retail.{call['name']}")
            arguments = tool.read_arguments(json.dumps(call["args"]).encode())
            try:
                got = json.loads(tool.write_result(tool.handler(**arguments)))
            except ToolFailed as error:
                got = f"Error: {error.message}"
            assert _plain(got) == _recorded(call["result"]), (task["id"], call)
            compared += 1
    assert compared == sum(len(task["calls"]) for task in TASKS) == 372


ORDER = {"order_id": "#W6390527"}
"""Delivered, paid with PAYPAL."""
LAMP = {"item_ids": ["8384507844"]}
PAYPAL = {"payment_method_id": "paypal_7644869"}
ADDRESS = dict.fromkeys(("address1", "address2", "city", "state", "country", "zip"), "x")

REFUSED = [
    ("get_item_details", {"item_id": "0"}, "Item not found"),
    ("calculate", {"expression": "__import__('os')"}, "Invalid expression"),
    ("calculate", {"expression": "1e999 * 9 ** 9 / 0"}, "Invalid expression"),
    ("cancel_pending_order", {**ORDER, "reason": "no longer needed"}, "cannot be cancelled"),
    ("modify_pending_order_address", {**ORDER, **ADDRESS}, "cannot be modified"),
    ("modify_pending_order_payment", {**ORDER, **PAYPAL}, "cannot be modified"),
    ("return_delivered_order_items", {**ORDER, **LAMP, "payment_method_id": "x"}, "not found"),
    ("return_delivered_order_items", {**ORDER, **PAYPAL, "item_ids": ["0"]}, "Number of 0"),
    (
        "exchange_delivered_order_items",
        {**ORDER, **PAYPAL, **LAMP, "new_item_ids": []},
        "should match",
    ),
    (
        "exchange_delivered_order_items",
        {**ORDER, **PAYPAL, **LAMP, "new_item_ids": ["0"]},
        "not found or available",
    ),
]


@pytest.mark.parametrize(("name", "arguments", "told"), REFUSED)
def test_a_refused_call_changes_nothing(
    database: str, name: str, arguments: dict[str, object], told: str
) -> None:
    data = json.loads(database)
    tool = Catalog.of(retail.make_toolset(data)).tool(f"retail.{name}")
    with pytest.raises(ToolFailed, match=told):
        tool.handler(**tool.read_arguments(json.dumps(arguments).encode()))
    assert data == json.loads(database)


def test_what_is_given_away_is_a_copy(database: str) -> None:
    data = json.loads(database)
    tools = {tool.spec.name: tool.handler for tool in retail.make_toolset(data)}
    order_id = ORDER["order_id"]
    tools["get_order_details"](order_id=order_id)["items"].clear()
    assert tools["get_order_details"](order_id=order_id)["items"]


def _recorded(text: str) -> object:
    try:
        return _plain(json.loads(text))
    except ValueError:
        return text


def _plain(value: object) -> object:
    """Without keys that are null: the suite's serializer leaves them out or in by the type."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    return [_plain(item) for item in value] if isinstance(value, list) else value
