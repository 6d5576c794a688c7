"""The worker's own HTTP/2 against stock gRPC servers, sync and asyncio, with the options they have."""

import asyncio
import concurrent.futures
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import grpc.aio
import pytest
from kit.raw_server import Outcome

from limbeck.runtime.channel import Channel
from limbeck.runtime.errors import BridgeClosed
from limbeck.runtime.wire import ATTACH, MAX_ANSWER, MAX_MESSAGE
from limbeck.runtime.wire_pb2 import FromHost, FromSandbox, Job, ToolResult

LIMITS = [
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_ANSWER),
]

OPTIONS: dict[str, list[tuple[str, int]]] = {
    "as they come": [],
    "small frames": [("grpc.http2.max_frame_size", 16_384)],
    "large frames": [("grpc.http2.max_frame_size", 16_777_215)],
    "a small window": [("grpc.http2.lookahead_bytes", 1024), ("grpc.http2.bdp_probe", 0)],
    "a large window": [("grpc.http2.lookahead_bytes", 1 << 24), ("grpc.http2.bdp_probe", 0)],
    "a window that is measured": [("grpc.http2.bdp_probe", 1)],
    "pings": [("grpc.keepalive_time_ms", 50), ("grpc.http2.max_pings_without_data", 0)],
    "small writes": [("grpc.http2.write_buffer_size", 1)],
}


def _handled(message: FromSandbox) -> tuple[list[ToolResult], grpc.StatusCode | None]:
    """What a message is answered with, and the status that ends the stream."""
    results, status = [], None
    for call in message.calls:
        if call.tool == "end":
            status = getattr(grpc.StatusCode, call.arguments.decode().split('"')[3])
        elif call.tool == "large":
            results.append(ToolResult(id=call.id, value=b'"%s"' % (b"x" * (16 << 20))))
        elif call.tool == "many":
            results += [ToolResult(id=call.id, stream=True, rows=[b"%d" % n]) for n in range(3000)]
            results.append(ToolResult(id=call.id, stream=True, last=True))
        elif call.tool != "never":
            results.append(ToolResult(id=call.id, value=call.arguments))
    return results, status


def _job() -> FromHost:
    return FromHost(job=Job(token=b"t", max_inflight=64, max_arguments=1 << 20))


class Servicer:
    """One of both kinds; a result a message."""

    def __init__(self, *, silent: bool = False) -> None:
        self._silent = silent
        """Ends before the first message: trailers alone."""

    def sync(self, requests: Any, context: Any) -> Iterator[FromHost]:
        if self._silent:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "no")
        yield _job()
        for message in requests:
            results, status = _handled(message)
            for result in results:
                yield FromHost(results=[result])
            if status is grpc.StatusCode.CANCELLED:
                context.cancel()
            elif status is not None:
                context.abort(status, "as told: \u00e9\n%")

    async def aio(self, requests: Any, context: Any) -> None:
        if self._silent:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "no")
        await context.write(_job())
        async for message in requests:
            results, status = _handled(message)
            for result in results:
                await context.write(FromHost(results=[result]))
            if status is not None:
                await context.abort(status, "as told: \u00e9\n%")


def _handlers(behaviour: Any) -> Any:
    _, service, method = ATTACH.split("/")
    handler = grpc.stream_stream_rpc_method_handler(
        behaviour,
        request_deserializer=FromSandbox.FromString,
        response_serializer=FromHost.SerializeToString,
    )
    return grpc.method_handlers_generic_handler(service, {method: handler})


class Serving:
    """A server, where it listens, and how it stops."""

    def __init__(
        self, kind: str, address: str, options: list[tuple[str, int]], silent: bool
    ) -> None:
        self._address = address
        self._options = [*LIMITS, *options]
        self._servicer = Servicer(silent=silent)
        self._stack = contextlib.ExitStack()
        (self._open_sync if kind == "sync" else self._open_aio)()

    def stop(self, grace: float | None) -> None:
        self._stop(grace)

    def close(self) -> None:
        self._stop(None)
        self._stack.close()

    def _open_sync(self) -> None:
        pool = self._stack.enter_context(concurrent.futures.ThreadPoolExecutor(4))
        server = grpc.server(pool, options=self._options)
        server.add_generic_rpc_handlers((_handlers(self._servicer.sync),))
        server.add_insecure_port(self._address)
        server.start()
        self._stop = lambda grace: server.stop(grace).wait()

    def _open_aio(self) -> None:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()

        async def opened() -> Any:
            server = grpc.aio.server(options=self._options)
            server.add_generic_rpc_handlers((_handlers(self._servicer.aio),))
            server.add_insecure_port(self._address)
            await server.start()
            return server

        server = asyncio.run_coroutine_threadsafe(opened(), loop).result(10)
        self._stop = lambda grace: asyncio.run_coroutine_threadsafe(
            server.stop(grace), loop
        ).result(10)

        def end() -> None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(10)
            loop.close()

        self._stack.callback(end)


