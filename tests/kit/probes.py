"""Probes: small scripts that try a property from inside and say whether it holds.

A probe sets `fine` and `seen`. All probes of a file share one sandbox, one after the other, each in
a process of its own, so that what one does to itself (limits, descriptors, signals) the next does
not meet. `control` runs the same probes without a sandbox, to show that they can fail.
"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from kit.sandboxed import BACKENDS, execute

ROOT = Path(__file__).resolve().parents[2]

_HARNESS = """
import json, os, signal, sys, traceback
def run_probe(name, source):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        answer = [False, "no answer"]
        try:
            os.close(read)
            signal.alarm(20)
            names = dict(FACTS)
            exec(compile(source, name, "exec"), names)
            answer = [bool(names["fine"]), repr(names["seen"])[:2_000]]
        except BaseException:
            answer = [False, traceback.format_exc()[-1_500:]]
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as file:
        text = file.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else [False, f"the probe's process ended with {status}"]
answers = {name: run_probe(name, source) for name, source in PROBES.items()}
print(json.dumps(answers))
"""


def script_of(probes: dict[str, str], facts: dict[str, Any]) -> str:
    """One script that runs all of them and prints one line of JSON."""
    return f"FACTS = {facts!r}\nPROBES = {probes!r}\n{_HARNESS}"


class Batch:
    """The probes of one file, run once for each place."""

    def __init__(self, probes: dict[str, str], facts=dict) -> None:
        self._probes = probes
        self._facts = facts
        self._inside = functools.cache(self._run_inside)

    def check(self, name: str, where: str) -> None:
        """Assert that a property holds inside."""
        fine, seen = self._inside(where)[name]
        assert fine, seen

    def control(self, name: str, **facts: Any) -> None:
        """Assert that the probe fails where there is no sandbox."""
        script = script_of({name: self._probes[name]}, {**self._facts(), "WHERE": "", **facts})
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env={**os.environ, "SECRET": "x"},
        )
        fine, seen = json.loads(done.stdout.splitlines()[-1])[name]
        assert not fine, seen

    def _run_inside(self, where: str) -> dict[str, tuple[bool, str]]:
        script = script_of(self._probes, {**self._facts(), "WHERE": where})
        result = execute(script, backend=BACKENDS[where], limits={"output_kept": 1 << 20})
        assert result.status == "ok", result.for_model()
        return json.loads(result.printout.splitlines()[-1])
