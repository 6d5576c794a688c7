"""The bridge's gRPC server: one listener a sandbox, one stream a listener.

The listener tells the sandbox, the token tells the execution; both are required. In a session one
execution follows the other on the stream, each with a job and a token of its own; the token of the
one before is known too, and serves nothing. A tool's failure
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
from ..runtime.wire_pb2 import Done, FromHost, FromSandbox, Hello, Job
from .call import CallNext
from .conversation import Conversation
from .reading import read_message
from .session import Execution
from .writer import Writer

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
    """The bridge of one sandbox. `open`, await `attached`, `serve`, `end_calls`, ..., `close`."""

    def __init__(self, pipeline: CallNext) -> None:
        self._pipeline = pipeline
        self._server = grpc.aio.server(options=_OPTIONS)
        self._path: Path | None = None
        self._claimed = False
        self._conversation: Conversation | None = None
        self._before: Conversation | None = None
        """Of the execution before: whoever has its token is told that it is over."""
        self._writer: Writer | None = None
        self._number = 0
        loop = asyncio.get_running_loop()
        self.attached: asyncio.Future[Hello] = loop.create_future()
        """The worker's Hello, checked; ProtocolError when the versions do not match."""
        self.done: asyncio.Future[Done] = loop.create_future()
        """The worker's own word that the latest script has ended."""
        self.ended = asyncio.Event()
        """The stream is over, with or without Done."""
        self.fault = ""
        """How the sandbox broke the protocol, when the host ended the stream for that."""
        self.closed = False
        """`close` was called."""
        self._pinged: asyncio.Future[None] | None = None

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
        self,
        execution: Execution,
        script: str,
        *,
        gate: bool,
        open_modules: Collection[str] = (),
        keep: bool = False,
        number: int = 1,
        cpu_seconds: int = 0,
    ) -> None:
        """Send a job to the attached worker; its calls are served from now on.

        Further jobs may follow when the one before had `keep`, has ended, and its calls too;
        each has a `number` above that of the one before.
        """
        assert self._writer is not None, "the worker is attached"
        self._number = number
        self.done = asyncio.get_running_loop().create_future()
        self._before = self._conversation
        self._conversation = Conversation(execution, self._pipeline, self._writer)
        job = Job(
            execution_id=execution.id,
            token=execution.token,
            script=script,
            gate=gate,
            max_inflight=MAX_INFLIGHT,
            max_arguments=MAX_ARGUMENTS,
            open_modules=sorted(open_modules),
            keep=keep,
            number=number,
            cpu_seconds=cpu_seconds,
        )
        self._writer.put(FromHost(job=job))

    async def ping(self, seconds: float) -> bool:
        """Whether the waiting worker answers in time; only before `serve`, one at a time."""
        if self.ended.is_set() or self._writer is None or self._pinged is not None:
            return False
        self._pinged = answered = asyncio.get_running_loop().create_future()
        self._writer.put(FromHost(ping=True))
        try:
            async with asyncio.timeout(seconds):
                await answered
        except TimeoutError:
            return False
        return True

    async def end_calls(self) -> None:
        """Cancel every call under way and wait until none runs. The execution is revoked.

        Each is answered by BridgeClosed, and so is what comes later under the execution's token.
        """
        if self._conversation is not None:
            await self._conversation.close()

    async def close(self) -> None:
        """End the stream and remove the socket."""
        self.closed = True
        self.attached.cancel()
        self.done.cancel()
        await self.end_calls()
        if self._writer is not None:
            await self._writer.close()
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
        self._writer = Writer(context.write)
        if not self.attached.done():
            self.attached.set_result(hello)
        async for data in requests:
            message = read_message(data)
            if self._conversation is None or message.pong:
                self._hear_pong(message)
                continue
            conversation = self._of(message.token)
            if conversation is None:
                self.fault = "a message carries no valid token"
                await context.abort(grpc.StatusCode.UNAUTHENTICATED, self.fault)
                return
            if message.HasField("done"):
                self._hear_end(conversation, message.done)
            await conversation.hear(message)

    def _of(self, token: bytes) -> Conversation | None:
        """The conversation that a token belongs to: the latest, or the one before."""
        for one in (self._conversation, self._before):
            if one is not None and one.execution.is_token(token):
                return one
        return None

    def _hear_pong(self, message: FromSandbox) -> None:
        """Only what was asked for is said before there is a job."""
        if not message.pong or self._pinged is None:
            raise ProtocolError("no answer to a ping")
        if not self._pinged.done():
            self._pinged.set_result(None)
        self._pinged = None

    def _hear_end(self, conversation: Conversation, done: Done) -> None:
        """A worker that was interrupted says it twice, perhaps when the next job has begun."""
        if conversation is self._conversation and done.number == self._number:
            conversation.refuse_more()
            if not self.done.done():
                self.done.set_result(done)


def give_socket(path: Path, uid: int) -> None:
    """Hand a listening socket to the sandbox's uid, for it alone."""
    # SAFETY: its folder is not open to the sandbox before this; the mode follows the owner.
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise OSError(f"{path} is no socket")
    if os.geteuid() == 0:
        os.chown(path, uid, uid)
    path.chmod(0o600)
