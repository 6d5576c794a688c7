"""The bridge, attacked by a client that speaks raw HTTP/2 on the sandbox's socket.

A listener is one sandbox's: who connects to it is that sandbox, and before the job only limbeck's
own worker runs there. So a script's weapon is the worker's one connection, and what an attack is
tried for is this:

    a call without token, a wrong one, another execution's    test_a_message_without_its_token
    a second client, a second stream                          test_there_is_no_second_...
    a flood of calls; calls after the end                     test_a_flood_..., test_nothing_runs_...
    half-open connections, slow headers                       test_silent_connections (before the job)
    a large message, a declared one, a compressed one         test_a_message_that_is_too_...
    many items in one message                                 test_the_items_of_a_message
    random bytes, illegal frames                              test_what_is_no_http2
    settings, pings, resets, continuations, header bombs      test_floods_of_frames
    open streams, answers that nobody reads                   test_streams_..., test_answers_...
    other methods                                             test_there_is_one_method
    descriptors                                               test_many_connections_..., every test
                                                              here, and test_execution_hostile.py

Replacing the socket is tried in test_execution_probes.py. After each attack the listener of another
sandbox on the same loop still serves, no tool has run that should not, the host's memory has not
grown by more than a generous bound, and its descriptors are what they were.
"""

import asyncio
import gc
import gzip
import os
import struct
from collections import Counter
from contextlib import asynccontextmanager

import pytest
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from kit.bridged import bridged, in_thread, run
from kit.raw_http2 import PREFACE, Gone, RawClient

from limbeck import Toolset
from limbeck.bridge.budget import Budget
from limbeck.bridge.policy import Policy
from limbeck.runtime.wire import MAX_ITEMS, MAX_MESSAGE
from limbeck.runtime.wire_pb2 import FromSandbox, ToolCall

MIB = 1024 * 1024
MEMORY = 64 * MIB
"""What an attack may cost the host, and the client beside it in the same process."""

box = Toolset("box", "Things to call.")
ran: Counter[str] = Counter()


@box.tool(effect="read")
async def add(a: int) -> int:
    """Count."""
    ran["add"] += 1
    return a + 1


@box.tool(effect="read")
async def ping() -> int:
    """Serve the neighbour."""
    return 2


@box.tool(effect="read")
async def large() -> str:
    """Answer with a megabyte."""
    ran["large"] += 1
    return "x" * MIB


def _resident(name: str) -> int:
    """VmRSS, or VmHWM: the most since the kernel was last told to forget it."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def _forget_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _sockets() -> int:
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
        except FileNotFoundError:
            continue
    return count


async def _becomes(condition) -> None:
    while not condition():
        await asyncio.sleep(0.02)


class Attack:
    """The attacked bridge and its neighbour."""

    def __init__(self, bridge, other) -> None:
        self.bridge, self.other = bridge, other
        self.path = bridge.folder / "s"
        self.clients: list[RawClient] = []

    async def connect(self, **options) -> RawClient:
        client = await in_thread(lambda: RawClient(self.path, **options))
        self.clients.append(client)
        return client

    async def attach(self, **options) -> RawClient:
        """The worker's own connection, with its job."""
        client = await self.connect(**options)
        await in_thread(client.attach)
        await self.bridge.listener.attached
        self.bridge.execution.begin()
        self.bridge.listener.serve(self.bridge.execution, "pass", gate=False)
        await in_thread(client.job)
        return client

    async def neighbour(self) -> None:
        """Another sandbox's calls are served meanwhile."""
        assert await self.other.script(lambda c: c.call("box.ping", {})) == 2


@asynccontextmanager
async def attacked(*, memory: int = MEMORY, **options):
    """Two listeners, one to be attacked; then what must be as before."""
    ran.clear()
    async with bridged(box) as other:
        sockets = _sockets()
        async with bridged(box, attach=False, **options) as bridge:
            attack = Attack(bridge, other)
            await attack.neighbour()
            _forget_peak()
            resident = _resident("VmRSS")
            try:
                yield attack
                await attack.neighbour()
                grown = _resident("VmHWM") - resident
                assert grown < memory, f"{grown:,} bytes"
            finally:
                for client in attack.clients:
                    client.close()
        gc.collect()  # grpc keeps a pair of sockets as long as one of its servers is not collected
        await _becomes(lambda: gc.collect() is not None and _sockets() <= sockets)
        await attack.neighbour()


