"""What a session keeps from one script to the next, on real sandboxes."""

import pytest
from kit.sandboxed import BACKENDS, ON_BOTH, left_since, traces

from limbeck import CodeTool, Executor, ToolContext, Toolset

shop = Toolset("shop", "A shop.")


@shop.tool(effect="read")
def price(name: str) -> int:
    """Tell a price."""
    return len(name)


@pytest.fixture
def session(where: str):
    before = traces()
    with (
        Executor([shop], backend=BACKENDS[where], gate="off") as executor,
        executor.session(user="ada") as one,
    ):
        yield one
    assert not left_since(before)


def ok(session, script: str, **options) -> str:
    """The printout of a script that must end well."""
    result = session.execute_code(script, **options)
    assert result.status == "ok", result.for_model()
    return result.printout


@ON_BOTH
def test_scripts_go_on_where_the_last_one_ended(session, where: str) -> None:
    first = session.execute_code(
        "import json\n"
        "from tools import shop\n"
        "x = {'a': 1}\n"
        "def inverse(n):\n"
        "    return 1 / n\n"
        "open('note', 'w').write('kept')\n"
    )
    assert (first.status, first.sandbox.start, first.warnings) == ("ok", "cold", ())
    assert first.session_id == session.id
    second = session.execute_code("print(json.dumps(x), shop.price('tea'), open('note').read())")
    assert second.printout == '{"a": 1} 3 kept\n'
    assert second.sandbox.start == "kept"
    assert second.execution_id != first.execution_id
    assert second.calls.started == 1
    assert second.usage.cpu < first.usage.cpu  # Its own alone, not the start's.

    # An error keeps the state, and shows the lines of whichever script they are in.
    failed = session.execute_code("y = 2\ninverse(0)\n")
    assert (failed.status, failed.exit_code, failed.warnings) == ("error", 1, ())
    assert (failed.error.line, failed.error.source) == (2, "inverse(0)")
    assert "  line 2, in <module>\n    inverse(0)" in failed.error.traceback
    assert (
        "  line 5 of the session's script 1, in inverse\n    return 1 / n" in failed.error.traceback
    )
    assert ok(session, "x['a'] + y") == "3\n"

    left = session.execute_code("z = 3\nimport sys\nsys.exit(4)")
    assert (left.status, left.exit_code) == ("error", 4)
    refused = session.execute_code("def (")
    assert (refused.status, refused.started) == ("refused", False)
    assert ok(session, "z\n# the end") == "3\n"

    # What a script leaves in a state in which no other could work is put right.
    for script in (
        "import sys, io\nsys.stdout = io.StringIO()\nprint('hidden')",
        "import sys\nsys.stdout.close()\nsys.stderr.close()",
        "import os\nos.close(1)\nos.close(2)",
        "import os\nos.dup2(os.open('/workspace/elsewhere', os.O_CREAT | os.O_RDWR), 1)\nprint('away')",
        "import sys\nsys.setrecursionlimit(60)",
        "import sys\nsys.argv = []\nsys.modules['__main__'] = None\n__name__ = 'x'",
        "import os\nos.chdir('/tmp')",
        "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.2)",
        "sum = None\nimport builtins\nprint = builtins.print",
    ):
        session.execute_code(script)
        assert ok(session, "import os, sys\nprint(__name__, sys.argv, os.getcwd(), x['a'])") == (
            "__main__ ['script.py'] /workspace 1\n"
        ), script
    assert ok(session, "import time\ntime.sleep(0.3)\n1") == "1\n"
    assert ok(session, "import asyncio\nawait asyncio.sleep(0)\nasync def f(): return 5") == ""
    assert ok(session, "await f()") == "5\n"


