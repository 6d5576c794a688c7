"""Stub modules: valid, deterministic, typed; no description can leave its docstring."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limbeck import Catalog, ConfigurationError, Toolset
from limbeck.runtime import gate
from limbeck.stubs import render
from limbeck.stubs.catalog import ToolsetView
from limbeck.stubs.contract import HandlerKind
from limbeck.stubs.describe import describe
from limbeck.stubs.names import member_name, parameter_names
from limbeck.stubs.render import render_bridge, render_catalog, render_toolset
from limbeck.stubs.tool import Effect, Tool, ToolSpec

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
WORDS = st.sampled_from(
    ["type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "enum", "const", "$ref",
     "$defs", "default", "description", "additionalProperties", "prefixItems", "format", "minimum"]
)  # fmt: skip
TYPES = st.sampled_from(
    ["string", "integer", "number", "boolean", "null", "array", "object", "any"]
)
SCHEMA: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries({"type": TYPES}) | st.dictionaries(WORDS, JSON, max_size=3),
    lambda inner: st.dictionaries(
        WORDS,
        inner
        | st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_size=4,
    ),
    max_leaves=10,
)
HOSTILE = st.sampled_from(
    ['"""', "'''", "\\", "\n", "\r", "\0", "\u202e", "\u2028", "\x1b[2J", "{", "}", "#", ";",
     '"""\nimport os\nos.system("x")\n"""', "\\N{DIGIT ONE}", "\ud800", "\\", "%s", "\x0c"]
)  # fmt: skip
TEXT = st.lists(HOSTILE | st.text(max_size=10), max_size=8).map("".join)


def _view(input_schema: Any, output_schema: Any = None, **spec: Any) -> ToolsetView:
    made = ToolSpec(
        **{
            "toolset": "box", "name": "act", "description": "", "input_schema": input_schema,
            "output_schema": output_schema, **spec,
        }
    )  # fmt: skip
    tool = Tool(
        spec=made, handler=print, kind=HandlerKind.PLAIN, context_parameter=None, parameters=(),
        reader=None, adapter=None,
    )  # type: ignore[arg-type]  # fmt: skip
    return ToolsetView(name="box", description="", tools=(tool,))


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.text(max_size=12), SCHEMA, max_size=4), SCHEMA, TEXT)
def test_any_schema_becomes_a_module(properties: Any, output: Any, text: str) -> None:
    schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    source = render_toolset(_view(schema, output, description=text))
    assert source == render_toolset(_view(schema, output, description=text))
    namespace: dict[str, Any] = {
        "_call": None,
        "_stream": None,
        "_UNSET": None,
        "__name__": "tools.box",
    }
    body = "\n".join(line for line in source.splitlines() if "from ._bridge" not in line)
    exec(compile(body, "<stub>", "exec"), namespace)
    assert callable(namespace["act"])


@settings(max_examples=300, deadline=None)
@given(TEXT, TEXT, TEXT)
def test_no_text_leaves_its_docstring(tool: str, toolset: str, parameter: str) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "description": parameter, "pattern": parameter}},
    }
    view = _view(schema, None, description=tool, side_effects=tool, version=parameter)
    view = ToolsetView(name="box", description=toolset, tools=view.tools)
    tree = ast.parse(render_toolset(view))
    kinds = [type(node).__name__ for node in tree.body]
    assert kinds in (
        ["ImportFrom", "ImportFrom", "FunctionDef"],
        ["Expr", "ImportFrom", "ImportFrom", "FunctionDef"],
    )
    function = tree.body[-1]
    assert [type(node).__name__ for node in function.body] in (["Return"], ["Expr", "Return"])
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not set(node.value) & set("\0\x1b\u202e\u2028\ud800\r\x0c")


