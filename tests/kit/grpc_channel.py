"""The sandbox's side of the bridge on the grpcio library: the reference for runtime/channel.py.

Any thread may call. Calls that wait to be sent together travel in one message; a reader thread
hands each answer to its waiter. Nothing here is trusted by the host: every check is the host's.
"""

from __future__ import annotations

import itertools
import json
import platform
import threading
from collections import deque
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import grpc

from limbeck.runtime import payload
from limbeck.runtime.errors import BridgeClosed, InvalidArguments, from_wire
from limbeck.runtime.wire import ATTACH, MAX_ANSWER, MAX_MESSAGE, PROTOCOL
from limbeck.runtime.wire_pb2 import (
    Credit,
    Done,
    FromHost,
    FromSandbox,
    Hello,
    Job,
    ToolCall,
    ToolResult,
)

_OPTIONS = [
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.ping_timeout_ms", 2147483647),
    ("grpc.max_receive_message_length", MAX_ANSWER),
    ("grpc.max_send_message_length", MAX_MESSAGE),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
]


class Channel:
    """The stream to the host: `wait_for_job` once, then `call` and `stream` from any thread."""

    def __init__(self, address: str, gate: str) -> None:
        """Connect and say Hello; `gate` is the fingerprint of the policy on this side."""
        self._channel = grpc.insecure_channel(address, options=_OPTIONS)
        self._outbox = _Outbox()
        hello = Hello(protocol=PROTOCOL, python=platform.python_version(), gate=gate)
        self._outbox.put(FromSandbox(hello=hello))
        attach = self._channel.stream_stream(
            ATTACH,
            request_serializer=FromSandbox.SerializeToString,
            response_deserializer=FromHost.FromString,
        )
        self._answers = attach(self._outbox)
        self._waiting: dict[int, SimpleQueue[ToolResult | None]] = {}
        self._ids = itertools.count(1)
        self._ended = False
        self._max_arguments = 0
        self._room = threading.Semaphore(1)

    def wait_for_job(self, idle=int) -> Job:
        """Block until the host sends the job, answer its pings; then start to serve answers.

        Raises BridgeClosed when the host ends the stream instead.
        """
        try:
            while (message := next(self._answers)).ping:
                self._outbox.put(FromSandbox(pong=True))
        except (grpc.RpcError, StopIteration):
            raise BridgeClosed from None
        job: Job = message.job
        self._outbox.token = job.token
        self._max_arguments = job.max_arguments
        self._room = threading.Semaphore(job.max_inflight)
        threading.Thread(target=self._read, name="limbeck-bridge", daemon=True).start()
        return job

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Call one tool: its value, or its error raised by its class."""
        with self._room:
            call_id, inbox = self._send(tool, arguments)
            try:
                answer = inbox.get()
            finally:
                self._waiting.pop(call_id, None)
        if answer is None:
            raise BridgeClosed(tool)
        if answer.error:
            raise from_wire(json.loads(answer.error))
        return payload.decode(answer.value)

    def stream(self, tool: str, arguments: dict[str, Any]) -> Iterator[Any]:
        """Call a streamed tool: its rows, one by one, never more than a few messages ahead."""
        call_id, inbox = self._send(tool, arguments)
        finished = False
        try:
            while True:
                answer = inbox.get()
                if answer is None:
                    raise BridgeClosed(tool)
                finished = answer.last or bool(answer.error)
                for row in answer.rows:
                    yield payload.decode(row)
                if answer.error:
                    raise from_wire(json.loads(answer.error))
                if finished:
                    return
                self._outbox.put(FromSandbox(credits=[Credit(id=call_id, parts=1)]))
        finally:
            self._waiting.pop(call_id, None)
            if not finished:
                self._outbox.put(FromSandbox(cancels=[call_id]))

    def done(self, exit_code: int, error: dict[str, Any] | None, number: int = 1) -> None:
        """Report the script's end; the host kills the sandbox after that."""
        data = b"" if error is None else json.dumps(error).encode()
        done = Done(exit_code=exit_code, error=data, number=number)
        self._outbox.put(FromSandbox(done=done))

    def close(self) -> None:
        """End the stream; every waiting call raises BridgeClosed."""
        self._channel.close()

    def _send(
        self, tool: str, arguments: dict[str, Any]
    ) -> tuple[int, SimpleQueue[ToolResult | None]]:
        try:
            data = payload.encode(arguments)
        except payload.PayloadError as error:
            raise InvalidArguments(tool, [str(error)]) from None
        if len(data) > self._max_arguments:
            problem = f"{len(data):,} bytes in all, the limit is {self._max_arguments:,}"
            raise InvalidArguments(tool, [problem])
        call_id = next(self._ids)
        inbox: SimpleQueue[ToolResult | None] = SimpleQueue()
        self._waiting[call_id] = inbox
        if self._ended:
            inbox.put(None)
        self._outbox.put(FromSandbox(calls=[ToolCall(id=call_id, tool=tool, arguments=data)]))
        return call_id, inbox

    def _read(self) -> None:
        try:
            for message in self._answers:
                for result in message.results:
                    inbox = self._waiting.get(result.id)
                    if inbox is not None:
                        inbox.put(result)
        except grpc.RpcError:
            pass  # The host ended the stream; the waiters below are told.
        self._ended = True
        for inbox in list(self._waiting.values()):
            inbox.put(None)


class _Outbox:
    """The request iterator of the stream: what waits together is sent together."""

    def __init__(self) -> None:
        self.token = b""
        self._ready: deque[FromSandbox] = deque()
        self._some = threading.Semaphore(0)

    def put(self, message: FromSandbox) -> None:
        self._ready.append(message)
        self._some.release()

    def __iter__(self) -> Iterator[FromSandbox]:
        return self

    def __next__(self) -> FromSandbox:
        self._some.acquire()
        message = self._ready.popleft()
        size = message.ByteSize()
        while self._ready and size + self._ready[0].ByteSize() < MAX_MESSAGE // 2:
            if not self._some.acquire(blocking=False):
                break
            more = self._ready.popleft()
            size += more.ByteSize()
            message.MergeFrom(more)
        message.token = self.token
        return message
