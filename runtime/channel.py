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
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from . import codec, payload
from .codec import Job, Result
from .errors import BridgeClosed, InvalidArguments, ToolError, from_wire
from .http2 import GrpcStream, StreamEnded
from .turns import Claim, Holder, Inbox, Putable, Room, Turns
from .wire import ATTACH, MAX_ANSWER, MAX_ITEMS, MAX_MESSAGE, PROTOCOL

IDLE_SECONDS = 0.05
"""How long a worker waits for its job before it takes its time."""

_END = None
"""In an inbox: the stream is over."""

_JOB, _PING = "job", "ping"

_HEADROOM = 24
"""Calls on the stack that reading or sending needs at most."""

_open: set[Channel] = set()
"""What a forked child must let go."""


class Channel:
    """The stream to the host: `wait_for_job`, then `call` and `stream` from any thread, `done`.

    In a session the next `wait_for_job` follows. What threads ask for between `done` and that is
    held, and goes out under the next job's token.
    """

    def __init__(self, address: str, gate: str) -> None:
        """Connect and say Hello; `gate` is the fingerprint of the policy on this side.

        Raises BridgeClosed when nobody listens.
        """
        connected = _Socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connected.connect(address.removeprefix("unix:"))
            self._start(connected)
        except (OSError, StreamEnded):
            connected.close()
            raise BridgeClosed from None
        python = ".".join(map(str, sys.version_info[:3]))
        self._put(codec.hello(PROTOCOL, python, gate))

    def _start(self, connected: socket.socket) -> None:
        self._jobs = Inbox()
        self._job: Job | None = None
        self._final: bytes | None = None
        """The part that ends the execution, until it is sent."""
        self._is_held = False
        """The execution is over: nothing more is sent before the next job."""
        self._waiting: dict[int, Putable] = {}
        self._settling: list[Inbox] = []
        self._turns = Turns(self._read)
        self._sending = Claim()
        self._outbox: deque[bytes] = deque()
        self._rest = memoryview(b"")
        self._ids = itertools.count(1)
        self._token = b""
        self._max_arguments = 0
        self.max_inflight = 1
        """Calls that the host serves at a time."""
        self._room = Room(1)
        self._ended = False
        self._stream = GrpcStream(
            connected, ATTACH, deliver=self._hear, opened=self.flush, max_message=MAX_ANSWER
        )
        _open.add(self)

    def wait_for_job(self, idle: Callable[[], object] = int, last: Job | None = None) -> Job:
        """Block until the host sends a job other than the `last`; answer its pings meanwhile.

        `idle` is called once, when there is time: no job came at once. Raises BridgeClosed when the
        host ends the stream instead. Interrupted, it may be called again: no job is lost.
        """
        if last is None:
            while self._jobs.items.empty() and self._stream.is_readable(IDLE_SECONDS):
                self._read()
            if self._jobs.items.empty():
                idle()
        while (job := self._job) is last or job is None:
            word = self.wait(self._jobs)
            if word is _END:
                raise BridgeClosed
            if word is _PING:
                self._put(codec.PONG)
        self._adopt(job, first=last is None)
        return job

    def _adopt(self, job: Job, *, first: bool) -> None:
        self._max_arguments = job.max_arguments
        if first:
            self.max_inflight = max(job.max_inflight, 1)
            self._room = Room(self.max_inflight)
        # Nothing is sent meanwhile, so that no message has parts of the one and the other's token.
        self._token = codec.token(job.token)
        self._final = None
        self._is_held = False
        self.flush()

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Call one tool: its value, or its error raised by its class."""
        call_id, inbox = 0, Inbox()
        with inbox.inside:
            try:
                self._room.enter(inbox)
                call_id = self.post(tool, arguments, inbox)
                self.flush()
                answer = self._turns.wait(inbox)
            finally:
                self._waiting.pop(call_id, None)
                self._room.leave(inbox)
        return self.value(tool, answer)

    def stream(self, tool: str, arguments: dict[str, Any]) -> Iterator[Any]:
        """Call a streamed tool: its rows, one by one, never more than a few messages ahead."""
        inbox = Inbox()
        call_id = self.post(tool, arguments, inbox)
        finished = False
        try:
            self.flush()
            while True:
                answer = self.wait(inbox)
                if answer is _END:
                    finished = True
                    raise BridgeClosed(tool)
                finished = answer.last or bool(answer.error)
                for row in answer.rows:
                    yield self._decoded(tool, row)
                if answer.error:
                    raise self._error(tool, answer)
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
        self._turns.read_if_free(lambda: self._stream.is_readable(0))

    def done(self, exit_code: int, error: dict[str, Any] | None, number: int = 0) -> None:
        """Report the script's end; then the host kills the sandbox, or stops it until the next job.

        Interrupted, it may be called again.
        """
        data = b"" if error is None else json.dumps(error).encode()
        inbox = Inbox()
        self._settling.append(inbox)
        if not self._is_held:
            self._final = codec.done(exit_code, data, number)
            self._put(self._final)
        self._settle_if_done()
        if not self._ended:
            self.wait(inbox)

    def close(self) -> None:
        """End the stream; every waiting call raises BridgeClosed."""
        self._stream.close()
        _open.discard(self)

    def post(self, tool: str, arguments: dict[str, Any], inbox: Putable) -> int:
        """Ask for a call that `flush` sends: its number. Its answer comes into `inbox`."""
        data = self._encoded(tool, arguments)
        if self._sending.is_below() or (self._stream.hearing and self._turns.is_below()):
            raise ToolError(
                tool,
                "called by a signal's handler or a finalizer in the midst of another call",
                hint="let the handler note what is to be done, and call the tool afterwards.",
            )
        _check_stack(_HEADROOM)
        call_id = next(self._ids)
        self._waiting[call_id] = inbox
        if self._ended:
            self._turns.give(inbox, _END)
        self._outbox.append(codec.call(call_id, tool, data))
        return call_id

    def wait(self, inbox: Inbox) -> Any:
        """The next answer in an inbox, a Result; None when the stream is over."""
        with inbox.inside:
            return self._turns.wait(inbox)

    def forget(self, call_id: int) -> None:
        """No more answers are wanted for a call."""
        self._waiting.pop(call_id, None)

    def value(self, tool: str, answer: Result | None) -> Any:
        """What an answer says: the value, or its error raised by its class."""
        if answer is _END:
            raise BridgeClosed(tool)
        if answer.error:
            raise self._error(tool, answer)
        return self._decoded(tool, answer.value)

    def _encoded(self, tool: str, arguments: dict[str, Any]) -> bytes:
        try:
            data = payload.encode(arguments)
        except payload.PayloadError as error:
            raise InvalidArguments(tool, [str(error)]) from None
        if len(data) > self._max_arguments:
            problem = f"{len(data):,} bytes in all, the limit is {self._max_arguments:,}"
            raise InvalidArguments(tool, [problem])
        return data

    def _decoded(self, tool: str, data: bytes) -> Any:
        try:
            return payload.decode(data)
        except ValueError:
            self._end()  # Not what the host writes.
            raise BridgeClosed(tool) from None

    def _error(self, tool: str, answer: Result) -> ToolError:
        data = self._decoded(tool, answer.error)
        if not isinstance(data, dict) or not isinstance(data.get("details", {}), dict):
            self._end()
            return BridgeClosed(tool)
        return from_wire(data)

    # Sending: by whoever puts something, or reads that there is room again.

    def _put(self, part: bytes) -> None:
        """Send a part, with what other threads have put meanwhile; or leave it to one of them."""
        _check_stack(_HEADROOM)
        self._outbox.append(part)
        self.flush()

    def flush(self, *, again: bool = False) -> None:
        """Send what may be sent now. Who cannot, because another does, is seen to by that one.

        Once the server has stopped reading, only the one who reads tries `again`.
        """
        if not self._is_sendable() or (self._stream.is_stuck and not again):
            return
        try:
            mine = Holder()
            while self._is_sendable():
                with mine.inside:
                    if not self._sending.take(mine):
                        return
                    self._send_some()
                if self._stream.is_stuck:
                    return
        except StreamEnded:
            self._end()
        except BaseException:
            self._stream.close()  # A message may have been cut.
            raise
        self._settle_if_done()

    @property
    def is_stuck(self) -> bool:
        """Whether the host has stopped reading: who waits for no answer must `flush` again."""
        return self._stream.is_stuck and not self._ended

    def _is_sendable(self) -> bool:
        if self._ended:
            return False
        stream = self._stream
        some = self._rest or (self._outbox and not self._is_held)
        return stream.is_owing or bool(some and stream.room > 0)

    def _send_some(self) -> None:
        if not self._rest and self._outbox and not self._is_held:
            message = self._take()
            # A byte of flags and four of size stand before each.
            self._rest = memoryview(b"\0" + len(message).to_bytes(4, "big") + message)
        sent = self._stream.send_some(self._rest)
        self._rest = self._rest[sent:]

    def _take(self) -> bytes:
        parts = [self._outbox.popleft()]
        size = len(parts[0])
        while self._outbox and len(parts) < MAX_ITEMS // 2 and parts[-1] is not self._final:
            size += len(self._outbox[0])
            if size > MAX_MESSAGE // 2:
                break
            parts.append(self._outbox.popleft())
        if parts[-1] is self._final:
            self._is_held = True
        return b"".join((self._token, *parts))

    def _settle_if_done(self) -> None:
        if self._is_held and not self._rest:
            self._settle(True)

    def _settle(self, word: object) -> None:
        while self._settling:
            self._turns.give(self._settling.pop(), word)

    # Reading: by whoever waits.

    def _read(self) -> bool:
        """Read once; False when the stream is over."""
        if self._ended:
            return False
        try:
            if self._stream.is_stuck and not self._stream.wait_to_write():
                self.flush(again=True)
                return not self._ended
            if self._is_sendable():
                self.flush(again=True)  # Who put it was interrupted, or the server did not read.
            self._stream.pump()
        except (StreamEnded, codec.CodecError):
            self._end()
        except BaseException:
            if self._stream.hearing:
                self._end()  # What was half heard is lost.
            raise
        return not self._ended

    def _hear(self, data: bytes) -> None:
        message = codec.read_from_host(data)
        for result in message.results:
            inbox = self._waiting.get(result.id)
            if inbox is not None:
                self._turns.give(inbox, result)
        if message.job is not None:
            self._job = message.job
            self._turns.give(self._jobs, _JOB)
        if message.ping:
            self._turns.give(self._jobs, _PING)

    def _end(self) -> None:
        self._ended = True
        self._stream.close()
        _open.discard(self)
        for inbox in [self._jobs, *list(self._waiting.values())]:
            self._turns.give(inbox, _END)
        self._settle(_END)

    def _forget(self) -> None:
        """In a child of the script's: the stream is its parent's, its own calls find it closed."""
        self._ended = True
        self._stream.abandon()
        self._turns = Turns(self._read)
        self._sending = Claim()
        self._room = Room(64)


class _Socket(socket.socket):
    """Closed with its last user, not before: another thread may be in a call on its number."""

    def __del__(self) -> None:
        self.close()


def _check_stack(calls: int) -> None:
    """Raise RecursionError now rather than in the midst of a message."""
    if calls:
        _check_stack(calls - 1)


def _forget_all() -> None:
    while _open:
        _open.pop()._forget()


os.register_at_fork(after_in_child=_forget_all)