def test_an_ordinary_call_works() -> None:
    async def test() -> None:
        async with attacked() as attack:
            client = await attack.attach()
            result = await in_thread(lambda: client.answer(client.call("box.add", b'{"a":1}')))
            assert (result.value, ran["add"]) == (b"2", 1)

    run(test)


@pytest.mark.parametrize("token", [b"", b"x" * 32, b"x" * 31, b"x" * MIB, "another's"])
def test_a_message_without_its_token_ends_the_stream(token) -> None:
    async def test() -> None:
        async with attacked() as attack:
            client = await attack.attach()
            sent = token if isinstance(token, bytes) else attack.other.execution.token
            await in_thread(lambda: client.call("box.add", b'{"a":1}', token=sent))
            assert await in_thread(client.status) == "grpc 16"
            await attack.bridge.listener.ended.wait()
            assert "token" in attack.bridge.listener.fault
            assert not ran

    run(test)


def test_there_is_no_second_stream_nor_connection() -> None:
    async def test() -> None:
        async with attacked() as attack:
            early = await attack.connect()
            client = await attack.attach()
            for other, stream in ((client, 3), (early, 1)):
                other.open(stream)
                assert await in_thread(lambda c=other, s=stream: c.status(s)) == "grpc 7"
            with pytest.raises(FileNotFoundError):
                await attack.connect()
            # It is the script's doing, and costs the host: the sandbox is done with.
            assert attack.bridge.listener.ended.is_set()
            assert "second stream" in attack.bridge.listener.fault

    run(test)


def test_a_flood_of_calls_stays_in_its_budget() -> None:
    async def test() -> None:
        async with attacked(policy=Policy(budget=Budget(calls=1_000))) as attack:
            client = await attack.attach()

            def flood() -> int:
                for _ in range(40):
                    calls = [
                        ToolCall(id=next(client._ids), tool="box.add", arguments=b'{"a":1}')
                        for _ in range(500)
                    ]
                    client.say(calls=calls)
                return client.answer(20_000).id

            assert await in_thread(flood) == 20_000
            assert ran["add"] == 1_000

    run(test)


def test_calls_that_are_cancelled_at_once_stay_in_their_budget() -> None:
    async def test() -> None:
        async with attacked(policy=Policy(budget=Budget(calls=100))) as attack:
            client = await attack.attach()

            def flood() -> None:
                for number in range(1, 5_001):
                    one = ToolCall(id=number, tool="box.add", arguments=b'{"a":1}')
                    client.say(calls=[one], cancels=[number])
                client.say(calls=[ToolCall(id=9_999, tool="box.none")])
                client.answer(9_999)

            await in_thread(flood)
            assert ran["add"] <= 100

    run(test)


def test_nothing_runs_after_the_end() -> None:
    async def test() -> None:
        async with attacked() as attack:
            client = await attack.attach()
            attack.bridge.execution.revoke()
            await attack.bridge.listener.end_calls()

            def call() -> None:
                for _ in range(1_000):
                    client.call("box.add", b'{"a":1}')

            await in_thread(call)
            assert not ran

    run(test)


@pytest.mark.parametrize("slow", [False, True], ids=["silent", "slow headers"])
def test_silent_connections_stop_nobody(slow: bool) -> None:
    async def test() -> None:
        async with attacked() as attack:
            for _ in range(200):
                client = await attack.connect(preface=slow)
                if slow:
                    frame = HeadersFrame(1, client.block(), flags=["END_HEADERS"]).serialize()
                    client.send(frame[:10])
            client = await attack.attach()
            assert await in_thread(lambda: client.answer(client.call("box.add", b'{"a":1}')))

    run(test)


@pytest.mark.parametrize(("size", "status"), [(MAX_MESSAGE + 1, "grpc 3"), (64 * MIB, "grpc 8")])
def test_a_message_that_is_too_large_is_refused(size: int, status: str) -> None:
    async def test() -> None:
        async with attacked() as attack:
            client = await attack.attach()

            await in_thread(lambda: client.message(bytes(size)))
            assert await in_thread(client.status) == status
            await attack.bridge.listener.ended.wait()
            assert not ran

    run(test)


