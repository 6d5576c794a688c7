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
    assert compared == sum(len(task["calls"]) for task in TASKS) > 200


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
