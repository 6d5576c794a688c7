"""The bridge's gRPC server: one listener a sandbox, one stream a listener.

The listener tells the sandbox, the token tells the execution; both are required. A tool's failure
is a message, never a gRPC status; a status means that the stream is over. Nothing here waits for a
sandbox without a bound of memory: calls under way, results not yet written, rows without credit
and the items of a message are all counted. The socket's path is there only until the worker has
its stream: no script ever finds a door to a second connection.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from ..runtime.errors import ProtocolError
from ..runtime.wire import (
    ATTACH,
    BRIDGE_SOCKET,
    MAX_ANSWER,
    MAX_ARGUMENTS,
    MAX_INFLIGHT,
    MAX_MESSAGE,
    PROTOCOL,
)
from ..runtime.wire_pb2 import Done, FromHost, Hello, Job
from .call import CallNext
from .conversation import Conversation
from .reading import read_message
from .session import Execution

_OPTIONS = [
    # By default grpcio ends a stream whose peer leaves a ping unanswered for a minute, as a
    # stopped or busy sandbox does.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.ping_timeout_ms", 2147483647),
    # What is a little too large is told as such by read_message; what is more, grpc refuses.
    ("grpc.max_receive_message_length", 2 * MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_ANSWER),
    ("grpc.max_concurrent_streams", 8),
    # SAFETY: no compression is spoken, so that nothing is ever expanded, whatever grpc's order is.
    ("grpc.per_message_decompression", 0),
    ("grpc.compression_enabled_algorithms_bitset", 1),
    ("grpc.max_metadata_size", 8192),
    ("grpc.so_reuseport", 0),
]


class Listener:
    """The bridge of one sandbox. `open`, await `attached`, `serve`, `close`."""

    def __init__(self, pipeline: CallNext) -> None:
        self._pipeline = pipeline
        self._server = grpc.aio.server(options=_OPTIONS)
        self._path: Path | None = None
        self._claimed = False
        self._conversation: Conversation | None = None
        loop = asyncio.get_running_loop()
        self.attached: asyncio.Future[Hello] = loop.create_future()
        """The worker's Hello, checked; ProtocolError when the versions do not match."""
        self.done: asyncio.Future[Done] = loop.create_future()
        """The worker's own word that the script has ended."""
        self.ended = asyncio.Event()
        """The stream is over, with or without Done."""
        self.fault = ""
        """How the sandbox broke the protocol, when the host ended the stream for that."""
        self.closed = False
        """`close` was called."""
        self._job: asyncio.Future[tuple[Job, Execution]] = loop.create_future()
        self._ping: asyncio.Future[asyncio.Future[None]] = loop.create_future()

    async def open(self, folder: Path, uid: int) -> None:
        """Listen in `folder`; the socket belongs to `uid` alone (0600). Raises OSError."""
        path = self._path = folder / BRIDGE_SOCKET
        handler = grpc.stream_stream_rpc_method_handler(
            self._attach,
            request_deserializer=None,  # Counted before it is parsed: see read_message.
            response_serializer=FromHost.SerializeToString,
        )
        _, service, method = ATTACH.split("/")
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {method: handler}),)
        )
        try:
            self._server.add_insecure_port(f"unix:{path}")
        except RuntimeError as error:
            raise OSError(f"the bridge cannot listen: {error}") from None
        await self._server.start()
        give_socket(path, uid)

    def serve(
        self, execution: Execution, script: str, *, gate: bool, open_modules: Collection[str] = ()
    ) -> None:
        """Send the job to the attached worker; its calls are served from now on."""
        job = Job(
            execution_id=execution.id,
            token=execution.token,
            script=script,
            gate=gate,
            max_inflight=MAX_INFLIGHT,
            max_arguments=MAX_ARGUMENTS,
            open_modules=sorted(open_modules),
        )
        self._job.set_result((job, execution))

    async def ping(self, seconds: float) -> bool:
        """Whether the waiting worker answers in time; only before `serve`, one at a time."""
        if self.ended.is_set() or not self.attached.done() or self._ping.done():
            return False
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ping.set_result(answered)
        try:
            async with asyncio.timeout(seconds):
                await answered
        except TimeoutError:
            return False
        return True

    async def end_calls(self) -> None:
        """Cancel every call under way and wait until none runs. The execution is revoked."""
        if self._conversation is not None:
            await self._conversation.close()

    async def close(self) -> None:
        """End the stream and remove the socket."""
        self.closed = True
        self._job.cancel()
        self.attached.cancel()
        self.done.cancel()
        await self.end_calls()
        # The server unlinks the socket's path only when it has stopped: wait for that.
        await self._server.stop(None)

    async def _attach(
        self, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, FromHost]
    ) -> None:
        if self._claimed:
            # SAFETY: only a script opens one, on its worker's connection; thousands of them, reset
            # at once, would cost the host a core and the script nothing.
            self.fault = "a second stream on the worker's connection"
            self.ended.set()
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, self.fault)
        self._claimed = True
        self._remove_door()
        try:
            await self._converse(requests, context)
        except StopAsyncIteration:
            return  # The worker ended the stream before it said anything.
        except ProtocolError as error:
            self.fault = str(error)
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, self.fault)
        finally:
            self.ended.set()

    def _remove_door(self) -> None:
        """Take the socket's path away; the worker's connection stays.

        SAFETY: before the job is sent, so before there is a script. Each further connection would
        cost the host a descriptor, and nothing in grpc bounds their number.
        """
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    async def _converse(
        self, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, FromHost]
    ) -> None:
        hello = read_message(await anext(requests)).hello
        if hello.protocol != PROTOCOL:
            await context.abort(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"protocol {hello.protocol}, the host speaks {PROTOCOL}",
            )
        if not self.attached.done():
            self.attached.set_result(hello)
        job, execution = await self._wait_for_job(requests, context)
        self._conversation = Conversation(execution, self._pipeline, context.write)
        await context.write(FromHost(job=job))
        async for data in requests:
            message = read_message(data)
            if not execution.is_token(message.token):
                self.fault = "a message carries no valid token"
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, self.fault)
            if not message.HasField("done"):
                await self._conversation.hear(message)
            elif not self.done.done():
                self.done.set_result(message.done)

    async def _wait_for_job(
        self, requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, FromHost]
    ) -> tuple[Job, Execution]:
        """Bring pings to the worker until there is a job."""
        while True:
            both: list[asyncio.Future[Any]] = [self._job, self._ping]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if self._job.done():
                return self._job.result()
            answered, self._ping = self._ping.result(), asyncio.get_running_loop().create_future()
            await context.write(FromHost(ping=True))
            if not read_message(await anext(requests)).pong:
                raise ProtocolError("no answer to a ping")
            if not answered.done():
                answered.set_result(None)


def give_socket(path: Path, uid: int) -> None:
    """Hand a listening socket to the sandbox's uid, for it alone."""
    # SAFETY: its folder is not open to the sandbox before this; the mode follows the owner.
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise OSError(f"{path} is no socket")
    if os.geteuid() == 0:
        os.chown(path, uid, uid)
    path.chmod(0o600)
