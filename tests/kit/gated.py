"""Scripts under the gate and in plain CPython, both in one sandbox, each in a process of its own."""

import json
from collections.abc import Sequence
from functools import cache

from gate.snippets import Snippet
from kit.sandboxed import execute

BATCH = 40
"""Scripts that one sandbox runs, twice each."""

_DRIVER = """
import asyncio, inspect, json, os, shutil, sys
from limbeck.runtime import gate, report, worker

def clean():
    for folder in ("/workspace", "/tmp"):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            is_folder = os.path.isdir(path) and not os.path.islink(path)
            shutil.rmtree(path) if is_folder else os.remove(path)

def run(source, gated):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(write, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
        try:
            code = gate.compile_script(source, gate=gated).code
            module = worker._main_module(gated)
            if gated:
                gate.watch_files()
            worker._execute(code, module)
        except BaseException as error:
            print("[uncaught]", type(error).__name__, report._message(error))
        sys.stdout.flush()
        os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as output:
        printed = output.read()
    os.waitpid(child, 0)
    clean()
    return printed

print(json.dumps([[run(text, True), run(text, False)] for text in json.loads(TEXTS)]))
"""


@cache
def both_ways(scripts: tuple[Snippet, ...]) -> dict[str, tuple[str, str]]:
    """What each script prints, by name: under the gate, and in plain CPython."""
    found = {}
    for start in range(0, len(scripts), BATCH):
        batch = scripts[start : start + BATCH]
        answers = _run([script.source for script in batch])
        found.update({one.name: pair for one, pair in zip(batch, answers, strict=True)})
    return found


def _run(sources: Sequence[str]) -> list[tuple[str, str]]:
    driver = f"TEXTS = {json.dumps(sources)!r}\n{_DRIVER}"
    limits = {"output_kept": 4 * 1024 * 1024, "wall": 120.0, "pids": 200}
    result = execute(driver, gate="off", limits=limits)
    assert result.status == "ok", result.for_model()
    return [(gated, plain) for gated, plain in json.loads(result.printout)]
