"""The demo does the main job, and the README's figures are the demo's."""

import json
import re
import subprocess
import sys
from pathlib import Path

from kit.sandboxed import BACKENDS, ON_BOTH

from limbeck import CodeTool, Executor

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "examples"))
import retail  # noqa: E402


def _run(name: str) -> str:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_audit_prints_the_products_and_what_it_cost() -> None:
    text = _run("retail_audit.py")
    products = re.findall(r"^(\w.*?) +(\d+) +(\d+)  [\d.]+-[\d.]+$", text, re.MULTILINE)
    assert [(name, int(stock), int(total)) for name, stock, total in products] == [
        ("Sneakers", 2, 5), ("Smartphone", 2, 9), ("Notebook", 3, 5), ("Yoga Mat", 3, 5),
        ("Indoor Security Camera", 3, 8), ("Bicycle", 4, 5), ("LED Light Bulb", 4, 6),
        ("Patio Umbrella", 4, 6),
    ]  # fmt: skip
    assert "51 tool calls" in text
    readme = (ROOT / "README.md").read_text()
    for row in ("in the context at the end", "input summed over requests", "requests to the model"):
        (line,) = [line for line in text.splitlines() if line.startswith(row)]
        figures = " | ".join(line.removeprefix(row).split())
        assert f"| {figures} |" in readme, line


def test_the_audit_s_definition_shows_the_fields_that_the_script_uses() -> None:
    """Else the count would be of a script that no model could write at first try."""
    with Executor([retail.retail], scopes={"shop:read"}) as executor:
        definition = json.dumps(CodeTool(executor).tool_spec("openai"))
    for field in ("variants", "available", "price"):
        assert f"{field}: " in definition


def test_hello() -> None:
    assert _run("hello.py") == "Cairo is the warmest\n"


@ON_BOTH
def test_the_command_prints_the_same_on_each_backend(where: str) -> None:
    script = (ROOT / "examples" / "audit_script.py").read_text()
    with Executor([retail.retail], scopes={"shop:read"}, backend=BACKENDS["bubblewrap"]) as one:
        wanted = one.execute_code(script).printout
    command = [
        sys.executable, "-m", "limbeck", "run", "examples/audit_script.py", "--backend", where,
        "--tools", "examples/retail.py", "--scope", "shop:read",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == wanted
    assert "Sneakers" in wanted
