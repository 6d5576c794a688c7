"""The two faces of the executor: order of output, cancelling, loops, forks, and a killed host."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from kit.sandboxed import BACKEND, HIERARCHIES, execute, left_since, traces

from limbeck import AsyncExecutor, ConfigurationError, Executor, ToolContext, Toolset
from limbeck.sandbox.folders import base_folder

box = Toolset("box")
seen: list[object] = []


@box.tool(effect="read")
async def where() -> str:
    """Tell the thread that coroutines run in."""
    return threading.current_thread().name


@box.tool(effect="read")
def who(ctx: ToolContext) -> str:
    """Tell on whose behalf, and report progress."""
    seen.append(ctx)
    ctx.report_progress("half way")
    return f"{ctx.user} of {ctx.tenant}"


@box.tool(effect="read")
def rows(count: int) -> Iterator[dict[str, int]]:
    """Stream rows from a thread."""
    for number in range(count):
        yield {"number": number}


@box.tool(effect="read")
async def arows(count: int) -> AsyncIterator[int]:
    """Stream rows from a coroutine."""
    for number in range(count):
        if number % 1_000 == 0:
            await asyncio.sleep(0)
        yield number


@box.tool(effect="write")
async def hang() -> None:
    """Wait until cancelled."""
    try:
        await asyncio.sleep(3_600)
    except asyncio.CancelledError:
        seen.append("cancelled")
        raise


def test_output_comes_while_the_script_runs_and_before_the_result() -> None:
    script = """
import sys
from tools import box
print("one")
print("two", file=sys.stderr)
box.who()
print("three")
"""
    heard: list[tuple[str, str]] = []
    with Executor([box], backend=BACKEND) as executor:
        result = executor.execute_code(
            script, user="ada", tenant="acme", on_output=lambda *item: heard.append(item)
        )
    assert result.status == "ok", result.for_model()
    assert {("stderr", "two\n"), ("progress", "half way")} <= set(heard)
    assert "".join(text for stream, text in heard if stream == "stdout") == "one\nthree\n"


def test_a_handler_is_told_of_its_call_and_the_model_is_not() -> None:
    seen.clear()
    with Executor([box], backend=BACKEND) as executor:
        script = "from tools import box\nprint(box.who(), box.who())"
        result = executor.execute_code(script, user="ada", tenant="acme")
        assert "ctx" not in str(executor.catalog.tool("box.who").spec.input_schema)
    assert result.printout == "ada of acme ada of acme\n"
    first, second = seen
    assert first.execution_id == second.execution_id == result.execution_id
    assert first.idempotency_key != second.idempotency_key
    assert first.deadline > time.monotonic() - 60


def test_a_callback_that_raises_cancels_the_execution() -> None:
    class StopError(Exception):
        pass

    def stop(stream: str, text: str) -> None:
        raise StopError

    script = "import time\nprint('x')\ntime.sleep(100)"
    before = traces()
    with Executor(backend=BACKEND, gate="off") as executor, pytest.raises(StopError):
        executor.execute_code(script, on_output=stop)

    async def run() -> None:
        async with AsyncExecutor(backend=BACKEND, gate="off") as executor:
            await executor.execute_code(script, on_output=stop)

    with pytest.raises(StopError):
        asyncio.run(run())
    assert not left_since(before)


def test_coroutine_tools_run_on_the_caller_s_loop() -> None:
    script = "from tools import box\nprint(box.where())"
    assert execute(script, box).printout == "limbeck-tools\n"

    async def run() -> str:
        async with AsyncExecutor([box], backend=BACKEND) as executor:
            return (await executor.execute_code(script)).printout

    assert asyncio.run(run()) == f"{threading.current_thread().name}\n"


def test_generators_of_both_kinds_stream_to_the_script() -> None:
    script = """
from tools import box
print(sum(row["number"] for row in box.rows(20_000)))
print(sum(box.arows(20_000)))
for row in box.rows(10**9):
    if row["number"] == 5_000:
        break
