"""Names: what a stub shows can be written in a script, and is what messages speak of."""

import ast
import keyword
import unicodedata
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from limbeck import Catalog, ConfigurationError, Toolset
from limbeck.runtime import gate
from limbeck.runtime.errors import InvalidArguments
from limbeck.stubs.describe import describe
from limbeck.stubs.names import MAX_NAME, member_name, module_name, parameter_names
from limbeck.stubs.render import render_toolset

REFUSED = ["mro", "gi_code", "f_back", "tb_next", "cr_frame", "subprocess_exec", "get_stack"]
ODD = ["ﬁnd", "ℌello", "x²", "①", "ſ", "﹏a", "\u0303x", "a\u0303", "𝐟𝐨𝐫", "𝓶𝓻𝓸", "1\u0303", "__class__",
       "_lb_show", "__mro__", "match", "format", "None", "٣", "·a", "a·", "\ud800a"]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_gate_refuses_gets_an_underscore_behind(name: str) -> None:
    assert member_name(name) == f"{name}_"
    assert module_name(name) == f"{name}_"
    box = Toolset("box")
    box.add(lambda: None, name=name, effect="read")
    assert f"def {name}_(" in render_toolset(Catalog.of(box).toolsets[0])


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=12) | st.sampled_from(ODD + REFUSED + keyword.kwlist))
@example("ToolError")
def test_a_script_can_write_every_name_that_is_taken(name: str) -> None:
    try:
        tool, toolset = member_name(name), module_name(name)
    except ConfigurationError:
        return
    for made in (tool, toolset):
        assert made == unicodedata.normalize("NFKC", made)
        assert made == member_name(made)
        assert made.isidentifier()
    gate.compile_script(
        f"from tools import {toolset}\nfrom tools.{toolset} import {tool}\n"
        f"{toolset}.{tool}()\n{tool}()",
        gate=True,
        filename="<script>",
    )


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(max_size=8) | st.sampled_from(ODD + REFUSED), unique=True, max_size=8))
@example(["ſ", "s"])
@example(["x²", "x2"])
@example(["𝐟𝐨𝐫", "for"])
def test_parameters_are_distinct_to_python(names: list[str]) -> None:
    made = parameter_names(names)
    assert list(made) == names
    assert all(name == unicodedata.normalize("NFKC", name) for name in made.values())
    ast.parse(f"def f({', '.join(made.values())}): ...")
    script = f"from tools import box\nbox.f({', '.join(f'{name}=1' for name in made.values())})"
    gate.compile_script(script, gate=True, filename="<script>")


def test_names_that_are_one_to_python_collide_when_they_are_made() -> None:
    box = Toolset("box")
    box.add(lambda: None, name="ﬁnd", effect="read")
    assert box.tools[0].spec.qualified == "box.find"
    with pytest.raises(ConfigurationError, match="two tools"):
        box.add(lambda: None, name="find", effect="read")
    with pytest.raises(ConfigurationError, match="two toolsets"):
        Catalog.of(Toolset("ﬁnd"), Toolset("find"))


def test_a_toolset_does_not_hide_what_the_package_offers() -> None:
    assert module_name("ToolError") == "ToolError_"
    assert module_name("InvalidArguments") == "InvalidArguments_"
    assert member_name("ToolError") == "ToolError"


def test_a_name_that_no_file_can_have_is_refused() -> None:
    assert len(member_name("x" * MAX_NAME)) == MAX_NAME
    with pytest.raises(ConfigurationError, match="the limit is 100"):
        Toolset("x" * (MAX_NAME + 1))


def _odd() -> Any:
    """A tool whose parameters have other names in the stub than on the wire."""

    def act(_x: int, x: int, for_: str, _from: str = "") -> None: ...

    act.__doc__ = "Act.\n\nArgs:\n    _x: The first.\n    x: The second."
    box = Toolset("box")
    return box.add(act, effect="read")


def test_messages_speak_of_the_names_in_the_stub() -> None:
    tool = _odd()
    with pytest.raises(InvalidArguments) as caught:
        tool.read_arguments(b'{"_x": "a", "x": "b", "for_": 1, "_from": 2, "y": 3}')
    assert caught.value.details["problems"] == [
        "x: must be a whole number, got 'a' (str)",
        "x_: must be a whole number, got 'b' (str)",
        "for_: must be a text, got 1 (int)",
        "from_: must be a text, got 2 (int)",
        "y: there is no such parameter",
    ]
    assert caught.value.details["parameters"] == ["x", "x_", "for_", "from_"]
    assert tool.read_arguments(b'{"_x": 1, "x": 2, "for_": "a"}') == {"_x": 1, "x": 2, "for_": "a"}


def test_the_prompt_speaks_of_the_names_in_the_stub() -> None:
    box = Toolset("box")
    box.add(_odd().handler, effect="read")
    source = render_toolset(Catalog.of(box).toolsets[0])
    assert "    x: The first." in source
    assert "    x_: The second." in source
    for index in range(99):
        box.add(_odd().handler, name=f"act{index}", effect="read")
    text = describe(Catalog.of(box), limits={}, modules=[], budget=4_000)
    assert "(x, x_, for_, from_)" in text
