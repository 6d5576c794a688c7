"""Calls over the real bridge: values, errors, threads, cancelling, the end of an execution."""

import asyncio
import threading
from collections.abc import Iterator

import kit.bridged
import pytest
from kit import grpc_channel
from kit.bridged import bridged, run

from limbeck import ToolFailed, Toolset
from limbeck.bridge.audit import Outcome
from limbeck.bridge.budget import Budget
from limbeck.bridge.places import MAX_STREAMS
from limbeck.bridge.policy import Policy
from limbeck.runtime.channel import Channel
from limbeck.runtime.errors import (
    ApprovalDenied,
    ApprovalRequired,
    BridgeClosed,
    BudgetExceeded,
    ConfigurationError,
    InvalidArguments,
    ResultInvalid,
    ResultTooLarge,
    ToolError,
    ToolTimeout,
    UnknownTool,
)


@pytest.fixture(params=["lean", "grpcio"], autouse=True)
def client(request, monkeypatch) -> None:
    """The sandbox's side: our own, and the library's as its reference."""
    release.clear()
    if request.param == "grpcio":
        monkeypatch.setattr(kit.bridged, "Channel", grpc_channel.Channel)


box = Toolset("box", "Things to call.")
removed: list[str] = []
release = threading.Event()


@box.tool(effect="read")
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@box.tool(effect="read")
async def later(text: str) -> str:
    """Answer from a coroutine."""
    await asyncio.sleep(0)
    return text


@box.tool(effect="write")
def store(data: bytes) -> dict[str, bytes]:
    """Give bytes back."""
    return {"data": data}


@box.tool(effect="destructive")
def remove(name: str) -> str:
    """Remove a thing."""
    removed.append(name)
    return name


@box.tool(effect="read", scopes={"box:secret"})
def secret(key: int) -> str:
    """Tell a secret."""
    return "s"


@box.tool(effect="read", approval="deny")
def closed() -> None:
    """Switched off by its author."""


@box.tool(effect="read")
def broken() -> int:
    """Raise something internal."""
    raise KeyError("password=hunter2")


@box.tool(effect="read")
def refusing() -> int:
    """Raise a structured error."""
    raise ToolFailed("not_shipped", "the order is in transit", hint="wait.")


@box.tool(effect="read")
def lying() -> int:
    """Answer against the schema."""
    return "many"  # type: ignore[return-value]


@box.tool(effect="read")
def large(size: int) -> str:
    """Answer with much."""
    return "x" * size


@box.tool(effect="read", timeout=0.2)
def stuck() -> None:
    """Wait until the test lets go."""
    release.wait(30)


@box.tool(effect="write", timeout=0.2)
async def stuck_write() -> None:
    """Wait for ever."""
    await asyncio.sleep(3600)


@box.tool(effect="read")
def leaving() -> None:
    """Try to end the process."""
    raise SystemExit(3)


@box.tool(effect="read")
async def giving_up() -> None:
    """Cancel itself."""
    raise asyncio.CancelledError


@box.tool(effect="read")
def rows(count: int, size: int = 10) -> Iterator[str]:
    """Stream rows."""
    for index in range(count):
        yield f"{index:0{size}d}"


def _one(function, *, code=None, **options):
    """Run one script against the bridge and return (value, bridge)."""
    seen = {}

    async def test() -> None:
        async with bridged(box, **options) as bridge:
            try:
                seen["value"] = await bridge.script(function)
            except ToolError as error:
                seen["error"] = error
            seen["bridge"] = bridge

    run(test)
    return seen


def _error(function, **options) -> ToolError:
    return _one(function, **options)["error"]


def test_values_come_back_typed() -> None:
    assert _one(lambda c: c.call("box.add", {"a": 2**60}))["value"] == 2**60 + 1
    assert _one(lambda c: c.call("box.later", {"text": "123"}))["value"] == "123"
    assert _one(lambda c: c.call("box.store", {"data": b"\x00\xff"}))["value"] == {
        "data": b"\x00\xff"
    }


def test_arguments_are_told_all_at_once() -> None:
    error = _error(lambda c: c.call("box.add", {"b": "2", "c": 3}))
    assert isinstance(error, InvalidArguments)
    text = str(error)
    assert all(name in text for name in ("a", "b", "c"))
    assert "the parameters of box.add are: a, b." in text


@pytest.mark.parametrize("name", ["box.ad", "nope.add", "", "x" * 100_000, "box.add\x00"])
def test_an_unknown_tool_is_named(name: str) -> None:
    error = _error(lambda c: c.call(name, {}))
    assert isinstance(error, UnknownTool)
    assert len(str(error)) < 1_000


def test_near_names_are_given() -> None:
    assert "box.add" in str(_error(lambda c: c.call("box.ad", {})))


