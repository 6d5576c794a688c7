"""The `tools` package as Python's own probes see it: attributes, imports, copies, pickles."""

import copy
import importlib
import inspect
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from limbeck import Catalog, Toolset
from limbeck.runtime import toolbox
from limbeck.runtime.errors import TOOL_ERRORS, InvalidArguments, ToolError, UnknownTool
from limbeck.runtime.stub_calls import checked
from limbeck.stubs.render import render_catalog


def _orders() -> Toolset:
    orders = Toolset("orders", "Orders.")

    @orders.tool(effect="read")
    def get_order(order_id: int) -> int:
        return order_id

    @orders.tool(effect="read")
    def act(_x: int, x: int = 0, for_: str = "", *, _from: str = "") -> int:
        return _x

    return orders


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    for name, source in render_catalog(Catalog.of(_orders())).items():
        (tmp_path / name).write_text(source)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    # Nothing is called here: only the names are looked at.
    toolbox.install(str(tmp_path), SimpleNamespace(call=None))  # type: ignore[arg-type]
    yield importlib.import_module("tools")
    for name in [name for name in sys.modules if name.partition(".")[0] == "tools"]:
        del sys.modules[name]


def test_a_missing_tool_is_a_missing_attribute_too(tools: ModuleType) -> None:
    orders = tools.orders
    assert not hasattr(orders, "zz")
    assert getattr(orders, "zz", 5) == 5
    assert not hasattr(tools, "zz")
    assert not hasattr(tools, "search")
    assert hasattr(orders, "get_order")
    assert hasattr(tools, "orders")
    with pytest.raises(AttributeError) as caught:
        orders.get_ordr
    assert isinstance(caught.value, UnknownTool)
    assert type(caught.value).__name__ == "UnknownTool"
    assert "did you mean orders.get_order?" in str(caught.value)
    with pytest.raises(UnknownTool, match="did you mean orders"):
        tools.ordrs


@pytest.mark.parametrize(
    ("statement", "words", "unknown"),
    [
        ("from tools import ordrs", ["ordrs: there is no such tool", "mean orders?"], True),
        ("import tools.ordrs", ["mean orders?"], True),
        ("from tools.ordrs import get_order", ["mean orders?"], True),
        ("from tools.orders import get_ordr", ["orders.get_ordr", "mean orders.get_order?"], True),
        ("import tools.orders.get_ordr", ["mean orders.get_order?"], True),
        ("import tools.orders.get_order", ["write `from tools.orders import get_order`"], False),
        ("from tools import search", ["not in this version"], False),
        ("import tools.search", ["not in this version"], False),
    ],
)
def test_a_missing_import_is_an_import_error_with_help(
    tools: ModuleType, statement: str, words: list[str], unknown: bool
) -> None:
    with pytest.raises(ImportError) as caught:
        exec(statement, {})
    assert isinstance(caught.value, UnknownTool) is unknown
    assert not isinstance(caught.value, AttributeError)
    for word in words:
        assert word in str(caught.value)


def test_a_name_of_a_later_version_says_so_as_an_attribute_too(tools: ModuleType) -> None:
    with pytest.raises(AttributeError, match="not in this version"):
        tools.search


def test_what_is_there_is_imported_in_every_way(tools: ModuleType) -> None:
    names: dict[str, Any] = {}
    exec(
        "import tools.orders\nfrom tools import orders\nfrom tools.orders import get_order, act\n"
        "import tools.orders as same\nfrom tools.orders import *",
        names,
    )
    assert names["orders"] is names["same"] is tools.orders
    assert names["get_order"] is tools.orders.get_order
    assert dir(tools.orders) == ["act", "get_order"]
    assert dir(tools) == ["aio", "call_many", "orders"]


def test_probes_of_the_standard_library_find_a_module(tools: ModuleType) -> None:
    orders = tools.orders
    for probe in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="module"):
            probe(orders)
    assert inspect.ismodule(orders)
    assert [name for name, _ in inspect.getmembers(orders)] == ["act", "get_order"]
    assert list(inspect.signature(orders.get_order).parameters) == ["order_id"]
    assert inspect.getdoc(orders) == "Orders."
    assert inspect.unwrap(orders.get_order).__name__ == "get_order"
    assert inspect.getmodule(orders.get_order) is orders
    for name in ("_repr_html_", "__wrapped__", "__deepcopy__", "shape"):
        assert not hasattr(orders, name)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_errors_are_copied_and_pickled_with_their_fields(again: Any, tools: ModuleType) -> None:
    errors = [
        InvalidArguments("orders.act", ["x: missing"], ["x"]),
        TOOL_ERRORS["budget_exceeded"]("orders.act", "calls", 5, 4),  # type: ignore[call-arg]
        TOOL_ERRORS["tool_failed"]("no_order", "there is no order", retryable=True),  # type: ignore[call-arg]
        TOOL_ERRORS["rate_limited"]("orders.act", 1.5),  # type: ignore[call-arg]
        ToolError("orders.act", "odd", hint="h", details={"a": 1}),
    ]
    for error in errors:
        error.add_note("a note")
        other = again(error)
        assert type(other) is type(error)
        assert (str(other), vars(other)) == (str(error), vars(error))


def test_wrong_arguments_speak_of_the_stub_s_names_and_send_the_wire_s(tools: ModuleType) -> None:
    sent: list[Any] = []
    function = inspect.unwrap(tools.orders.act)
    assert list(inspect.signature(function).parameters) == ["x", "x_", "for_", "from_"]
    stub = checked(function, "orders.act", lambda tool, arguments: sent.append((tool, arguments)))
    stub(x="a", x_=2, nope=3)
    assert sent == [("orders.act", {"_x": "a", "x": 2, "nope": 3})]
    for wrong in ({"_x": 1}, {"x": 1, "_from": "a"}):
        with pytest.raises(InvalidArguments) as caught:
            stub(**wrong)
        name = list(wrong)[-1]
        assert f"{name}: there is no such parameter" in str(caught.value)
        assert "the parameters of orders.act are: x, x_, for_, from_." in str(caught.value)
    assert "x: missing" in _told(stub, _x=1)
    assert len(sent) == 1


def _told(stub: Any, **wrong: Any) -> str:
    with pytest.raises(InvalidArguments) as caught:
        stub(**wrong)
    return str(caught.value)
