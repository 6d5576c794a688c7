"""The one tool in the form of each API, and what a model's wrong call of it gets back."""

import inspect
import json

import pytest
from kit.sandboxed import BACKEND

from limbeck import CodeTool, ConfigurationError, Executor, Toolset

shop = Toolset("shop", "A shop.")


@shop.tool(effect="read")
def price(name: str) -> float:
    """Tell a price."""
    return 2.5


@pytest.fixture(scope="module")
def code():
    with Executor([shop], backend=BACKEND) as executor:
        yield CodeTool(executor)


def test_each_style_has_its_form(code: CodeTool) -> None:
    anthropic = code.tool_spec("anthropic")
    assert set(anthropic) == {"name", "description", "input_schema"}
    openai = code.tool_spec("openai")
    assert openai["type"] == "function"
    assert set(openai["function"]) == {"name", "description", "parameters", "strict"}
    assert code.tool_spec("openai-responses")["parameters"]["additionalProperties"] is False
    assert set(code.tool_spec("mcp")) == {"name", "description", "inputSchema"}
    for style in ("anthropic", "openai", "openai-responses", "mcp"):
        text = json.dumps(code.tool_spec(style))
        assert "execute_code" in text
        assert "price(name: str)" in text
    with pytest.raises(ConfigurationError, match="anthropic"):
        code.tool_spec("nonsense")


def test_a_model_s_call_is_answered(code: CodeTool) -> None:
    script = "from tools import shop\nprint(shop.price('tea'))"
    assert code.handle("execute_code", {"code": script}) == "2.5"
    assert code.handle("execute_code", json.dumps({"code": script})) == "2.5"


@pytest.mark.parametrize(
    ("name", "arguments", "word"),
    [
        ("run_code", {"code": "1"}, "execute_code"),
        ("execute_code", {}, "one argument"),
        ("execute_code", {"code": 5}, "one argument"),
        ("execute_code", {"code": "1", "timeout": 5}, "leave out timeout"),
        ("execute_code", "{", "not JSON"),
        ("execute_code", "[]", "one argument"),
        ("execute_code", None, "one argument"),
    ],
)
def test_a_wrong_call_is_answered_with_what_to_send(code, name, arguments, word) -> None:
    assert word in code.handle(name, arguments)


def test_as_tool_is_a_typed_function(code: CodeTool) -> None:
    function = code.as_tool()
    assert function.__name__ == "execute_code"
    assert list(inspect.signature(function).parameters) == ["code"]
    assert "Args:" in function.__doc__
    assert function("print(1)") == "1"
