"""One refusal, the same words wherever it is told; and the hello of another policy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from kit.sandboxed import BACKEND, execute

from limbeck import Executor, Toolset
from limbeck.runtime import gate
from limbeck.runtime.errors import SandboxUnavailable
from limbeck.sandbox.backend import Limits
from limbeck.sandbox.loop import own_loop
from limbeck.sandbox.warm import WarmSandbox

SCRIPT = """import requests, jsn
from json import load_s
x = ().__class__.__base__
def f(__globals__): return eval("1")
print(f)
"""
LINES = [
    "line 1, col 8: the module 'requests' is not available: there is no network here; call a tool "
    "from `tools`",
    "line 1, col 18: the module 'jsn' is not available: did you mean json?",
    "line 2, col 18: json.load_s is not available: did you mean loads or load?",
    "line 3, col 5: the attribute '__base__' is not available, it leads into the interpreter: use "
    "isinstance or issubclass",
    "line 4, col 7: the name '__globals__' belongs to the language: choose a name without the "
    "double underscores",
    "line 4, col 28: 'eval' is not available: use json.loads, int or float",
]


def cli(tmp_path, *arguments):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    command = [sys.executable, "-m", "limbeck", *arguments, str(path)]
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)


def first_lines(faults):
    return [str(fault).partition("\n")[0] for fault in faults]


def test_every_fault_says_where_what_and_what_instead():
    assert first_lines(gate.vet(SCRIPT)) == LINES


def test_the_executor_tells_the_same():
    result = execute(SCRIPT, gate="on")
    assert first_lines(result.error.faults) == LINES
    assert all(line in result.for_model() for line in LINES)
    assert first_lines(result.to_dict()["error"]["faults"]) == LINES


def test_the_command_line_tells_the_same(tmp_path):
    vetted = cli(tmp_path, "vet")
    assert [line for line in vetted.stdout.splitlines() if line.startswith("line ")] == LINES
    faults = json.loads(cli(tmp_path, "vet", "--json").stdout)["faults"]
    assert first_lines(fault["text"] for fault in faults) == LINES


def test_modules_are_listed_only_for_an_unknown_import():
    assert "the modules are " in str(gate.vet("import zzqqxx")[0])
    for source in ("import jsn", "import numpy", "x.__globals__", "eval('1')"):
        assert "the modules are " not in str(gate.vet(source)[0])


def test_another_policy_in_the_sandbox_is_told_at_hello():
    async def opened():
        await BACKEND.check()
        await WarmSandbox.open(BACKEND, Limits(), None, "another policy")

    with pytest.raises(SandboxUnavailable, match="the gate's policy inside the sandbox is not"):
        own_loop().submit(opened()).result()


def test_an_unknown_toolset_is_told_with_near_names():
    box = Toolset("orders")

    @box.tool(effect="read")
    def count() -> int:
        """How many there are."""
        return 1

    with Executor([box], backend=BACKEND) as executor:
        result = executor.execute_code("from tools import ordres")
        assert "did you mean orders?" in result.for_model()
        result = executor.execute_code("import tools.orders as o\nprint(o.count())")
        assert result.printout == "1\n"
