"""What may be handed in as a tool, and what is said of the rest."""

import functools
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from limbeck import ConfigurationError, Toolset
from limbeck.stubs.tool import HandlerKind, tool


def look(order_id: int, key: str, full: bool = False) -> str:
    """Look an order up.

    Args:
        order_id: Its number.
    """
    return f"{order_id} {key} {full}"


class Orders:
    """Orders of a shop."""

    def get(self, order_id: int) -> str:
        """Get one."""
        return f"get {order_id}"

    @classmethod
    def made(cls, order_id: int) -> str:
        """Make one."""
        return f"{cls.__name__} {order_id}"

    @staticmethod
    def plain(order_id: int) -> str:
        """Plain."""
        return f"plain {order_id}"

    def __call__(self, order_id: int) -> str:
        return f"called {order_id}"


class Rows:
    async def __call__(self, count: int) -> AsyncIterator[int]:
        """Count."""
        for number in range(count):
            yield number


class Later:
    async def __call__(self, count: int) -> int:
        return count


def _wrapped(function: Any) -> Any:
    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return inner


@pytest.mark.parametrize(
    ("handler", "name", "description", "answer"),
    [
        (functools.partial(look, key="secret"), "look", "Look an order up.", "5 secret False"),
        (functools.partial(functools.partial(look, full=True), key="k"), "look", "Look an order up.",
         "5 k True"),
        (Orders().get, "get", "Get one.", "get 5"),
        (Orders.made, "made", "Make one.", "Orders 5"),
        (Orders.plain, "plain", "Plain.", "plain 5"),
        (Orders.__dict__["plain"], "plain", "Plain.", "plain 5"),
        (functools.partial(Orders().get), "get", "Get one.", "get 5"),
        (functools.lru_cache(Orders.plain), "plain", "Plain.", "plain 5"),
        (_wrapped(Orders.plain), "plain", "Plain.", "plain 5"),
    ],
)  # fmt: skip
def test_what_leads_to_a_function_is_a_tool(
    handler: Any, name: str, description: str, answer: str
) -> None:
    made = Toolset("box").add(handler, effect="read")
    assert made.spec.name == name
    assert made.spec.description == description
    assert made.spec.input_schema["properties"]["order_id"]["type"] == "integer"
    assert made.spec.output_schema == {"type": "string"}
    assert made.handler(**made.read_arguments(b'{"order_id": 5}')) == answer


def test_an_object_that_can_be_called_needs_a_name() -> None:
    box = Toolset("box")
    made = box.add(Orders(), name="order", effect="read")
    assert made.spec.description == "Orders of a shop."
    assert made.handler(**made.read_arguments(b'{"order_id": 5}')) == "called 5"
    rows = box.add(Rows(), name="rows", effect="read")
    assert (rows.kind, rows.spec.streamed) == (HandlerKind.ASYNC_GENERATOR, True)
    assert rows.spec.output_schema == {"type": "integer"}
    assert box.add(Later(), name="later").kind is HandlerKind.COROUTINE
    assert box.add(functools.partial(Later()), name="later2").kind is HandlerKind.COROUTINE
    assert box.add(lambda a: a, name="same").spec.input_schema["required"] == ["a"]


def test_what_a_partial_has_given_is_neither_shown_nor_overridden() -> None:
    made = Toolset("box").add(functools.partial(look, 5, key="secret"), effect="read")
    assert list(made.spec.input_schema["properties"]) == ["full"]
    assert "secret" not in json.dumps(made.spec.input_schema)
    assert made.handler(**made.read_arguments(b'{"full": true}')) == "5 secret True"


@pytest.mark.parametrize(
    ("handler", "options", "words"),
    [
        (lambda a: a, {}, ["a lambda", "Hint: name it: add(..., name="]),
        (functools.partial(lambda a: a), {}, ["a lambda", "Hint: name it"]),
        (Orders(), {}, ["class Orders", "no name", "Hint: name it"]),
        (Orders, {}, ["the class Orders", "not a tool", "Hint: add a function"]),
        (Orders, {"name": "x"}, ["the class Orders", "not a tool"]),
        (Orders.get, {}, ["box.get", "a method of Orders without its object", "add(Orders()."]),
        (Orders.__dict__["made"], {}, ["class method", "Hint: add it by its class"]),
        (functools.partialmethod(look), {}, ["partialmethod", "cannot be called"]),
        (5, {}, ["class int", "cannot be called", "Hint: add a function."]),
        (None, {"name": "x"}, ["class NoneType", "cannot be called"]),
        (max, {}, ["box.max", "written in C", "Hint: write a function with annotations"]),
        (time.sleep, {}, ["box.sleep", "written in C", "Hint: write a function"]),
        ([].append, {}, ["box.append", "written in C"]),
        (functools.partial(max, 5), {}, ["box.max", "written in C"]),
    ],
)  # fmt: skip
def test_what_cannot_be_a_tool_says_what_to_do(handler: Any, options: Any, words: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Toolset("box").add(handler, **options)
    for word in words:
        assert word in str(caught.value)


def test_the_decorator_stands_above_or_below_staticmethod() -> None:
    box = Toolset("box")

    class Shop:
        @box.tool(effect="read")
        @staticmethod
        def above(order_id: int) -> int:
            return order_id

        @staticmethod
        @box.tool(effect="read")
        def below(order_id: int) -> int:
            return order_id

    assert [one.spec.name for one in box] == ["above", "below"]
    assert all(one.handler(**one.read_arguments(b'{"order_id": 5}')) == 5 for one in box)
    assert Shop.above(1) == Shop.below(1) == 1


def test_a_mark_that_cannot_be_set_says_so() -> None:
    with pytest.raises(ConfigurationError, match=r"(?s)cannot be marked.*Hint:.*Toolset\.add"):
        tool(effect="read")(Orders().get)


def test_an_option_that_there_is_not_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"(?s)box\.look: scope: .*did you mean scopes"):
        Toolset("box").add(look, scope={"a"})
    with pytest.raises(ConfigurationError, match=r"(?s)the options are: name, description"):
        Toolset("box").tool(zzz=1)(look)