@contextlib.contextmanager
def served(
    kind: str, options: list[tuple[str, int]] | None = None, *, silent: bool = False
) -> Iterator[tuple[Channel, Serving]]:
    with tempfile.TemporaryDirectory(prefix="lb-") as folder:
        address = f"unix:{folder}/s"
        serving = Serving(kind, address, options or [], silent)
        channel = Channel(address, "gate")
        try:
            if not silent:
                Outcome(channel.wait_for_job).get()
            yield channel, serving
        finally:
            channel.close()
            serving.close()


BOTH = pytest.mark.parametrize("kind", ["sync", "aio"])


@BOTH
@pytest.mark.parametrize("name", OPTIONS)
def test_messages_of_every_size_both_ways(kind: str, name: str) -> None:
    with served(kind, OPTIONS[name]) as (channel, _):
        rows = Outcome(lambda: list(channel.stream("many", {})))
        large = Outcome(lambda: channel.call("large", {}))
        texts = ["x" * size for size in (0, 1, 16_370, 16_384, 65_535, 300_000, 1_000_000)]
        echoes = [Outcome(lambda t=t: channel.call("echo", {"t": t})["t"]) for t in texts]
        for number in range(300):
            assert channel.call("echo", {"n": number}) == {"n": number}
        assert [outcome.get() for outcome in echoes] == texts
        assert rows.get() == list(range(3000))
        assert large.get() == "x" * (16 << 20)


CODES = [code.name for code in grpc.StatusCode if code is not grpc.StatusCode.OK]


@BOTH
@pytest.mark.parametrize("code", CODES)
def test_each_status_ends_the_stream_after_its_messages(kind: str, code: str) -> None:
    with served(kind) as (channel, _):
        assert channel.call("echo", {"n": 1}) == {"n": 1}
        waiting = [Outcome(lambda: channel.call("never", {})) for _ in range(3)]
        waiting.append(Outcome(lambda: channel.call("end", {"code": code})))
        for outcome in waiting:
            with pytest.raises(BridgeClosed):
                outcome.get()


@BOTH
def test_trailers_alone(kind: str) -> None:
    with served(kind, silent=True) as (channel, _), pytest.raises(BridgeClosed):
        Outcome(channel.wait_for_job).get()


@BOTH
def test_a_graceful_stop_lets_the_stream_go_on(kind: str) -> None:
    with served(kind) as (channel, serving):
        stopping = Outcome(lambda: serving.stop(1.0))
        while stopping.is_running:  # GOAWAY, a ping, GOAWAY; then the grace is over.
            try:
                assert channel.call("echo", {"n": 1}) == {"n": 1}
            except BridgeClosed:
                break
        with pytest.raises(BridgeClosed):
            channel.call("never", {})
        stopping.get()


@BOTH
def test_a_connection_that_grows_old(kind: str) -> None:
    options = [("grpc.max_connection_age_ms", 200), ("grpc.max_connection_age_grace_ms", 600)]
    with served(kind, options) as (channel, _):
        waiting = Outcome(lambda: channel.call("never", {}))
        while waiting.is_running:
            with contextlib.suppress(BridgeClosed):
                assert channel.call("echo", {"n": 1}) == {"n": 1}
        with pytest.raises(BridgeClosed):
            waiting.get()


@BOTH
def test_a_server_that_stops_at_once(kind: str) -> None:
    with served(kind) as (channel, serving):
        waiting = [Outcome(lambda: channel.call("never", {})) for _ in range(5)]
        assert channel.call("echo", {"n": 1}) == {"n": 1}
        serving.stop(None)
        for outcome in waiting:
            with pytest.raises(BridgeClosed):
                outcome.get()


_SERVER = """
import sys, threading
sys.path[:0] = [sys.argv[1]]
import test_runtime_http2_grpc as here
serving = here.Serving("sync", sys.argv[2], [], False)
print("ready", flush=True)
threading.Event().wait()
"""


def test_a_server_that_is_killed() -> None:
    with tempfile.TemporaryDirectory(prefix="lb-") as folder:
        address = f"unix:{folder}/s"
        command = [sys.executable, "-c", _SERVER, os.path.dirname(__file__), address]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            channel = Channel(address, "gate")
            Outcome(channel.wait_for_job).get()
            waiting = [Outcome(lambda: channel.call("never", {})) for _ in range(5)]
            assert channel.call("echo", {"n": 1}) == {"n": 1}
            server.send_signal(signal.SIGKILL)
            for outcome in waiting:
                with pytest.raises(BridgeClosed):
                    outcome.get()
            channel.close()