stream = box.arows(10**9)
print(next(stream), next(stream))
"""
    result = execute(script, box)
    assert result.status == "ok", result.for_model()
    assert result.printout == "199990000\n199990000\n0 1\n"


def test_cancelling_the_await_kills_the_sandbox_first() -> None:
    seen.clear()

    async def run() -> None:
        async with AsyncExecutor([box], backend=BACKEND) as executor:
            task = asyncio.create_task(
                executor.execute_code("from tools import box\nprint(1)\nbox.hang()")
            )
            while not executor.audit_events() and not seen:
                await asyncio.sleep(0.05)
                if any("bwrap" in name for name in traces()):
                    await asyncio.sleep(0.5)
                    break
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            (event,) = executor.audit_events()
            assert (event.tool, event.outcome) == ("box.hang", "unknown")

    before = traces()
    asyncio.run(run())
    assert seen == ["cancelled"]
    assert not left_since(before)


def test_closing_cancels_what_runs() -> None:
    async def run() -> str:
        executor = AsyncExecutor(backend=BACKEND, gate="off")
        task = asyncio.create_task(executor.execute_code("import time\ntime.sleep(100)"))
        await asyncio.sleep(0.5)
        await executor.close()
        return (await task).status

    assert asyncio.run(run()) == "cancelled"


def test_many_executions_at_once() -> None:
    async def run() -> list[str]:
        async with AsyncExecutor([box], backend=BACKEND) as executor:
            script = "from tools import box\nprint(len(list(box.rows(100))))"
            results = await asyncio.gather(*(executor.execute_code(script) for _ in range(12)))
        assert {result.status for result in results} == {"ok"}
        return [result.sandbox.start for result in results]

    before = traces()
    starts = asyncio.run(run())
    places = 4 * (os.cpu_count() or 1)
    assert starts.count("queued") == max(12 - places, 0)
    assert not left_since(before)


def test_the_plain_face_refuses_a_running_loop() -> None:
    async def run() -> None:
        with Executor(backend=BACKEND) as executor:
            executor.execute_code("print(1)")

    with pytest.raises(ConfigurationError, match="AsyncExecutor"):
        asyncio.run(run())


def test_a_forked_process_is_told_to_make_its_own() -> None:
    with Executor(backend=BACKEND) as executor:
        executor.execute_code("print(1)")
        child = os.fork()
        if child == 0:
            try:
                executor.execute_code("print(1)")
            except ConfigurationError as error:
                os._exit(0 if "forked" in str(error) else 2)
            os._exit(1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_closed_executor_says_so() -> None:
    executor = Executor(backend=BACKEND)
    executor.close()
    executor.close()
    with pytest.raises(ConfigurationError, match="closed"):
        executor.execute_code("print(1)")


def test_wall_is_per_call_within_the_limit() -> None:
    with Executor(backend=BACKEND, gate="off", limits={"wall": 5}) as executor:
        assert executor.execute_code("while True: pass", wall=0.5).status == "timeout"
        with pytest.raises(ConfigurationError, match="wall"):
            executor.execute_code("print(1)", wall=6)


HOST = textwrap.dedent("""
    import signal, sys, threading
    # A shell that starts this in the background has it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from limbeck import Executor, Toolset
    box = Toolset("box")

    @box.tool(effect="read")
    def started() -> None:
        print("started", flush=True)

    executor = Executor([box], gate="off")
    executor.execute_code("from tools import box\\nbox.started()\\nwhile True: pass")
""")


def _start_host() -> subprocess.Popen[str]:
    host = subprocess.Popen([sys.executable, "-c", HOST], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    assert host.stdout.readline() == "started\n"
    return host


def _sandboxes_of(pid: int) -> list[str]:
    found = []
    for path in base_folder().iterdir():
        owner = path / "owner"
        if owner.exists() and owner.read_text().split()[0] == str(pid):
            found.append(path.name)
    return found


def test_a_killed_host_leaves_no_process_and_the_next_start_removes_the_rest() -> None:
    host = _start_host()
    (name,) = _sandboxes_of(host.pid)
    assert len(_processes_of_sandbox(name)) >= 2
    host.kill()
    host.wait()
    host.stdout.close()
    deadline = time.monotonic() + 10
    while _processes_of_sandbox(name) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _processes_of_sandbox(name)
    from limbeck.sandbox.bubblewrap import BubblewrapBackend

    asyncio.run(BubblewrapBackend().check())
    assert not (base_folder() / name).exists()
    parents = HIERARCHIES.parents.values() if HIERARCHIES is not None else ()
    assert not [parent for parent in parents if (parent / name).exists()]


def _processes_of_sandbox(name: str) -> list[str]:
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                if f"/{name}/" in (path / "mountinfo").read_text() and path.name != "self":
                    found.append((path / "cmdline").read_text())
            except OSError:
                continue
    return found


def test_an_interrupted_host_cleans_up_after_itself() -> None:
    host = _start_host()
    (name,) = _sandboxes_of(host.pid)
    host.send_signal(signal.SIGINT)
    host.wait(timeout=20)
    host.stdout.close()
    assert not (base_folder() / name).exists()
    assert not _processes_of_sandbox(name)


def test_a_program_that_forgets_to_close_leaves_nothing() -> None:
    program = "from limbeck import Executor\nprint(Executor().execute_code('print(7)').printout)"
    before = traces()
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "7"
    assert not left_since(before)
