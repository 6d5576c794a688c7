"""Packages that gated scripts import as they are: from a virtual environment, in both backends."""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import sys
from pathlib import Path

import pytest
from kit.sandboxed import ON_BOTH, execute

from limbeck import Executor
from limbeck.runtime import gate
from limbeck.runtime.errors import ConfigurationError
from limbeck.sandbox.backend import Limits
from limbeck.sandbox.bubblewrap import BubblewrapBackend
from limbeck.sandbox.docker import DockerBackend
from limbeck.serve import config

NAMES = ("numpy", "pandas", "pyarrow")
DISTRIBUTIONS = (*NAMES, "python-dateutil", "tzdata", "six")
MINOR = f"python{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment with the data packages alone: links to those of this one."""
    root = tmp_path_factory.mktemp("environment")
    site = root / "lib" / MINOR / "site-packages"
    site.mkdir(parents=True)
    for name in DISTRIBUTIONS:
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        for top in {file.parts[0] for file in distribution.files if file.parts[0] != ".."}:
            if top != "__pycache__":
                (site / top).symlink_to(distribution.locate_file(top))
    return str(root)


@pytest.fixture(scope="module")
def pipeline():
    path = Path(__file__).parent.parent / "examples/data_pipeline.py"
    spec = importlib.util.spec_from_file_location("data_pipeline", path)
    module = importlib.util.module_from_spec(spec)
    # Annotations of its tools are looked up by the module's name.
    sys.modules["data_pipeline"] = module
    spec.loader.exec_module(module)
    return module


@ON_BOTH
def test_data_pipeline(where, environment, pipeline, capsys):
    if where == "docker":
        asyncio.run(DockerBackend(packages=environment).build_image())
    pipeline.main(environment, where)
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert table == [
        ["orders", "total", "mean", "large"],
        ["region"],
        ["east", "25000", "1250000.0", "50.0", "2500"],
        ["north", "25000", "1245000.0", "49.8", "2400"],
        ["south", "25000", "1247500.0", "49.9", "2500"],
        ["west", "25000", "1252500.0", "50.1", "2500"],
        ["100000", "rows", "5000", "customers"],
    ]


def with_packages(script, environment, **options):
    backend = BubblewrapBackend(packages=environment, open_modules=NAMES)
    options = {"open_modules": NAMES, "limits": {"profile": "data"}, "gate": "on", **options}
    return execute(script, backend=backend, **options)


def test_imports_of_every_form(environment):
    script = """
import numpy, numpy.linalg
import numpy.linalg as la
from numpy import array, random as rnd
from numpy.linalg import norm
try: import polars
except ImportError: polars = None
print(la.norm([3, 4]) == norm([3, 4]) == numpy.linalg.norm([3.0, 4]), array([1]).shape)
print(type(rnd).__name__, polars, numpy.__version__.split(".")[0].isdigit())
class Series:
    _x = 1
print(Series._x, numpy.array([Series()])[0]._x)
"""
    result = with_packages(script, environment)
    assert result.printout == "True (1,)\nmodule None True\n1 1\n"


def test_threads_follow_the_cores(environment):
    script = "import os; print(os.environ['OMP_NUM_THREADS'], os.environ['OPENBLAS_NUM_THREADS'])"
    limits = {"profile": "data", "cpu": 1.5}
    assert with_packages(script, environment, gate="off", limits=limits).printout == "2 2\n"


def test_what_is_not_open_stays_closed(environment):
    result = with_packages("import pyarrow\nimport subprocess", environment)
    assert result.status == "refused"
    assert len(result.error.faults) == 1
    closed = with_packages("import pandas", environment, open_modules=["numpy"])
    assert closed.status == "refused"
    assert [str(fault) for fault in gate.vet("import pandas")] == list(closed.error.faults)


def test_no_module_is_open_by_default():
    assert gate.vet("import numpy")
    assert gate.vet("import numpy", open_modules=["numpy"]) == []
    assert gate.vet("from numpy import *", open_modules=["numpy"])
    assert gate.vet("import numpy.x as __builtins__", open_modules=["numpy"])


def test_the_language_stays_the_gate_s(environment):
    faults = gate.vet("import numpy as np\nnp.array.__globals__", open_modules=["numpy"])
    assert [fault.line for fault in faults] == [2]


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"open_modules": "numpy"}, "open_modules"),
        ({"open_modules": ["limbeck"]}, "open_modules"),
        ({"open_modules": ["a.b"]}, "open_modules"),
    ],
)
def test_names_are_checked(options, key):
    with pytest.raises(ConfigurationError) as caught:
        Executor(**options)
    assert caught.value.key == key


def problem_of(**options):
    return asyncio.run(BubblewrapBackend(**options).check())


def test_a_missing_environment_or_package_is_told(environment, tmp_path):
    assert "is no virtual environment" in problem_of(packages=str(tmp_path))
    missing = problem_of(packages=environment, open_modules=["no_such_package"])
    assert "has no package no_such_package" in missing
    assert "pip install no_such_package" in missing
    assert "`packages`" in problem_of(open_modules=["numpy"])
    assert "`packages`" in asyncio.run(DockerBackend(open_modules=["numpy"]).check())
    assert problem_of(open_modules=["zipfile"]) is None


def test_profile_data():
    limits = Limits().with_values({"profile": "data", "wall": 5.0})
    assert (limits.memory, limits.pids, limits.wall) == (1024**3, 128, 5.0)
    assert Limits().with_values({"profile": "data", "pids": 200}).pids == 200
    with pytest.raises(ConfigurationError, match="profile"):
        Limits().with_values({"profile": "big"})


def test_configuration(tmp_path):
    path = tmp_path / "limbeck.toml"
    path.write_text(
        'open_modules = ["numpy"]\npackages = "/srv/venv"\n[limits]\nprofile = "data"\nmemory = "2GiB"\n'
    )
    options = config.load(path).executor_options()
    assert options["open_modules"] == ["numpy"]
    assert options["packages"] == "/srv/venv"
    assert (options["limits"].memory, options["limits"].pids) == (2 * 1024**3, 128)