def test_hostile_names_become_parameters_and_keep_their_own_on_the_wire() -> None:
    names = ["from", "user-id", "user_id", "1st", "", "call", "__class__", "größe", "a b", "UNSET"]
    made = parameter_names(names)
    assert len(set(made.values())) == len(names)
    assert all(name.isidentifier() for name in made.values())
    schema = {"properties": {name: {"type": "integer"} for name in names}}
    tree = ast.parse(render_toolset(_view(schema)))
    (sent,) = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    assert [key.value for key in sent.keys] == names


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "str"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"enum": ["a", 1, None, True]}, "Literal['a', 1, None, True]"),
        ({"const": 5}, "Literal[5]"),
        ({"enum": [1.5, "a"]}, "float | str"),
        ({"type": "array", "items": {"type": "integer"}}, "list[int]"),
        ({"type": "array"}, "list[Any]"),
        ({"type": "object"}, "dict[str, Any]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}, {"type": "integer"}]}, "int | None"),
        ({"allOf": [{"type": "integer"}]}, "int"),
        ({"type": "float"}, "Any"),
        ({"$ref": "https://example.org/x"}, "Any"),
        ({"$ref": "#/nowhere"}, "Any"),
        (True, "Any"),
        (5, "Any"),
    ],
)
def test_types(schema: Any, text: str) -> None:
    source = render_toolset(_view({"properties": {"a": schema}, "required": ["a"]}))
    assert f"def act(a: {text}) -> Any:" in source


