"""What a script of a session leaves running: it stands still with the sandbox, and goes on with it."""

import threading
import time

import pytest
from kit.sandboxed import BACKENDS, ON_BOTH, left_since, traces

from limbeck import Executor, Toolset

LEAVES = """
import os, threading, time
from tools import box, BridgeClosed
def tick():
    while True:
        try:
            print("tick", box.count(), flush=True)
        except BridgeClosed:
            print("cut by the end", flush=True)
        time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()
if os.fork() == 0:
    os.setsid()
    while True:
        print("child", flush=True)
        time.sleep(0.01)
while not box.count() > 3:
    time.sleep(0.01)
"""


class Box:
    """Tools that count, and one that waits."""

    def __init__(self) -> None:
        self.count = 0
        self.waiting = threading.Event()
        self.toolset = box = Toolset("box")

        @box.tool(effect="read", name="count")
        def counted() -> int:
            """Count."""
            self.count += 1
            return self.count

        @box.tool(effect="read")
        async def wait() -> int:
            """Never answer."""
            import asyncio

            self.waiting.set()
            await asyncio.sleep(1_000)
            return 1

        @box.tool(effect="read")
        async def rows():
            """Never end."""
            import asyncio

            yield 1
            self.waiting.set()
            await asyncio.sleep(1_000)


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture
def session(where: str, box: Box):
    before = traces()
    with (
        Executor([box.toolset], backend=BACKENDS[where], gate="off") as executor,
        executor.session() as one,
    ):
        yield one
    assert not left_since(before)


@ON_BOTH
def test_what_is_left_is_counted_stands_still_and_goes_on(session, box: Box, where: str) -> None:
    first = session.execute_code(LEAVES)
    assert first.status == "ok", first.for_model()
    (warning,) = first.warnings
    assert warning.code == "threads_left"
    assert "2 threads or processes" in warning.message
    assert "stopped until the session's next script" in first.for_model()
    counted = box.count
    assert 0 <= first.calls.started - counted <= 1  # One may have been cut by the end.
    time.sleep(0.3)
    assert box.count == counted  # Not one call while it stands still.

    heard: list[str] = []
    second = session.execute_code(
        "n = box.count()\nwhile box.count() < n + 5: time.sleep(0.01)\nprint('main')",
        on_output=lambda _, text: heard.append(text),
    )
    assert second.status == "ok", second.for_model()
    # Both went on, and the thread's calls count here.
    assert "tick" in second.printout
    assert "child" in second.printout
    assert 0 <= second.calls.started - (box.count - counted) <= 1
    assert 0 <= second.calls.started - second.calls.succeeded <= 1
    assert [one.code for one in second.warnings] == ["threads_left"]

    stopped = session.execute_code(
        "import os, signal\nos.kill(0, signal.SIGSTOP)\nprint('go on?')", wall=1
    )
    assert stopped.status == "timeout"
    assert "state_gone" in [one.code for one in stopped.warnings]


@ON_BOTH
def test_who_waits_for_an_answer_at_the_end_is_told_that_it_is_over(
    session, box: Box, where: str
) -> None:
    script = """
import queue, threading, time
from tools import box, call_many
from limbeck.runtime.errors import BridgeClosed
told = queue.Queue()
def ask(call):
    try:
        call()
    except BridgeClosed as error:
        told.put(error.code)
calls = [box.wait, lambda: list(box.rows()), lambda: call_many(box.wait, [()] * 3)]
for call in calls:
    threading.Thread(target=ask, args=(call,), daemon=True).start()
box.count()
"""
    assert session.execute_code(script).status == "ok"
    result = session.execute_code("print(*(told.get(timeout=20) for _ in calls), box.count())")
    assert result.printout == "bridge_closed bridge_closed bridge_closed 2\n", result.for_model()
    assert [one.code for one in result.warnings] == []


@ON_BOTH
def test_threads_that_python_waits_for_are_waited_for_but_not_idle_pools(
    session, where: str
) -> None:
    script = """
import threading, time
from concurrent.futures import ThreadPoolExecutor
def late():
    time.sleep(0.1)
    print("late")
    threading.Thread(target=lambda: (time.sleep(0.1), print("later"))).start()
threading.Thread(target=late).start()
pool = ThreadPoolExecutor(2)
future = pool.submit(lambda: (time.sleep(0.3), print("pooled")))
print("end")
"""
    result = session.execute_code(script)
    lines = result.printout.split()
    assert sorted(lines) == ["end", "late", "later", "pooled"], result.for_model()
    assert lines.index("late") < lines.index("later")
    assert "1 thread or process" in result.warnings[0].message
    result = session.execute_code("print(pool.submit(pow, 2, 5).result())")
    assert result.printout == "32\n", result.for_model()
    result = session.execute_code("pool.shutdown()\nprint(len(threading.enumerate()))")
    assert (result.printout, result.warnings) == ("1\n", ())


@ON_BOTH
def test_interrupts_that_a_script_left_behind_do_not_break_the_next(session, where: str) -> None:
    script = """
import _thread, threading, time
ending = False
def interrupt():
    while not ending:
        _thread.interrupt_main()
        time.sleep(0.0005)
threading.Thread(target=interrupt, daemon=True).start()
time.sleep(1)
"""
    first = session.execute_code(script)
    assert first.error.type == "KeyboardInterrupt", first.for_model()
    for number in range(10):
        result = session.execute_code(f"x = {number}\nimport time\ntime.sleep(0.01)")
        assert result.error.type == "KeyboardInterrupt", result.for_model()
        assert not [one for one in result.warnings if one.code == "state_gone"]
    script = """
for _ in range(1_000):
    try:
        ending = True
        break
    except KeyboardInterrupt:
        pass
"""
    session.execute_code(script)
    result = session.execute_code("print(ending, x is not None)")
    while result.error is not None and result.error.type == "KeyboardInterrupt":
        result = session.execute_code("ending = True\nprint(ending, x is not None)")
    assert result.printout == "True True\n", result.for_model()
    assert result.sandbox.start == "kept"


@ON_BOTH
def test_a_child_that_comes_to_the_end_of_the_script_reports_nothing(session, where: str) -> None:
    result = session.execute_code(
        "import os\nx = 1\nchild = os.fork()\nprint('both' if child else 'c')"
    )
    assert result.status == "ok", result.for_model()
    assert "both" in result.printout
    # It may have been stopped before it printed, and goes on here.
    result = session.execute_code("if child: os.waitpid(child, 0)\nprint(x)")
    assert result.printout.removeprefix("c\n") == "1\n", result.for_model()
    assert result.warnings == ()


def test_idle_pools_of_processes_may_stay_too() -> None:
    before = traces()
    script = """
from concurrent.futures import ProcessPoolExecutor
pool = ProcessPoolExecutor(1)
slow = pool.submit(sum, range(3_000_000))
"""
    with (
        Executor(backend=BACKENDS["bubblewrap"], gate="off", limits={"wall": 20}) as executor,
        executor.session() as session,
    ):
        result = session.execute_code(script)
        assert result.status == "ok", result.for_model()
        assert [one.code for one in result.warnings] == ["threads_left"]
        result = session.execute_code("print(slow.done(), pool.submit(pow, 2, 3).result())")
        assert result.printout == "True 8\n", result.for_model()
        script = """
import threading, time
pool.shutdown()
while threading.active_count() > 1:  # The thread of its queue ends a moment later.
    time.sleep(0.01)
"""
        result = session.execute_code(script)
        assert (result.status, result.warnings) == ("ok", ()), result.for_model()
    assert not left_since(before)
