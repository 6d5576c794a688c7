"""The catalog: a snapshot, what scopes show of it, near names, fingerprints, sources."""

from pathlib import Path

import pytest

from limbeck import Catalog, ConfigurationError, Toolset
from limbeck.runtime.errors import UnknownTool
from limbeck.stubs.sources.python import load_toolsets


def _box(name: str = "box", **options: object) -> Toolset:
    box = Toolset(name, "Things.")
    box.add(lambda: None, name="open", effect="read")
    box.add(lambda: None, name="shut", effect="read", scopes={"a", "b"})
    return box


def test_a_snapshot_does_not_change() -> None:
    box = _box()
    catalog = Catalog.of(box)
    box.add(lambda: None, name="later", effect="read")
    assert len(catalog) == 2
    assert catalog.get("box.later") is None


def test_scopes_show_what_they_cover() -> None:
    catalog = Catalog.of(_box())
    for scopes, names in (
        ((), {"open"}), (("a",), {"open"}), (("a", "b"), {"open", "shut"}), (("*",), {"open", "shut"}),
    ):  # fmt: skip
        assert {tool.spec.name for tool in catalog.visible(scopes)} == names
    assert catalog.required_scopes() == {"a", "b"}
    hidden = Toolset("hidden")
    hidden.add(lambda: None, name="x", effect="read", scopes={"s"})
    assert [view.name for view in Catalog.of(hidden, _box()).visible(()).toolsets] == ["box"]


def test_unknown_tools_get_near_names_of_this_catalog_alone() -> None:
    catalog = Catalog.of(_box()).visible(())
    with pytest.raises(UnknownTool, match=r"did you mean box\.open"):
        catalog.tool("box.opn")
    assert "box.shut" not in catalog.near("box.shut")


def test_fingerprints_follow_the_contract() -> None:
    def make(description: str = "x", **options: object) -> str:
        box = Toolset("box")
        box.add(lambda: None, name="f", description=description, effect="read", **options)
        return Catalog.of(box).fingerprint

    assert make() == make()
    assert len({make(), make("y"), make(scopes={"a"}), make(timeout=5)}) == 4


def test_two_toolsets_of_one_name_are_named() -> None:
    with pytest.raises(ConfigurationError, match=r"'box'.*open.*and.*open"):
        Catalog.of(_box(), _box())


def test_toolsets_from_files_and_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "things_for_load.py").write_text(
        '"""Loose things."""\n'
        "from limbeck import Toolset, tool\n"
        "one = Toolset('one')\ntwo = Toolset('two')\n"
        "@one.tool(effect='read')\ndef f() -> int: return 1\n"
        "@tool(effect='read')\ndef loose() -> int: return 1\n"
    )
    path = str(tmp_path / "things_for_load.py")
    assert [box.name for box in load_toolsets(path)] == ["one", "two", "things_for_load"]
    assert [box.name for box in load_toolsets(f"{path}:two")] == ["two"]
    monkeypatch.syspath_prepend(str(tmp_path))
    assert [box.name for box in load_toolsets("things_for_load:one")] == ["one"]


@pytest.mark.parametrize(
    ("text", "name", "word"),
    [
        ("x = 1", "", "no Toolset"),
        ("from limbeck import Toolset\nbox = Toolset('box')", ":bx", "box"),
        ("box = 5", ":box", "is no Toolset"),
        ("import nowhere_at_all", "", "ModuleNotFoundError"),
        ("def f(:", "", "SyntaxError"),
        ("1 / 0", "", "ZeroDivisionError"),
    ],
)
def test_what_cannot_be_loaded_says_why(tmp_path: Path, text: str, name: str, word: str) -> None:
    path = tmp_path / "things.py"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=word):
        load_toolsets(f"{path}{name}")