@ON_BOTH
def test_inputs_lie_beside_earlier_ones_and_printouts_can_be_read(session, where: str) -> None:
    ok(session, "print('first')\nearly = open('/data/a')", data={"a": b"one", "b": b"two"})
    assert ok(session, "print(open('/data/a').read() + open('/data/b').read())") == "onetwo\n"
    folder = {"a": b"three", "c": b"four"}
    script = "print(*(open('/data/' + n).read() for n in 'abc'), early.read())"
    assert ok(session, script, data=folder) == "three two four one\n"
    long = session.execute_code("print('#' * 200_000)")
    assert long.truncated.inside == "/data/printouts/4.txt"
    assert "the whole is in /data/printouts/4.txt for the next script" in long.for_model()
    script = """
import os
print(sorted(os.listdir('/data/printouts')), len(open('/data/printouts/4.txt').read()))
print(open('/data/printouts/1.txt').read(), end='')
try:
    open('/data/printouts/1.txt', 'w')
except OSError:
    print('refused')
"""
    names = ["1.txt", "2.txt", "3.txt", "4.txt"]
    assert ok(session, script) == f"{names} 200001\nfirst\nrefused\n"


def test_gated_scripts_share_their_names_and_are_each_vetted() -> None:
    with (
        Executor([shop], gate="on", backend=BACKENDS["bubblewrap"]) as executor,
        executor.session() as session,
    ):
        ok(
            session,
            "import json, re\n"
            "from tools import shop\n"
            "from concurrent.futures import ThreadPoolExecutor\n"
            "class Counter:\n"
            "    def __init__(self): self._n = 0\n"
            "    def _step(self): self._n += 1; return self._n\n"
            "counter = Counter()\n"
            "_private = 7\n",
        )
        assert ok(session, "print(counter._step(), _private, json.dumps([1]))") == "1 7 [1]\n"
        assert ok(session, "class More(Counter):\n    pass\nprint(More()._step())") == "1\n"
        # Work is taken in every script: the pool's exit handler never runs in between.
        for _ in range(2):
            script = "with ThreadPoolExecutor(2) as p: print(*p.map(shop.price, ['a', 'bb']))"
            assert ok(session, script) == "1 2\n"
        refused = session.execute_code("import socket")
        assert (refused.status, refused.started) == ("refused", False)
        refused = session.execute_code("json.codecs")
        assert refused.status == "error"
        assert "codecs" in refused.error.message
        denied = session.execute_code("open('/etc/passwd')")
        assert denied.error.type == "PermissionError"
        assert ok(session, "counter._step()") == "2\n"


def test_two_sessions_side_by_side_see_nothing_of_each_other() -> None:
    seen: list[tuple[str, str, str]] = []
    who = Toolset("who", "Whoever calls.")

    @who.tool(effect="read")
    def am_i(ctx: ToolContext) -> str:
        """Tell."""
        seen.append((ctx.user, ctx.session_id, ctx.execution_id))
        return ctx.user

    with (
        Executor([who], gate="off", backend=BACKENDS["bubblewrap"], warm=1) as executor,
        executor.session(user="ada") as one,
        executor.session(user="bob") as other,
    ):
        script = "from tools import who\nmine = who.am_i()\nopen('f', 'w').write(mine)"
        ok(one, script, data={"secret": b"ada's"})
        ok(other, script)
        assert ok(one, "print(mine, open('f').read())") == "ada ada\n"
        assert ok(other, "print(mine, open('f').read())") == "bob bob\n"
        ok(one, "only = 1")
        script = "import os\nprint('only' in globals(), os.listdir('/data'), who.am_i())"
        assert ok(other, script) == "False ['printouts'] bob\n"
        single = executor.execute_code("import os\nprint(os.listdir('.'), 'mine' in globals())")
        assert single.printout == "[] False\n"
        assert single.session_id is None
    assert {(user, session) for user, session, _ in seen} == {("ada", one.id), ("bob", other.id)}
    assert len({execution for _, _, execution in seen}) == 3


def test_a_code_tool_may_be_a_session_s() -> None:
    with (
        Executor([shop], gate="off", backend=BACKENDS["bubblewrap"]) as executor,
        executor.session() as session,
    ):
        code = CodeTool(executor, session=session)
        assert "still there in your next call" in code.description
        code.handle("execute_code", {"code": "x = 20"})
        assert code.as_tool()("print(x + 1)") == "21"
        assert "last as long as the script" in CodeTool(executor).description
