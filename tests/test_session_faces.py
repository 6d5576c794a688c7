"""A session's principal, scopes, budget and turns, through both faces."""

import asyncio
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.sandboxed import BACKEND, left_since, traces

from limbeck import (
    AsyncExecutor,
    ConfigurationError,
    Executor,
    Policy,
    Principal,
    ToolContext,
    Toolset,
)
from limbeck.bridge.budget import Budget, Spending
from limbeck.runtime.errors import BudgetExceeded
from limbeck.sandbox.fake import FakeBackend, NoIsolationWarning
from limbeck.stubs.tool import Effect

shop = Toolset("shop", "A shop.")
stock = Toolset("stock", "A stock.")


@shop.tool(effect="read", scopes={"shop:read"})
def price(name: str, ctx: ToolContext) -> str:
    """Tell a price."""
    return f"{ctx.user}/{ctx.tenant}"


@shop.tool(effect="write", scopes={"shop:write"})
def order(name: str) -> int:
    """Order."""
    return len(name)


@stock.tool(effect="read", scopes={"stock:read"})
def level(name: str) -> int:
    """Tell the level."""
    return len(name)


ALL = {"shop:read", "shop:write", "stock:read"}


def test_a_session_has_one_principal_and_some_of_the_scopes() -> None:
    ada = Principal(user="ada", tenant="acme")
    with (
        Executor([shop, stock], scopes=ALL, gate="off", backend=BACKEND) as executor,
        executor.session(principal=ada, scopes={"shop:read"}) as session,
    ):
        assert [view.name for view in session.catalog.toolsets] == ["shop"]
        result = session.execute_code(
            "import os, tools\n"
            "from tools import shop\n"
            "print(shop.price('x'), sorted(os.listdir('/tools')), dir(shop))"
        )
        assert result.printout == "ada/acme ['__init__.py', 'shop.py'] ['price']\n", (
            result.for_model()
        )
        result = session.execute_code("from tools import stock")
        assert result.error.code == "unknown_tool"
        # Without the stub it looks unknown too; the audit knows better.
        script = "from limbeck.runtime import toolbox\nimport tools._bridge as b\nb._call('stock.level', {'name': 'x'})"
        assert session.execute_code(script).error.code == "unknown_tool"
        assert executor.audit_events()[-1].note == "out of scope"
        assert (
            executor.execute_code("from tools import stock\nstock.level('abc')").printout == "3\n"
        )
        for wrong, message in (
            ({"scopes": {"admin"}}, "does not have 'admin'"),
            ({"scopes": "shop:read"}, "a single text"),
            ({"principal": ada, "user": "eve"}, "beside it"),
            ({"idle": 0}, "seconds"),
            ({"life": float("inf")}, "seconds"),
            ({"limits": {"memory": 1 << 40}}, "above"),
        ):
            with pytest.raises(ConfigurationError, match=message):
                executor.session(**wrong)
    with Executor([shop], scopes={"*"}, backend=BACKEND) as executor:
        assert executor.session(scopes={"shop:read"}).catalog.get("shop.order") is None
    with pytest.raises(ConfigurationError, match="closed"):
        executor.session()


def test_budgets_add_up_over_a_session_even_when_its_state_is_lost() -> None:
    policy = Policy(budget=Budget(writes=3, calls=100), session_budget=Budget(writes=4, calls=7))
    spend = """
from tools import shop
from limbeck.runtime.errors import BudgetExceeded
done = 0
try:
    for _ in range({}):
        shop.{}('ab')
        done += 1
except BudgetExceeded as error:
    print(error.message, end=' ')
print(done)
"""
    with (
        Executor([shop], scopes=ALL, gate="off", backend=BACKEND, policy=policy) as executor,
        executor.session() as session,
        executor.session() as other,
    ):
        first = session.execute_code(spend.format(9, "order"))
        assert first.printout == "the budget of writes is spent: 3 of 3 3\n"
        session.execute_code("import os\nos._exit(0)")
        second = session.execute_code(spend.format(9, "order"))
        assert second.printout == "the budget of writes of the whole session is spent: 4 of 4 1\n"
        third = session.execute_code(spend.format(9, "price"))
        assert third.printout == "the budget of calls of the whole session is spent: 7 of 7 3\n"
        assert other.execute_code(spend.format(2, "order")).printout == "2\n"
    alone = Policy(budget=Budget(writes=1))
    with (
        Executor([shop], scopes=ALL, gate="off", backend=BACKEND, policy=alone) as executor,
        executor.session() as session,
    ):
        assert session.execute_code(spend.format(1, "order")).printout == "1\n"
        assert "whole session" in session.execute_code(spend.format(1, "order")).printout