def test_a_message_that_is_only_declared_holds_nothing() -> None:
    async def test() -> None:
        async with attacked() as attack:
            client = await attack.attach()
            client.frame(DataFrame(1, struct.pack(">?I", False, 2**32 - 1) + bytes(1_000)))
            for _ in range(20):
                try:
                    client.frame(DataFrame(1, bytes(10)))
                except Gone:
                    break
                await asyncio.sleep(0.01)
            assert not ran

    run(test)


def test_a_compressed_message_is_not_expanded() -> None:
    async def test() -> None:
        bomb = gzip.compress(bytes(256 * MIB), 9)
        assert len(bomb) < MAX_MESSAGE
        async with attacked() as attack:
            client = await attack.connect()
            client.open(grpc_encoding="gzip")
            await in_thread(lambda: client.message(bomb, compressed=True))
            assert await in_thread(client.status) != "grpc 0"
            assert not attack.bridge.listener.attached.done()

    run(test)


@pytest.mark.parametrize("item", [b"\x1a\x00", b"\x22\x00", b"\x28\x01", b"\x0a\x00", b"\x78\x01"])
def test_the_items_of_a_message_are_counted_before_they_are_made(item: bytes) -> None:
    async def test() -> None:
        async with attacked(memory=16 * MIB) as attack:
            client = await attack.attach()
            start = FromSandbox(token=client.token).SerializeToString()
            data = start + item * ((MAX_MESSAGE - 100) // 2)
            await in_thread(lambda: client.message(data))
            assert await in_thread(client.status) == "grpc 3"
            assert f"{MAX_ITEMS:,}" in attack.bridge.listener.fault
            assert attack.bridge.execution.counts.started == 0

    run(test)


@pytest.mark.parametrize("number", [MAX_ITEMS, MAX_ITEMS + 1])
def test_the_number_of_items_is_exact(number: int) -> None:
    async def test() -> None:
        async with attacked() as attack:
            client = await attack.attach()
            await in_thread(lambda: client.say(cancels=range(1, number + 1)))
            if number > MAX_ITEMS:
                assert await in_thread(client.status) == "grpc 3"
            else:
                assert await in_thread(lambda: client.answer(client.call("box.add", b'{"a":1}')))

    run(test)


@pytest.mark.parametrize("data", [b"\xff" * 100, b"\x0b" * 5_000, b"\x1a\xff\xff\xff\xff\x7f"])
def test_what_is_no_message_ends_the_stream(data: bytes) -> None:
    async def test() -> None:
        async with attacked() as attack:
            client = await attack.attach()
            client.message(data)
            assert await in_thread(client.status) == "grpc 3"
            assert attack.bridge.listener.fault == "no message of this protocol"

    run(test)


def _frame(kind: int, stream: int, body: bytes = b"", flags: int = 0) -> bytes:
    return (
        struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body
    )


ILLEGAL = {
    "random bytes": os.urandom(100_000),
    "frame over its size": _frame(0, 1, bytes(1_000_000)),
    "even stream": _frame(1, 2, b"\x82", flags=4),
    "data on stream 0": _frame(0, 0, b"x"),
    "window overflow": _frame(8, 0, struct.pack(">I", 2**31 - 1)) * 3,
    "zero window increment": _frame(8, 0, bytes(4)),
    "padding over the frame": _frame(0, 1, b"\xff" + b"x" * 10, flags=8),
    "settings of a wrong size": _frame(4, 0, bytes(5)),
    "settings out of range": _frame(4, 0, struct.pack(">HI", 4, 2**32 - 1)),
    "unknown settings": _frame(4, 0, struct.pack(">HI", 0x7FFF, 1) * 100),
    "unknown frames": _frame(0xEE, 0, bytes(100)) * 1_000,
    "push promise": _frame(5, 1, bytes(4) + b"\x82", flags=4),
    "headers cut short": _frame(1, 3, b"\x82\x86\x84\x41\x8a", flags=4),
    "continuation of nothing": _frame(9, 1, b"x", flags=4),
    "goaway": _frame(7, 0, bytes(8)),
    "reset of what was never": _frame(3, 99, bytes(4)),
    "second preface": PREFACE,
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_what_is_no_http2_hurts_nobody_else(name: str) -> None:
    async def test() -> None:
        async with attacked() as attack:
            fresh = await attack.connect()
            bare = await attack.connect(preface=False)
            client = await attack.attach()
            for one in (bare, fresh, client):
                try:
                    await in_thread(lambda c=one: c.send(ILLEGAL[name]))
                except Gone:
                    continue
            await attack.neighbour()
            assert not ran

    run(test)


def _continuations(client: RawClient) -> None:
    client.frame(HeadersFrame(3, client.block()))
    for _ in range(20_000):
        client.frame(ContinuationFrame(3, b"\x00\x01a\x7f\x80\x7e" + bytes(16_000)))


def _header_bomb(client: RawClient) -> None:
    client.send(_frame(1, 3, client.block() + b"\x40\x01a\x7f\x81\x1e" + b"x" * 4_000))
    for _ in range(1_000):
        client.send(_frame(9, 3, b"\xbe" * 16_000))


def _resets(client: RawClient) -> None:
    for number in range(20_000):
        stream = 3 + 2 * number
        headers = HeadersFrame(stream, client.block(), flags=["END_HEADERS"])
        client.frame(headers, RstStreamFrame(stream, error_code=8))


FLOODS = {
    "settings": lambda client: client.send(
        SettingsFrame(0, settings={4: 65_535}).serialize() * 20_000
    ),
    "pings": lambda client: client.send(PingFrame(0, opaque_data=b"12345678").serialize() * 20_000),
    "window updates": lambda client: client.send(
        WindowUpdateFrame(1, window_increment=1).serialize() * 20_000
    ),
    "empty data": lambda client: client.send(DataFrame(1, b"").serialize() * 200_000),
    "rapid reset": _resets,
    "continuations": _continuations,
    "header bomb": _header_bomb,
}


@pytest.mark.parametrize("read", [True, False], ids=["read", "unread"])
@pytest.mark.parametrize("name", FLOODS)
def test_floods_of_frames_cost_nothing(name: str, read: bool) -> None:
    async def test() -> None:
        async with attacked() as attack:
            client = await attack.attach()
            client.socket.settimeout(5)

            def flood() -> None:
                try:
                    FLOODS[name](client)
                    if read:
                        client.answer(client.call("box.none"))
                except (Gone, TimeoutError):
                    pass

            await in_thread(flood)
            assert not ran

    run(test)


def test_streams_that_are_held_open_are_counted() -> None:
    async def test() -> None:
        async with attacked() as attack:
            client = await attack.attach()

            def hold() -> None:
                try:
                    for number in range(2_000):
                        client.open(3 + 2 * number)
                except Gone:
                    pass

            await in_thread(hold)
            assert not ran

    run(test)


def test_answers_that_nobody_reads_are_bounded() -> None:
    async def test() -> None:
        async with attacked(memory=128 * MIB) as attack:
            client = await attack.attach(window=65_535)
            client.say(
                calls=[ToolCall(id=n, tool="box.large", arguments=b"{}") for n in range(300)]
            )
            for _ in range(100):
                await asyncio.sleep(0.01)
                await attack.neighbour()
            assert ran["large"] < 100

    run(test)


@pytest.mark.parametrize(
    "path",
    [
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.health.v1.Health/Check",
        "/limbeck.bridge.v1.Bridge/Call",
        "/limbeck.bridge.v1.Bridge/../Bridge/Attach",
        "/",
        "*",
        "/" + "x" * 7_000,
    ],
)
def test_there_is_one_method(path: str) -> None:
    async def test() -> None:
        async with attacked() as attack:
            client = await attack.connect()
            client.open(1, path)
            assert await in_thread(client.status) == "grpc 12"
            assert not attack.bridge.listener.attached.done()

    run(test)


def test_many_connections_before_the_worker_s_leave_no_descriptor() -> None:
    async def test() -> None:
        async with attacked() as attack:
            for _ in range(300):
                await attack.connect(preface=False)
            await attack.attach()
            with pytest.raises(OSError):
                await attack.connect()

    run(test)
