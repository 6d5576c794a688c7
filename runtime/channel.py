"""The sandbox's side of the bridge: one stream, opened while the sandbox is still warm.

Ordinary gRPC on the wire, spoken by a few hundred lines of our own (http2.py, codec.py): the
library's import would be most of a sandbox's start, and its threads most of a call. Any thread may
call; what waits to be sent together travels in one message; whoever waits reads (turns.py).
Nothing here is trusted by the host: every check is the host's.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from . import codec, payload
from .codec import Job, Result
from .errors import BridgeClosed, InvalidArguments, from_wire
from .http2 import GrpcStream, StreamEnded
from .turns import Inbox, Putable, Turns
from .wire import ATTACH, MAX_ANSWER, MAX_ITEMS, MAX_MESSAGE, PROTOCOL

IDLE_SECONDS = 0.05
"""How long a worker waits for its job before it takes its time."""

_END = None
"""In an inbox: the stream is over."""


class Channel:
    """The stream to the host: `wait_for_job` once, then `call` and `stream` from any thread."""

    def __init__(self, address: str, gate: str) -> None:
        """Connect and say Hello; `gate` is the fingerprint of the policy on this side.

        Raises BridgeClosed when nobody listens.
        """
        self._jobs: Inbox = Inbox()
        self._waiting: dict[int, Putable] = {}
        self._blocked: deque[Inbox] = deque()
        self._turns = Turns(self._read)
        self._outbox: deque[bytes] = deque()
        self._sending = threading.Lock()
        self._ids = itertools.count(1)
        self._token = b""
        self._max_arguments = 0
        self.max_inflight = 1
        """Calls that the host serves at a time."""
        self._room = threading.Semaphore(1)
        self._ended = False
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connected.connect(address.removeprefix("unix:"))
            self._stream = GrpcStream(
                connected,
                ATTACH,
                deliver=self._hear,
                opened=self._wake_senders,
                max_message=MAX_ANSWER,
            )
        except (OSError, StreamEnded):
            connected.close()
            raise BridgeClosed from None
        os.register_at_fork(after_in_child=self._forked)
        python = ".".join(map(str, sys.version_info[:3]))
        self._put(codec.hello(PROTOCOL, python, gate))

    def wait_for_job(self, idle: Callable[[], object] = int) -> Job:
        """Block until the host sends the job; answer its pings meanwhile.

        `idle` is called once, when there is time: no job came at once. Raises BridgeClosed when the
        host ends the stream instead.
        """
        while self._jobs.empty() and self._stream.is_readable(IDLE_SECONDS):
            self._read()
        if self._jobs.empty():
            idle()
        while True:
            job = self._turns.wait(self._jobs)
            if job is _END:
                raise BridgeClosed
            if isinstance(job, Job):
                break
            self._put(codec.PONG)
        self._token = codec.token(job.token)
        self._max_arguments = job.max_arguments
        self.max_inflight = job.max_inflight
        self._room = threading.Semaphore(job.max_inflight)
        return job

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Call one tool: its value, or its error raised by its class."""
        with self._room:
            inbox = Inbox()
            call_id = self.post(tool, arguments, inbox)
            self.flush()
            try:
                answer = self._turns.wait(inbox)
            finally:
                self._waiting.pop(call_id, None)
        return self.value(tool, answer)

    def stream(self, tool: str, arguments: dict[str, Any]) -> Iterator[Any]:
        """Call a streamed tool: its rows, one by one, never more than a few messages ahead."""
        inbox = Inbox()
        call_id = self.post(tool, arguments, inbox)
        self.flush()
        finished = False
        try:
            while True:
                answer = self._turns.wait(inbox)
                if answer is _END:
                    finished = True
                    raise BridgeClosed(tool)
                finished = answer.last or bool(answer.error)
                for row in answer.rows:
                    yield payload.decode(row)
                if answer.error:
                    raise from_wire(json.loads(answer.error))
                if finished:
                    return
                self.credit(call_id)
        finally:
            self._waiting.pop(call_id, None)
            if not finished:
                self.cancel(call_id)

    def credit(self, call_id: int) -> None:
        """One more message of rows may come for a streamed call."""
        self._put(codec.credit(call_id, 1))

    def cancel(self, call_id: int) -> None:
        """Nobody wants a call's answer any more."""
        self._put(codec.cancels([call_id]))

    @property
    def descriptor(self) -> int:
        """The socket's: readable when there is something for `read_some`."""
        return self._stream.fileno()

    def read_some(self) -> None:
        """Read what is there, unless a thread does already."""
        self._turns.read_if_free()

    def done(self, exit_code: int, error: dict[str, Any] | None) -> None:
        """Report the script's end; the host kills the sandbox after that."""
        data = b"" if error is None else json.dumps(error).encode()
        self._put(codec.done(exit_code, data))

    def close(self) -> None:
        """End the stream; every waiting call raises BridgeClosed."""
        self._stream.close()

    def post(self, tool: str, arguments: dict[str, Any], inbox: Putable) -> int:
        """Ask for a call that `flush` sends: its number. Its answer comes into `inbox`."""
        try:
            data = payload.encode(arguments)
        except payload.PayloadError as error:
            raise InvalidArguments(tool, [str(error)]) from None
        if len(data) > self._max_arguments:
            problem = f"{len(data):,} bytes in all, the limit is {self._max_arguments:,}"
            raise InvalidArguments(tool, [problem])
        call_id = next(self._ids)
        self._waiting[call_id] = inbox
        if self._ended:
            self._turns.give(inbox, _END)
        self._outbox.append(codec.call(call_id, tool, data))
        return call_id

    def wait(self, inbox: Inbox) -> Result | None:
        """The next answer in an inbox; None when the stream is over."""
        answer: Result | None = self._turns.wait(inbox)
        return answer

    def forget(self, call_id: int) -> None:
        """No more answers are wanted for a call."""
        self._waiting.pop(call_id, None)

    def value(self, tool: str, answer: Result | None) -> Any:
        """What an answer says: the value, or its error raised by its class."""
        if answer is _END:
            raise BridgeClosed(tool)
        if answer.error:
            raise from_wire(json.loads(answer.error))
        return payload.decode(answer.value)

    def _put(self, part: bytes) -> None:
        self._outbox.append(part)
        self.flush()

    def flush(self) -> None:
        """Send what waits to be sent, whoever put it there."""
        with self._sending:
            while self._outbox:
                try:
                    self._send(self._take())
                except StreamEnded:
                    self._end()
                    return

    def _take(self) -> bytes:
        parts = [self._outbox.popleft()]
        size = len(parts[0])
        while self._outbox and len(parts) < MAX_ITEMS // 2:
            size += len(self._outbox[0])
            if size > MAX_MESSAGE // 2:
                break
            parts.append(self._outbox.popleft())
        return b"".join((self._token, *parts))

    def _send(self, message: bytes) -> None:
        """Send one message, its size before it, as the windows allow."""
        rest = memoryview(b"\0" + len(message).to_bytes(4, "big") + message)
        while rest:
            sent = self._stream.send_some(rest)
            rest = rest[sent:]
            if not sent:
                # The host reads no more for now: read, or let read, until it has room.
                inbox = Inbox()
                self._blocked.append(inbox)
                # It may have grown before we stood in the queue.
                rest = rest[self._stream.send_some(rest) :]
                if rest:
                    self._turns.wait(inbox)

    def _read(self) -> None:
        try:
            self._stream.pump()
        except (StreamEnded, codec.CodecError):
            self._end()

    def _hear(self, data: bytes) -> None:
        message = codec.read_from_host(data)
        for result in message.results:
            inbox = self._waiting.get(result.id)
            if inbox is not None:
                self._turns.give(inbox, result)
        if message.job is not None or message.ping:
            self._turns.give(self._jobs, message.job or message.ping)

    def _wake_senders(self) -> None:
        while self._blocked:
            self._turns.give(self._blocked.popleft(), True)

    def _end(self) -> None:
        self._ended = True
        self._stream.close()
        for inbox in [self._jobs, *list(self._waiting.values())]:
            self._turns.give(inbox, _END)
        self._wake_senders()

    def _forked(self) -> None:
        """A child of the script's: the stream is its parent's, its own calls find it closed."""
        self._stream.abandon()
        self._turns.reset()
        self._sending = threading.Lock()
        self._room = threading.Semaphore(64)
        self._ended = True