def _spent(one: Spending) -> tuple[int, ...]:
    return one.calls, one.writes, one.destructive, one.result_bytes


@given(
    st.lists(
        st.tuples(st.sampled_from(["call", "back", "bytes", "next"]), st.sampled_from(list(Effect)))
    )
)
def test_a_session_s_spending_is_the_sum_of_its_executions(steps) -> None:
    session = Spending(Budget(calls=9, writes=5, destructive=3, result_bytes=50))
    executions = [Spending(Budget(calls=6, writes=4, destructive=2, result_bytes=30), session)]
    taken: list[Effect] = []
    for step, effect in steps:
        one = executions[-1]
        before = _spent(one), _spent(session)
        try:
            if step == "call":
                one.reserve("t", effect)
                taken.append(effect)
            elif step == "back" and taken:
                one.give_back("t", taken.pop())
            elif step == "bytes":
                one.spend_result("t", 7)
            elif step == "next":
                executions.append(Spending(one.budget, session))
                taken.clear()
        except BudgetExceeded:
            assert (_spent(one), _spent(session)) == before
        assert tuple(map(sum, zip(*map(_spent, executions), strict=True))) == _spent(session)
        for spending in (*executions, session):
            budget = spending.budget
            most = (budget.calls, budget.writes, budget.destructive, budget.result_bytes)
            assert all(map(lambda used, limit: 0 <= used <= limit, _spent(spending), most))


def test_the_asynchronous_face_and_its_turns() -> None:
    async def run() -> None:
        loops = []
        box = Toolset("box")

        @box.tool(effect="read")
        async def here() -> int:
            """Run on the caller's loop."""
            loops.append(asyncio.get_running_loop())
            return len(loops)

        async with (
            AsyncExecutor([box], gate="off", backend=BACKEND, warm=1) as executor,
            executor.session(user="ada") as session,
        ):
            first = "from tools import box\nimport time\nx = []\ntime.sleep(0.2)\nx.append(1)"
            rest = [f"x.append(box.here())\nprint(len(x), {n})" for n in range(5)]
            results = await asyncio.gather(*map(session.execute_code, [first, *rest]))
            assert [one.status for one in results] == ["ok"] * 6
            assert [one.printout for one in results[1:]] == [f"{n + 2} {n}\n" for n in range(5)]
            assert set(loops) == {asyncio.get_running_loop()}
            await session.close()
            with pytest.raises(ConfigurationError, match="closed"):
                await session.execute_code("1")
            others = [executor.session() for _ in range(6)]
            results = await asyncio.gather(*(one.execute_code("x = 1") for one in others))
            assert {one.status for one in results} == {"ok"}
            results = await asyncio.gather(*(one.execute_code("print(x)") for one in others))
            assert {(one.printout, one.sandbox.start) for one in results} == {("1\n", "kept")}

    before = traces()
    asyncio.run(run())
    assert not left_since(before)


def test_a_session_blocks_no_loop_and_is_not_for_a_fork() -> None:
    with Executor(gate="off", backend=BACKEND) as executor:
        session = executor.session()
        session.execute_code("x = 1")

        async def inside() -> None:
            with pytest.raises(ConfigurationError, match="AsyncExecutor"):
                session.execute_code("1")
            with pytest.raises(ConfigurationError, match="AsyncExecutor"):
                executor.session()

        asyncio.run(inside())
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                session.execute_code("1")
            except ConfigurationError as error:
                os.write(write, str(error).encode())
            del session  # Its parent's sandbox is none of its business.
            os._exit(0)
        os.waitpid(child, 0)
        os.close(write)
        assert b"forked" in os.read(read, 1000)
        os.close(read)
        assert session.execute_code("print(x)").printout == "1\n"


def test_the_fake_backend_keeps_sessions_too() -> None:
    with pytest.warns(NoIsolationWarning):
        fake = FakeBackend()
    before = traces()
    with Executor(gate="off", backend=fake) as executor, executor.session() as session:
        session.execute_code("import os, threading, time\nx = os.getpid()")
        result = session.execute_code(
            "threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
            "print(x == os.getpid())"
        )
        assert (result.printout, result.sandbox.start) == ("True\n", "kept")
        assert [one.code for one in result.warnings] == ["threads_left"]
        assert session.execute_code("os._exit(3)").warnings[0].code == "state_gone"
        assert session.execute_code("print('x' in globals())").printout == "False\n"
    assert not left_since(before)
