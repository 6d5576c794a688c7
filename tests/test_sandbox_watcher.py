"""Where no cgroup can be made: the watcher on real sandboxes, and what could blind it."""

import contextlib
import os
from collections.abc import Iterator

import pytest
from kit.sandboxed import WATCHED, execute, left_since, traces

from limbeck.sandbox import watcher

FILES = """
import os
made = 0
while True:
    os.close(os.open(f"/tmp/{made}", os.O_CREAT))
    made += 1
"""


@pytest.fixture
def child() -> Iterator[int]:
    """A process that lives until the test's end."""
    reader, writer = os.pipe()
    pid = os.posix_spawn("/bin/cat", ["cat"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0)])
    os.close(reader)
    yield pid
    os.close(writer)
    os.waitpid(pid, 0)


def test_empty_files_count_as_memory() -> None:
    before = traces()
    result = execute(FILES, backend=WATCHED, limits={"memory": 128 << 20})
    assert result.status == "memory"
    assert not left_since(before)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core is all there is")
def test_a_script_has_so_many_cores_as_its_limit() -> None:
    script = "import os\nprint(len(os.sched_getaffinity(0)))"
    assert execute(script, backend=WATCHED, limits={"cpu": 1}).printout == "1\n"
    assert execute(script, backend=WATCHED, limits={"cpu": 1.5}).printout == "2\n"


@pytest.mark.parametrize("count", [1, 10_000])
def test_the_host_s_own_thread_keeps_its_cores(count: int) -> None:
    before = os.sched_getaffinity(0)
    with contextlib.suppress(ZeroDivisionError), watcher.pinned(count, first=7):
        assert len(os.sched_getaffinity(0)) == min(count, len(before))
        raise ZeroDivisionError
    assert os.sched_getaffinity(0) == before


def test_a_thread_that_ends_hides_no_process(child: int, monkeypatch) -> None:
    listed = os.listdir
    # The kernel gives out no such number: it stands for a thread that has ended since.
    monkeypatch.setattr(os, "listdir", lambda path: ["999999999", *listed(path)])
    assert child in watcher._children(os.getpid())


def test_a_watch_that_breaks_ends_its_sandbox(monkeypatch, caplog) -> None:
    def broken(*_: object) -> int:
        raise ZeroDivisionError("blind")

    monkeypatch.setattr(watcher.ProcessTree, "memory", broken)
    result = execute("import time\ntime.sleep(60)", backend=WATCHED)
    assert result.status in ("killed", "unavailable")
    assert "the watch of a sandbox broke" in caplog.text
