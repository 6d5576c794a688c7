"""The fake backend: loud, chosen by nobody's configuration, and the real worker all the same."""

import pytest
from kit.sandboxed import left_since, traces

from limbeck import ConfigurationError, Executor, Toolset
from limbeck.sandbox.fake import FakeBackend, NoIsolationWarning

box = Toolset("box")


@box.tool(effect="read")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def _backend() -> FakeBackend:
    with pytest.warns(NoIsolationWarning, match="without any isolation"):
        return FakeBackend()


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("from tools import box\nprint(box.add(1, 2))", "ok"),
        ("1 / 0", "error"),
        ("while True: pass", "timeout"),
        ("import os\nos._exit(3)", "error"),
        ("import os\nos.kill(os.getpid(), 9)", "killed"),
        ("import os\nif os.fork() == 0:\n    import time\n    time.sleep(100)", "ok"),
    ],
)
def test_it_ends_as_a_sandbox_does(script: str, status: str) -> None:
    backend = _backend()
    before = traces()
    with Executor([box], backend=backend, gate="off", limits={"wall": 1.5}) as executor:
        assert executor.execute_code(script).status == status
    assert not left_since(before)


def test_it_has_no_name() -> None:
    with pytest.raises(ConfigurationError, match="no backend 'fake'"):
        Executor(backend="fake")
