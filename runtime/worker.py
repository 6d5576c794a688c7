"""The process that runs the script: connects while warm, waits for a job, runs it, reports.

In a session it runs one job after the other; `__main__` and everything else of the process stays,
as in a notebook. Everything expensive is imported before the job arrives. The script shares this
process, so that nothing here is kept from it: whatever this file reports, the host takes for the
script's own word.
"""

from __future__ import annotations

import gc
import linecache
import os
import sys
import threading
from collections.abc import Callable, Collection
from functools import partial
from importlib import import_module
from types import CodeType, ModuleType
from typing import Any

from . import between, gate, printout, report, toolbox
from .between import put_right
from .channel import Channel
from .codec import Job
from .errors import TOOL_ERRORS, BridgeClosed
from .jobs import Jobs
from .wire import BRIDGE_SOCKET, OUTPUT_SOCKET

CO_COROUTINE = 0x80
"""Of a code object whose top level awaits; `inspect` has the name, and much else."""

PRELOADED = (
    "asyncio", "collections", "concurrent.futures", "csv", "dataclasses", "datetime", "decimal",
    "itertools", "math", "random", "re", "statistics", "string", "textwrap", "time", "typing",
)  # fmt: skip
"""What scripts reach for: imported while a warm sandbox waits, never on the way to a job."""

FINE: tuple[int, dict[str, Any] | None] = (0, None)

STACK_BYTES = 512 * 1024
"""Of a thread that the script starts."""


def main(bridge: str = "/bridge", tools: str = "/tools") -> None:
    """Serve jobs from the socket in `bridge`, with the stubs in `tools`; never returns."""
    threading.stack_size(STACK_BYTES)
    printout.connect(f"{bridge}/{OUTPUT_SOCKET}")
    fingerprint = gate.fingerprint()
    try:
        channel = Channel(f"{bridge}/{BRIDGE_SOCKET}", fingerprint)
        job = channel.wait_for_job(idle=_preload)
    except BridgeClosed:
        os._exit(0)
    toolbox.install(tools, channel)
    module = _main_module(job.gate, job.open_modules)
    if job.gate:
        gate.watch_files()
    if job.keep:
        printout.hold()
    jobs = Jobs(channel, job, partial(_surely_run, module=module), partial(put_right, module))
    try:
        jobs.serve()
    except BridgeClosed:
        os._exit(0)


def _preload() -> None:
    for name in PRELOADED:
        import_module(name)
    gc.collect()
    gc.freeze()


def _surely_run(job: Job, module: ModuleType) -> tuple[int, dict[str, Any] | None]:
    """As `_run`. What an earlier script of the session raises here is told of this one."""
    try:
        return _run(job, module)
    except BaseException as error:
        name = report.file_name(job.number)
        return 1, between.surely(partial(report.of_exception, error, name))


def _run(job: Job, module: ModuleType) -> tuple[int, dict[str, Any] | None]:
    """Run the script; its exit code, and how it failed (None when it did not)."""
    name = report.file_name(job.number)
    between.limit_cpu(job.cpu_seconds, hard=not job.keep)
    try:
        compiled = gate.compile_script(
            job.script, gate=job.gate, open_modules=job.open_modules, filename=name
        )
    except gate.Refused as refusal:
        return 1, report.of_refusal(refusal.faults)
    except SyntaxError as error:
        return 1, report.of_exception(error, name)
    # Not splitlines(): the parser counts no form feed and no Unicode separator.
    lines = [f"{line}\n" for line in job.script.split("\n")]
    linecache.cache[name] = (len(job.script), None, lines, name)
    outcome = _outcome(lambda: _execute(compiled.code, module), name)
    settled = _outcome(between.wait_for_threads if job.keep else between.end_as_python_does, name)
    return outcome if outcome != FINE else settled


def _outcome(step: Callable[[], None], script: str) -> tuple[int, dict[str, Any] | None]:
    try:
        between.run_interruptible(step)
    except SystemExit as leaving:
        return between.surely(partial(_exit_code, leaving)), None
    except BaseException as error:
        return 1, between.surely(partial(report.of_exception, error, script))
    return FINE


def _main_module(gated: bool, open_modules: Collection[str] = ()) -> ModuleType:
    module = ModuleType("__main__")
    errors = {cls.__name__: cls for cls in TOOL_ERRORS.values()}
    scope = gate.script_globals(gate=gated, show=_show, extra=errors, open_modules=open_modules)
    module.__dict__.update(scope)
    sys.modules["__main__"] = module
    sys.argv = ["script.py"]
    return module


def _execute(code: CodeType, module: ModuleType) -> None:
    if code.co_flags & CO_COROUTINE:
        import asyncio

        coroutine = eval(code, module.__dict__)  # noqa: S307 - the script, in its sandbox
        asyncio.run(coroutine)
    else:
        exec(code, module.__dict__)  # noqa: S102 - the script, in its sandbox


def _show(value: object) -> None:
    if value is not None:
        print(value if isinstance(value, str) else repr(value))


def _exit_code(leaving: SystemExit) -> int:
    if leaving.code is None:
        return 0
    if isinstance(leaving.code, int):
        return leaving.code & 0xFF
    print(leaving.code, file=sys.stderr)
    return 1
