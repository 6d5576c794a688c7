"""The process that runs the script: connects while warm, waits for a job, runs it, reports.

Everything expensive is imported before the job arrives. The script shares this process, so that
nothing here is kept from it: whatever this file reports, the host takes for the script's own word.
"""

from __future__ import annotations

import atexit
import gc
import linecache
import os
import sys
import threading
from collections.abc import Callable, Collection
from importlib import import_module
from types import CodeType, ModuleType
from typing import Any

from . import gate, printout, report, toolbox
from .channel import Channel
from .codec import Job
from .errors import TOOL_ERRORS, BridgeClosed
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
    """Serve one job from the socket in `bridge`, with the stubs in `tools`; never returns."""
    threading.stack_size(STACK_BYTES)
    printout.connect(f"{bridge}/{OUTPUT_SOCKET}")
    fingerprint = gate.fingerprint()
    try:
        channel = Channel(f"{bridge}/{BRIDGE_SOCKET}", fingerprint)
        job = channel.wait_for_job(idle=_preload)
    except BridgeClosed:
        os._exit(0)
    toolbox.install(tools, channel)
    exit_code, error = _run(job)
    printout.flush()
    channel.done(exit_code, error)
    threading.Event().wait()  # The host kills the sandbox; until then threads may go on.


def _preload() -> None:
    for name in PRELOADED:
        import_module(name)
    gc.collect()
    gc.freeze()


def _run(job: Job) -> tuple[int, dict[str, Any] | None]:
    """Run the script; its exit code, and how it failed (None when it did not)."""
    try:
        compiled = gate.compile_script(
            job.script, gate=job.gate, open_modules=job.open_modules, filename=report.SCRIPT
        )
    except gate.Refused as refusal:
        return 1, report.of_refusal(refusal.faults)
    except SyntaxError as error:
        return 1, report.of_exception(error)
    # Not splitlines(): the parser counts no form feed and no Unicode separator.
    lines = [f"{line}\n" for line in job.script.split("\n")]
    linecache.cache[report.SCRIPT] = (len(job.script), None, lines, report.SCRIPT)
    module = _main_module(job.gate, job.open_modules)
    if job.gate:
        gate.watch_files()
    outcome = _outcome(lambda: _execute(compiled.code, module))
    settled = _outcome(_settle)
    return outcome if outcome != FINE else settled


def _outcome(step: Callable[[], None]) -> tuple[int, dict[str, Any] | None]:
    try:
        step()
    except SystemExit as leaving:
        return _exit_code(leaving), None
    except BaseException as error:
        return 1, report.of_exception(error)
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


def _settle() -> None:
    """Wait for the script's own threads and run its exit handlers, as Python does at its end."""
    # First what Python runs before it joins: idle pools are told to end.
    for ending in reversed(threading._threading_atexits):  # type: ignore[attr-defined]
        ending()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()


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