def test_out_of_scope_looks_unknown_and_only_the_audit_knows() -> None:
    seen = _one(lambda c: c.call("box.secret", {"key": "wrong type"}))
    error = seen["error"]
    assert isinstance(error, UnknownTool)
    assert "secret" not in error.hint
    (event,) = seen["bridge"].audit.events()
    assert (event.outcome, event.note) == (Outcome.DENIED, "out of scope")
    assert _one(lambda c: c.call("box.secret", {"key": 1}), scopes=("box:secret",))["value"] == "s"


def test_destructive_needs_approval_unless_the_operator_named_it() -> None:
    removed.clear()
    assert isinstance(_error(lambda c: c.call("box.remove", {"name": "x"})), ApprovalRequired)
    assert removed == []
    policy = Policy(unconfirmed_destructive=frozenset({"box.remove"}))
    assert _one(lambda c: c.call("box.remove", {"name": "x"}), policy=policy)["value"] == "x"
    assert removed == ["x"]


def test_a_tool_that_its_author_switched_off_is_denied() -> None:
    assert isinstance(_error(lambda c: c.call("box.closed", {})), ApprovalDenied)


def test_internals_never_cross_the_bridge() -> None:
    error = _error(lambda c: c.call("box.broken", {}))
    assert error.code == "tool_failed"
    assert "hunter2" not in repr(vars(error))
    assert "KeyError" not in repr(vars(error))


def test_a_structured_error_does() -> None:
    error = _error(lambda c: c.call("box.refusing", {}))
    assert (error.error, error.message, error.hint) == (
        "not_shipped",
        "the order is in transit",
        "wait.",
    )
    assert error.tool == "box.refusing"


def test_a_result_that_breaks_its_schema_is_refused() -> None:
    assert isinstance(_error(lambda c: c.call("box.lying", {})), ResultInvalid)


def test_one_result_is_bounded() -> None:
    policy = Policy(budget=Budget(one_result=1_000))
    assert isinstance(
        _error(lambda c: c.call("box.large", {"size": 1_000}), policy=policy), ResultTooLarge
    )
    assert _one(lambda c: c.call("box.large", {"size": 998}), policy=policy)["value"]


def test_a_large_result_arrives() -> None:
    assert len(_one(lambda c: c.call("box.large", {"size": 10_000_000}))["value"]) == 10_000_000


def test_large_arguments_are_refused_on_both_sides() -> None:
    error = _error(lambda c: c.call("box.later", {"text": "x" * 2_000_000}))
    assert isinstance(error, InvalidArguments)
    assert "1,048,576" in str(error)


def test_calls_are_budgeted_and_a_denied_one_costs_nothing() -> None:
    def script(channel: Channel) -> int:
        for _ in range(5):
            with pytest.raises(ApprovalRequired):
                channel.call("box.remove", {"name": "x"})
        for _ in range(3):
            channel.call("box.add", {"a": 1})
        with pytest.raises(BudgetExceeded) as caught:
            channel.call("box.add", {"a": 1})
        return caught.value.limit

    assert _one(script, policy=Policy(budget=Budget(calls=3)))["value"] == 3


def test_a_slow_handler_is_a_timeout_and_its_thread_holds_nothing_up() -> None:
    try:
        assert isinstance(_error(lambda c: c.call("box.stuck", {})), ToolTimeout)
    finally:
        release.set()


def test_a_write_that_was_cut_has_an_unknown_outcome() -> None:
    seen = _one(lambda c: c.call("box.stuck_write", {}))
    assert isinstance(seen["error"], ToolTimeout)
    (event,) = seen["bridge"].audit.events()
    assert event.outcome is Outcome.UNKNOWN
    assert seen["bridge"].execution.counts.unknown_outcome == 1


@pytest.mark.parametrize("tool", ["box.leaving", "box.giving_up"])
def test_a_handler_cannot_take_the_bridge_down(tool: str) -> None:
    def script(channel: Channel) -> int:
        with pytest.raises(ToolError) as caught:
            channel.call(tool, {})
        assert caught.value.code == "tool_failed"
        return channel.call("box.add", {"a": 1})

    assert _one(script)["value"] == 2


def test_rows_stream_in_order_whatever_their_size() -> None:
    for count, size in ((0, 10), (1, 10), (5_000, 10), (40, 300_000)):
        seen = _one(lambda c, n=count, s=size: list(c.stream("box.rows", {"count": n, "size": s})))
        assert seen["value"] == [f"{index:0{size}d}" for index in range(count)]
        (event,) = seen["bridge"].audit.events()
        assert (event.outcome, event.rows) == (Outcome.OK, count)


