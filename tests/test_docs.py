"""Documents cannot rot: generated blocks are fresh, links lead somewhere, README's code runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import generate  # noqa: E402

DOCUMENTS = [*generate.documents(), *sorted((ROOT / "docs/decisions").glob("*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_generated_blocks_are_fresh(path: Path) -> None:
    text = path.read_text()
    assert generate.fill(text) == text, "run: make docs"


@pytest.mark.parametrize("path", [*DOCUMENTS, ROOT / "SECURITY.md"], ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_named_files_exist(path: Path) -> None:
    for name in re.findall(
        r"`((?:tests|runtime|stubs|bridge|sandbox|serve|docs)/[\w/.]+)`", path.read_text()
    ):
        assert (ROOT / name).exists(), name


def test_each_promise_names_tests_that_exist() -> None:
    text = (ROOT / "docs/security.md").read_text()
    (table,) = re.findall(r"<!-- promises.*?-->\n(.*?)<!-- /promises -->", text, re.DOTALL)
    for row in table.splitlines()[2:]:
        assert "`tests/" in row.split("|")[5], f"no test: {row}"
    named = re.findall(r"`(tests/\w+\.py)::([^`]+)`", text)
    assert len(named) > 50
    for path, name in named:
        source = (ROOT / path).read_text()
        assert f"def {name}(" in source or f'    "{name}": """' in source, f"{path}::{name}"
    probes = {name for _, name in named if not name.startswith("test_")}
    assert len(probes) > 30


def test_readme_is_short_and_its_code_runs(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    assert text.count("\n") <= 200
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (printed,) = re.findall(r"prints\n\n```\n(.*?)```", text, re.DOTALL)
    (tmp_path / "example.py").write_text(program)
    done = subprocess.run(
        [sys.executable, tmp_path / "example.py"], capture_output=True, text=True, check=True
    )
    assert done.stdout == printed