def test_recursion_becomes_a_typed_dict_that_names_itself() -> None:
    node = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
    }
    source = render_toolset(_view({}, {"$ref": "#/$defs/Node", "$defs": {"Node": node}}))
    assert "class Node(TypedDict):" in source
    assert "children: NotRequired[list[Node]]" in source
    loop = {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"}
    assert "-> Any:" in render_toolset(_view({}, loop))


def _two(first: Any, second: Any) -> str:
    """The module of two tools with the results given."""
    views = [_view({}, first, name="one"), _view({}, second, name="two")]
    return render_toolset(
        ToolsetView(name="box", description="", tools=tuple(view.tools[0] for view in views))
    )


def _behind(target: Any, **more: Any) -> Any:
    properties = {"item": {"$ref": "#/$defs/Item"}}
    return {"type": "object", "properties": properties, "$defs": {"Item": target, **more}}


def test_schemas_that_differ_behind_a_reference_are_two() -> None:
    source = _two(_behind({"type": "integer"}), _behind({"type": "string"}))
    assert "item: NotRequired[int]" in source
    assert "item: NotRequired[str]" in source
    assert "def one() -> OneResult:" in source
    assert "def two() -> TwoResult:" in source
    same = _two(_behind({"type": "integer"}), _behind({"type": "integer"}))
    assert "def two() -> OneResult:" in same


def test_recursive_schemas_that_differ_far_behind_a_reference_are_two() -> None:
    def tree(leaf: str) -> Any:
        far = {"type": "object", "properties": {"leaf": {"type": leaf}}}
        item = {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/Item"}, "far": {"$ref": "#/$defs/Far"}},
        }
        return _behind(item, Far=far)

    source = _two(tree("integer"), tree("string"))
    assert "leaf: NotRequired[int]" in source
    assert "leaf: NotRequired[str]" in source
    assert "next: NotRequired[Item]" in source
    assert "next: NotRequired[Item2]" in source
    assert _two(tree("integer"), tree("integer")).count("class ") == 3


def test_a_reference_names_its_target_as_a_web_address_does() -> None:
    schema = {"$ref": "#/$defs/A%20B~1C", "$defs": {"A B/C": {"type": "integer"}}}
    assert "-> int:" in render_toolset(_view({}, schema))


def test_a_schema_deeper_than_any_stack_becomes_any() -> None:
    schema: Any = {"type": "integer", "minimum": 1}
    for _ in range(20_000):
        schema = {"type": "array", "items": schema, "minItems": 1}
    deep = {"type": "object", "properties": {"a": schema}}
    assert "Any" in render_toolset(_view({"properties": {"a": schema}}, deep))


def test_keys_that_are_no_names_make_a_functional_typed_dict() -> None:
    schema = {"type": "object", "properties": {"user-id": {"type": "string"}, "from": {}}}
    source = render_toolset(_view({}, schema))
    assert (
        "TypedDict('ActResult', {'user-id': NotRequired['str'], 'from': NotRequired['Any']})"
        in source
    )


def test_defaults_are_constants_or_left_to_the_tool() -> None:
    properties = {
        "a": {"default": 5}, "b": {"default": "x"}, "c": {"default": None}, "d": {"default": [1]},
        "e": {"default": float("nan")}, "f": {"default": "\0"}, "g": {},
    }  # fmt: skip
    source = render_toolset(_view({"properties": properties}))
    line = next(line for line in source.splitlines() if line.startswith("def"))
    for part in ("a: Any=5", "b: Any='x'", "c: Any=None", "d: Any=_UNSET", "e: Any=_UNSET",
                 "f: Any=_UNSET", "g: Any=_UNSET"):  # fmt: skip
        assert part in line


def test_the_docstring_is_a_prompt() -> None:
    schema = {
        "properties": {
            "a": {"type": "integer", "minimum": 1, "maximum": 9, "description": "The\nnumber."},
            "b": {"type": "array", "items": {"type": "string", "minLength": 2}, "maxItems": 3},
        }
    }
    view = _view(
        schema, None, description="Act.", effect=Effect.DESTRUCTIVE, side_effects="Mails.",
        max_calls=3, version="2.1",
    )  # fmt: skip
    (function,) = [node for node in ast.parse(render_toolset(view)).body if hasattr(node, "args")]
    text = ast.get_docstring(function)
    for part in (
        "Act.", "a: The number. (at least 1, at most 9)", "b: at most 3 items, each at least 2",
        "Effect: destructive. May need approval.", "Side effects: Mails.", "3 calls", "2.1",
    ):  # fmt: skip
        assert part in text


def test_generated_packages_type_check(tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
    import retail

    folder = tmp_path / "tools"
    folder.mkdir()
    for name, source in {
        **render_catalog(Catalog.of(retail.retail)),
        "_bridge.py": render_bridge(),
    }.items():
        (folder / name).write_text(source)
    (tmp_path / "script.py").write_text(
        "from tools import retail\n"
        "product = retail.get_product_details('1')\n"
        "total: float = sum(one['price'] for one in product['variants'].values())\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--no-warn-return-any",
            "--no-error-summary",
            "script.py",
            "tools",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def _many(count: int, tools: int) -> Catalog:
    toolsets = []
    for number in range(count):
        box = Toolset(f"toolset_{number}", "A set of tools that does many different things.")
        for index in range(tools):
            box.add(
                lambda a: a, name=f"tool_{index}", effect="read", description="Do a thing. " * 9
            )
        toolsets.append(box)
    return Catalog.of(*toolsets)


@pytest.mark.parametrize(("count", "tools"), [(0, 0), (1, 1), (1, 40), (30, 5), (200, 1)])
@pytest.mark.parametrize("budget", [1_500, 6_000])
def test_the_description_is_bounded_whatever_the_number_of_tools(count, tools, budget) -> None:
    text = describe(
        _many(count, tools), limits={"time": "60 s"}, modules=["json"] * 50, budget=budget
    )
    assert len(text) <= budget
    assert "print" in text
    if count:
        assert "toolset_0" in text


def test_the_fixed_part_is_small() -> None:
    assert len(describe(_many(0, 0), limits={}, modules=[])) <= 600


def test_tools_may_be_named_like_anything_that_a_module_uses() -> None:
    box = Toolset("box")
    for name in ("call", "stream", "list", "str", "Any", "dict"):
        box.add(lambda names: names, name=name, effect="read")

    def read(names: list[str], more: dict[str, str] | None = None) -> list[str]: ...

    box.add(read, effect="read")
    source = render_catalog(Catalog.of(box))["box.py"]
    sent = []
    namespace: dict[str, Any] = {"_call": lambda *one: sent.append(one), "__name__": "tools.box"}
    body = "\n".join(line for line in source.splitlines() if "from ._bridge" not in line)
    exec(compile(body, "<stub>", "exec"), namespace)
    namespace["read"](["a"])
    assert sent == [("box.read", {"names": ["a"], "more": None})]


NAMES = st.text(max_size=10) | st.sampled_from(
    ["class", "from", "None", "mro", "self", "Any", "str", "list", "ſ", "s", "_x", "x", "x_", "a-b",
     "a_b", "_call", "_UNSET", "annotations", "TypedDict", "ActResult", "\u202e", '"""', "\\", "\n"]
)  # fmt: skip
HOSTILE_TEXT = TEXT | st.sampled_from(
    ['"' * 5, "\\" * 3, "x" * 2_000, "\n" * 100, "a\n    b", "\t"]
)
VALUES = st.none() | st.booleans() | st.integers() | HOSTILE_TEXT
HOSTILE_SCHEMA: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries(
        {"type": TYPES}, optional={"default": VALUES, "description": HOSTILE_TEXT}
    )
    | st.fixed_dictionaries({"enum": st.lists(VALUES, max_size=4)})
    | st.fixed_dictionaries({"const": VALUES})
    | st.just({"$ref": "#"}),
    lambda inner: (
        st.fixed_dictionaries({"anyOf": st.lists(inner, max_size=4)})
        | st.fixed_dictionaries({"type": st.just("array"), "items": inner})
        | st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
            optional={"description": HOSTILE_TEXT, "required": st.lists(NAMES, max_size=2)},
        )
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(NAMES, HOSTILE_TEXT, st.dictionaries(NAMES, HOSTILE_SCHEMA, max_size=4),
                  HOSTILE_SCHEMA),
        max_size=4,
    ),
    HOSTILE_TEXT,
)  # fmt: skip
def test_a_hostile_catalog_compiles_and_can_be_called(tools: Any, description: str) -> None:
    made: dict[str, Tool] = {}
    for name, text, properties, output in tools:
        try:
            member = member_name(name)
        except ConfigurationError:
            continue
        schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
        view = _view(schema, output, name=member, description=text, side_effects=text)
        made[member] = view.tools[0]
    view = ToolsetView(name="box", description=description, tools=tuple(made.values()))
    source = render_toolset(view)
    assert source == _unparsed(view)
    tree = ast.parse(source)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert [function.name for function in functions] == list(made)
    assert not set(source) & set("\0\x1b\u202e\u2028\r\x0c")
    namespace = _executed(source)
    for function in functions:
        given = [argument.arg for argument in function.args.args]
        calls = ", ".join(f"{name}={index}" for index, name in enumerate(given))
        script = f"from tools import box\nbox.{function.name}({calls})"
        gate.compile_script(script, gate=True, filename="<script>")
        sent = namespace[function.name](**{name: index for index, name in enumerate(given)})
        properties = made[function.name].spec.input_schema["properties"]
        assert set(sent) == set(properties)
        assert sorted(sent.values()) == list(range(len(properties)))


def _unparsed(view: ToolsetView) -> str:
    """Rendered anew, past the cache."""
    return render._render.__wrapped__(render._Key(view))


def _executed(source: str) -> dict[str, Any]:
    def send(tool: str, arguments: Any) -> Any:
        return arguments

    namespace: dict[str, Any] = {
        "_call": send, "_stream": send, "_UNSET": None, "__name__": "tools.box",
    }  # fmt: skip
    body = "\n".join(line for line in source.split("\n") if "from ._bridge" not in line)
    exec(compile(body, "<stub>", "exec"), namespace)
    return namespace


def test_deep_unions_and_a_thousand_tools_render() -> None:
    union: Any = {"type": "integer"}
    for index in range(200):
        union = {"anyOf": [union, {"enum": [f"v{index}"]}]}
    wide = {"anyOf": [{"enum": [f"v{index}"]} for index in range(3_000)]}
    one = _view({"properties": {"a": union, "b": wide}}, wide)
    ast.parse(render_toolset(one))
    tools = tuple(_view({"properties": {"a": {"type": "integer"}}}, {"type": "object",
                  "properties": {"id": {"type": "integer", "title": str(index)}}},
                  name=f"t{index}").tools[0] for index in range(1_000))  # fmt: skip
    source = render_toolset(ToolsetView(name="box", description="", tools=tools))
    assert source.count("def ") == 1_000