def test_many_threads_share_the_stream() -> None:
    def script(channel: Channel) -> list[int]:
        values: list[int] = []

        def work(start: int) -> None:
            values.extend(channel.call("box.add", {"a": start + n}) for n in range(50))

        threads = [threading.Thread(target=work, args=(100 * n,)) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(values)

    expected = sorted(100 * n + m + 1 for n in range(20) for m in range(50))
    assert _one(script)["value"] == expected


def test_open_streams_are_counted_and_do_not_stop_calls() -> None:
    def script(channel: Channel) -> int:
        streams = [channel.stream("box.rows", {"count": 100_000}) for _ in range(MAX_STREAMS)]
        for stream in streams:
            next(stream)
        with pytest.raises(BudgetExceeded, match="open streams"):
            next(channel.stream("box.rows", {"count": 1}))
        value = channel.call("box.add", {"a": 1})
        for stream in streams:
            stream.close()
        return value

    seen = _one(script)
    assert seen["value"] == 2
    denied = [event for event in seen["bridge"].audit.events() if event.outcome is Outcome.DENIED]
    assert [event.code for event in denied] == ["budget_exceeded"]
    assert seen["bridge"].execution.spending.calls == MAX_STREAMS + 1


def test_nothing_is_served_after_the_end() -> None:
    async def test() -> None:
        async with bridged(box) as bridge:
            bridge.execution.revoke()
            with pytest.raises(BridgeClosed):
                await bridge.script(lambda c: c.call("box.add", {"a": 1}))
            await bridge.listener.close()
            with pytest.raises(BridgeClosed):
                await bridge.script(lambda c: c.call("box.add", {"a": 1}))

    run(test)


def test_a_closed_tool_loop_is_a_failed_tool() -> None:
    async def test() -> None:
        loop = asyncio.new_event_loop()
        loop.close()
        async with bridged(box, tool_loop=loop) as bridge:
            with pytest.raises(ToolError) as caught:
                await bridge.script(lambda c: c.call("box.later", {"text": "x"}))
            assert caught.value.error == "loop_closed"

    run(test)


def test_the_stream_outlives_a_consumer_that_stops_early() -> None:
    async def test() -> None:
        async with bridged(box) as bridge:

            def some(channel: Channel) -> str:
                stream = channel.stream("box.rows", {"count": 10**9})
                first = next(stream)
                stream.close()
                return first

            assert await bridge.script(some) == "0000000000"
            await _until(lambda: bool(bridge.audit.events()))
            assert await bridge.script(lambda c: c.call("box.add", {"a": 1})) == 2

    run(test)


async def _until(condition) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_budgets_are_checked_when_made() -> None:
    with pytest.raises(ConfigurationError, match=r"budget\.calls"):
        Budget(calls=-1)


odd = Toolset("odd")


@odd.tool(effect="read")
async def exiting() -> None:
    """End the process from a coroutine."""
    raise SystemExit(3)


@odd.tool(effect="read")
def exiting_rows() -> Iterator[int]:
    """End the process from a generator."""
    yield 1
    raise GeneratorExit


@odd.tool(effect="read")
def failing_with_bytes() -> None:
    """Raise an error that is no JSON."""
    raise ToolFailed("x", "y", details={"data": b"bytes"})


@odd.tool(effect="write")
def large_write() -> str:
    """Write, and answer too much."""
    return "x" * 100


@odd.tool(effect="read", max_calls=2)
def seldom() -> int:
    """May be called twice."""
    return 1


def test_nothing_that_a_handler_raises_is_left_without_an_answer() -> None:
    async def test() -> None:
        async with bridged(odd, box) as bridge:
            for function in (
                lambda c: c.call("odd.exiting", {}),
                lambda c: list(c.stream("odd.exiting_rows", {})),
                lambda c: c.call("odd.failing_with_bytes", {}),
            ):
                with pytest.raises(ToolError):
                    await bridge.script(function)
            assert await bridge.script(lambda c: c.call("box.later", {"text": "x"})) == "x"

    run(test)


def test_a_write_that_ran_is_never_told_as_denied() -> None:
    async def test() -> None:
        async with bridged(odd, policy=Policy(budget=Budget(result_bytes=50))) as bridge:
            with pytest.raises(BudgetExceeded):
                await bridge.script(lambda c: c.call("odd.large_write", {}))
            (event,) = bridge.audit.events()
            assert event.outcome is Outcome.UNKNOWN

    run(test)


def test_a_tool_s_own_number_of_calls_holds() -> None:
    async def test() -> None:
        async with bridged(odd) as bridge:
            for _ in range(2):
                await bridge.script(lambda c: c.call("odd.seldom", {}))
            with pytest.raises(BudgetExceeded, match="calls of this tool"):
                await bridge.script(lambda c: c.call("odd.seldom", {}))

    run(test)
