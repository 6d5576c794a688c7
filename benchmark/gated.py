"""The language gate against plain CPython: its snippets, its vetting, its modules.

All in one interpreter of their own, so that nothing of the gate stays in this process. Its CPU time
is the value: it does nothing but compute, and wall time would be the machine's other work.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack
from typing import ClassVar

from ..runtime.errors import LimbeckError
from ..sandbox.bubblewrap import BubblewrapBackend
from .measures import Measure
from .rows import Sample

SNIPPETS = {
    "dict counting": """
counts = {}
for n in range(60_000):
    key = n * 7919 % 997
    counts[key] = counts.get(key, 0) + 1
total = sum(counts.values())
""",
    "rows filter and group": """
rows = [{"id": n, "group": n % 13, "amount": n % 101 / 4, "open": n % 3 == 0} for n in range(9_000)]
groups = {}
for row in rows:
    if row["open"] and row["amount"] > 3:
        groups.setdefault(row["group"], []).append(row["amount"])
means = {key: sum(found) / len(found) for key, found in sorted(groups.items())}
""",
    "objects": """
class Account:
    def __init__(self, owner):
        self.owner, self._balance, self.moves = owner, 0, 0
    def move(self, amount):
        self._balance += amount
        self.moves += 1
        return self._balance
accounts = [Account(n) for n in range(50)]
for n in range(30_000):
    account = accounts[n % 50]
    if account.move(n % 7 - 3) < 0:
        account.moves += 1
""",
    "sieve": """
limit = 60_000
prime = [True] * limit
for n in range(2, int(limit ** 0.5) + 1):
    if prime[n]:
        for k in range(n * n, limit, n):
            prime[k] = False
found = [n for n in range(2, limit) if prime[n]]
""",
    "text": """
line = "The quick, brown fox; jumps over - the lazy dog. "
words = []
for n in range(1_500):
    for word in line.replace(",", " ").split():
        words.append(word.strip(".;-").lower())
text = " ".join(sorted(word for word in words if word))
""",
}
"""CPU-bound scripts of the kinds that models write."""

_REPEATS = 5
"""Runs of one sample; the best counts."""

_CHILD = """
import json, sys, time
from limbeck.runtime import gate
from limbeck.runtime.gate import libraries

def best(step, repeats):
    found = []
    for _ in range(repeats):
        began = time.process_time()
        step()
        found.append(time.process_time() - began)
    return min(found)

def runs(source, gated):
    code = gate.compile_script(source, gate=gated).code
    return lambda: exec(code, gate.script_globals(gate=gated, show=print, extra={}))

def imports():
    load = libraries.importer()
    for name in gate.ALLOWED_MODULES:
        load(name)

STEPS = {
    "plain": lambda source: runs(source, False),
    "gated": lambda source: runs(source, True),
    "compile": lambda source: lambda: compile(source, "<script>", "exec"),
    "vet": lambda source: lambda: gate.vet(source),
    "import": lambda source: imports,
}
for line in sys.stdin:
    name, source, repeats = json.loads(line)
    print(json.dumps(best(STEPS[name](source), repeats)), flush=True)
"""


class _Gated(Measure):
    """A row whose two sides are steps of the child."""

    section = "gate"
    unit = "us"
    source: ClassVar[str] = ""
    steps: ClassVar[tuple[str, str]] = ("plain", "gated")

    def __init__(self, backend: BubblewrapBackend, stack: ExitStack) -> None:
        python, library = backend.vetting()
        self._child = stack.enter_context(
            subprocess.Popen(
                [str(python), "-s", "-S", "-P", "-c", _CHILD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={"PYTHONPATH": str(library), "PYTHONHASHSEED": "0"},
            )
        )
        stack.callback(self._child.kill)
        for step in self.steps:
            self._sample(step)

    def floor(self) -> Sample:
        """One round of plain CPython."""
        return self._sample(self.steps[0])

    def measure(self) -> Sample:
        """One round of the gate."""
        return self._sample(self.steps[1])

    def _sample(self, step: str) -> Sample:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps([step, self.source, _REPEATS]) + "\n")
        self._child.stdin.flush()
        answer = self._child.stdout.readline()
        if not answer:
            raise LimbeckError("the measured interpreter ended")
        seconds = float(answer)
        return Sample(seconds, seconds)


def _snippet(name: str, text: str) -> type[_Gated]:
    row = {"title": f"gate, {name}", "source": text, "goal": 1.05, "__doc__": "Run both ways."}
    return type("Snippet", (_Gated,), row)


class Vetting(_Gated):
    """Vetting a script of 60 lines, against Python's own compiler."""

    title = "gate, vetting 60 lines"
    goal = 15.0
    source = "\n".join("".join(2 * list(SNIPPETS.values())).strip().splitlines()[:60])
    steps = ("compile", "vet")


class Modules(_Gated):
    """Importing every module of the table, against 5 ms."""

    title = "gate, all modules (floor: 5 ms)"
    goal = 1.0
    steps = ("import", "import")

    def floor(self) -> Sample:
        """The most that it may take."""
        return Sample(0.005, 0.005)


GATED: tuple[type[Measure], ...] = (
    *(_snippet(name, text) for name, text in SNIPPETS.items()),
    Vetting,
    Modules,
)
