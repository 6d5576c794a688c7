"""The worker's own HTTP/2 against frames as data: right, or over for every waiter, never a hang."""

import struct
import threading

import pytest
from kit.raw_server import (
    RESPONSE,
    TRAILERS,
    Outcome,
    Peer,
    answer,
    data,
    echo,
    frame,
    goaway,
    greeting,
    headers,
    job,
    peer,
    prefixed,
    settings,
    trailers,
    window,
)

from limbeck.runtime.errors import BridgeClosed
from limbeck.runtime.http2 import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME,
    HEADERS,
    MAX_HEADERS,
    MAX_UNWRITTEN,
    PADDED,
    PING,
    PRIORITY,
    PRIORITY_FLAG,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW,
    WINDOW_UPDATE,
)
from limbeck.runtime.wire import MAX_ANSWER
from limbeck.runtime.wire_pb2 import FromHost, ToolResult

VALUE = b'"yes"'
ANSWER = prefixed(answer(1, VALUE))
PADDING = frame(DATA, PADDED, 1, b"\x05" + ANSWER + bytes(5))

HARMLESS = {
    "nothing": b"",
    "ping": frame(PING, body=b"12345678"),
    "an answer to a ping that nobody sent": frame(PING, ACK, body=b"12345678"),
    "settings": settings(x3=100, x4=1 << 20, x6=4096, x999=7),
    "empty settings": settings(),
    "settings heard": frame(SETTINGS, ACK),
    "windows": window(1000) + window(1000, stream=1),
    "the largest window": window(2**31 - 1 - 65_535, stream=1),
    "the smallest window": settings(x4=0) + settings(x4=65_535),
    "unknown kinds": frame(0xBB, 0xFF, 1, b"abc") + frame(0x20, 0, 77, b""),
    "priority": frame(PRIORITY, 0, 1, bytes(5)),
    "the connection ends later": goaway(1) + goaway(2**31 - 1, text=b"graceful"),
    "empty data": frame(DATA, 0, 1, b""),
    "data of nothing but padding": frame(DATA, PADDED, 1, b"\x03" + bytes(3)),
    "headers again": headers(RESPONSE),
    "headers in pieces": headers(RESPONSE[:1], 0)
    + frame(CONTINUATION, 0, 1, b"")
    + frame(CONTINUATION, END_HEADERS, 1, RESPONSE[1:]),
    "headers with padding and priority": headers(
        b"\x04" + bytes(5) + RESPONSE + bytes(4), END_HEADERS | PADDED | PRIORITY_FLAG
    ),
    "an answer for nobody": data(prefixed(answer(999, b"1"))),
    "an empty message": data(prefixed(b"")),
    "a ping of the host's": data(prefixed(FromHost(ping=True))),
    "the reserved bit of a stream's number": frame(DATA, 0, 1 | 1 << 31, b""),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_a_server_may_do(name: str) -> None:
    with peer() as one:
        waiting = one.call()
        one.wait_for_call()
        one.send(HARMLESS[name], data(ANSWER))
        assert waiting.get() == "yes"


ENDS = {
    "trailers alone": trailers(),
    "trailers in pieces": headers(TRAILERS[:3], END_STREAM)
    + frame(CONTINUATION, END_HEADERS, 1, TRAILERS[3:]),
    "the end on data": frame(DATA, END_STREAM, 1, b""),
    "reset": frame(RST_STREAM, 0, 1, struct.pack(">I", 8)),
    "reset of no stream": frame(RST_STREAM, 0, 0, struct.pack(">I", 8)),
    "reset of another stream": frame(RST_STREAM, 0, 3, struct.pack(">I", 8)),
    "goaway before our stream": goaway(0),
    "goaway with an error": goaway(1, code=11, text=b"too_many_pings"),
    "goaway cut": frame(7, body=bytes(7)),
    "goaway on a stream": frame(7, 0, 1, struct.pack(">II", 1, 0)),
    "data on another stream": frame(DATA, 0, 3, b"abc"),
    "data on no stream": frame(DATA, 0, 0, b"abc"),
    "headers of another stream": headers(stream=2),
    "push": frame(PUSH_PROMISE, END_HEADERS, 1, bytes(4)),
    "a frame larger than agreed": struct.pack(">IBI", (FRAME + 1) << 8 | DATA, 0, 1),
    "padding longer than its frame": frame(DATA, PADDED, 1, b"\x05abc"),
    "padding without its length": frame(DATA, PADDED, 1, b""),
    "compressed": data(prefixed(answer(1, VALUE), flag=1)),
    "an unknown flag of a message": data(prefixed(answer(1, VALUE), flag=2)),
    "a message over the limit": data(struct.pack(">BI", 0, MAX_ANSWER + 1)),
    "no message of ours": data(prefixed(b"\x0b\xff\xff")),
    "a value that is no JSON": data(prefixed(answer(1, b"{"))),
    "a value that is no UTF-8": data(prefixed(answer(1, b'"\xff"'))),
    "a value that is no base64": data(prefixed(answer(1, b'{"$bytes":"x"}'))),
    "no value": data(prefixed(answer(1, b""))),
    "an error that is no JSON": data(prefixed(FromHost(results=[ToolResult(id=1, error=b"oops")]))),
    "an error that is no object": data(prefixed(FromHost(results=[ToolResult(id=1, error=b"3")]))),
    "an error with strange details": data(
        prefixed(FromHost(results=[ToolResult(id=1, error=b'{"details": 3}')]))
    ),
    "no more window": window(0),
    "no more window of the stream": window(0, stream=1),
    "more window than there is": window(2**31 - 1),
    "more window of the stream than there is": window(2**31 - 1, stream=1),
    "window of another stream": window(5, stream=3),
    "a window cut": frame(WINDOW_UPDATE, 0, 0, b"abc"),
    "settings with a window too large": settings(x4=2**31),
    "settings that make the window too large": window(2**31 - 70_000, 1) + settings(x4=1 << 20),
    "settings with a frame too small": settings(x5=16_383),
    "settings with a frame too large": settings(x5=1 << 24),
    "settings cut": frame(SETTINGS, body=b"12345"),
    "settings of a stream": frame(SETTINGS, 0, 1),
    "settings heard, with words": frame(SETTINGS, ACK, 0, bytes(6)),
    "a ping too long": frame(PING, body=bytes(9)),
    "a ping of a stream": frame(PING, 0, 1, bytes(8)),
    "continuation of nothing": frame(CONTINUATION, END_HEADERS, 1, b""),
    "headers cut by data": headers(flags=0) + data(ANSWER),
    "headers cut by a ping": headers(flags=0) + frame(PING, body=bytes(8)),
    "headers cut by the unknown": headers(flags=0) + frame(0xBB),
    "headers continued elsewhere": headers(flags=0) + frame(CONTINUATION, END_HEADERS, 3, b""),
    "headers without an end": headers(flags=0)
    + frame(CONTINUATION, 0, 1, bytes(16_000)) * (MAX_HEADERS // 16_000 + 1),
    "another protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


@pytest.mark.parametrize("name", ENDS)
def test_what_ends_the_stream_for_every_waiter(name: str) -> None:
    with peer() as one:
        waiting = [one.call(n=n) for n in range(4)]
        rows = Outcome(lambda: list(one.channel.stream("box.rows", {})))
        seen = 0
        for message in one.messages():
            seen += len(message.calls)
            if seen == 5:
                break
        one.send(ENDS[name])
        for outcome in [*waiting, rows]:
            with pytest.raises(BridgeClosed):
                outcome.get()
        with pytest.raises(BridgeClosed):
            one.call().get()


BEFORE_THE_JOB = {
    "closed": b"",
    "no settings first": headers() + data(prefixed(job())),
    "data first": data(prefixed(job())),
    "no headers": settings() + data(prefixed(job())),
    "trailers alone": settings() + trailers(),
    "goaway": settings() + goaway(0, code=1),
}


@pytest.mark.parametrize("name", BEFORE_THE_JOB)
def test_no_job_no_worker(name: str) -> None:
    with peer(greet=False) as one:
        waiting = Outcome(one.channel.wait_for_job)
        one.send(BEFORE_THE_JOB[name])
        if not BEFORE_THE_JOB[name]:
            one.socket.close()
        with pytest.raises(BridgeClosed):
            waiting.get()


@pytest.mark.parametrize("step", [1, 2, 3, 7, 8, 9, 10, 64])
def test_bytes_may_come_in_any_pieces(step: int) -> None:
    stream = (
        greeting(x4=1 << 20)
        + PADDING
        + frame(PING, body=b"12345678")
        + headers(RESPONSE[:3], 0)
        + frame(CONTINUATION, END_HEADERS, 1, RESPONSE[3:])
        + data(prefixed(answer(2, b'"' + b"x" * 700 + b'"')), size=64)
    )
    with peer(greet=False) as one:
        waiting = Outcome(one.channel.wait_for_job)
        cut = stream.index(PADDING)
        for at in range(0, cut, step):
            one.send(stream[at : min(at + step, cut)])
        waiting.get()
        calls = []
        for _ in range(2):
            calls.append(one.call())
            one.wait_for_call()
        for at in range(cut, len(stream), step):
            one.send(stream[at : at + step])
        assert [outcome.get() for outcome in calls] == ["yes", "x" * 700]


def test_a_message_may_be_in_many_frames_and_a_frame_may_hold_many_messages() -> None:
    with peer() as one:
        waiting = [one.call(n=n) for n in range(40)]
        ids = {}
        for message in one.messages():
            for call in message.calls:
                ids[call.id] = call.arguments
            if len(ids) == 40:
                break
        stream = b"".join(prefixed(answer(i, value)) for i, value in ids.items())
        for size in (1, 3, 1000):
            cut = len(stream) // 3
            one.send(data(stream[:cut], size))
            stream = stream[cut:]
        one.send(data(stream, 100_000))
        assert [outcome.get() for outcome in waiting] == [{"n": n} for n in range(40)]


def test_each_ping_is_answered_and_each_change_of_settings_heard() -> None:
    with peer() as one:
        waiting = one.call()
        one.wait_for_call()
        one.send(*[frame(PING, body=struct.pack(">Q", n)) for n in range(50)], settings(x4=70_000))
        for n in range(50):
            assert one.wait_for(PING, ACK) == struct.pack(">Q", n)
        assert one.wait_for(SETTINGS, ACK) == b""
        one.send(data(ANSWER))
        assert waiting.get() == "yes"


def _sent(one: Peer, seconds: float = 0.3) -> int:
    for _ in one.frames(seconds):
        pass
    return one.data_bytes


def test_the_window_is_kept_to_the_byte() -> None:
    with peer(x4=1000) as one:
        before = _sent(one)
        waiting = one.call(text="x" * 5000)
        assert _sent(one) == 1000  # Hello, and what the window still held.
        one.send(window(500, stream=1))
        assert _sent(one) == 1500
        one.send(settings(x4=200))  # 800 fewer: the room is below zero.
        one.send(window(700, stream=1))
        assert _sent(one) == 1500
        one.send(window(101, stream=1))
        assert _sent(one) == 1501
        one.send(settings(x4=100_000))
        assert _sent(one) > 5000 > before
        one.send(data(ANSWER))
        assert waiting.get() == "yes"


def test_the_connection_has_a_window_too() -> None:
    with peer(x4=1 << 20) as one:
        waiting = one.call(text="x" * 100_000)
        assert _sent(one) == 65_535
        one.send(window(10))
        assert _sent(one) == 65_545
        one.send(window(1 << 20))
        assert _sent(one) > 100_000
        one.send(data(ANSWER))
        assert waiting.get() == "yes"


def test_frames_are_as_large_as_the_server_takes() -> None:
    with peer(x4=1 << 22) as one:
        one.send(window(1 << 22))
        one.call()  # Somebody waits, and hears what the server says.
        sizes: dict[int, set[int]] = {}
        for largest in (16_384, 100_000, 20_000):
            one.send(settings(x5=largest))
            one.wait_for_pong(b"settings")
            one.call(text="x" * 300_000)
            seen: set[int] = set()
            for kind, _, _, body in one.frames(0.3):
                if kind == DATA:
                    seen.add(len(body))
            sizes[largest] = seen
        for largest, seen in sizes.items():
            assert max(seen) == largest


def test_threads_wait_for_room_while_another_reads() -> None:
    with peer(x4=100) as one:
        waiting = [one.call(n=n, text="x" * 3000) for n in range(30)]
        serving = threading.Thread(target=echo, args=(one, 30), daemon=True)
        serving.start()
        for _ in range(1000):
            one.send(window(100, stream=1), window(100))
        assert [outcome.get()["n"] for outcome in waiting] == list(range(30))


def test_the_end_is_told_to_threads_that_wait_for_room() -> None:
    with peer(x4=0) as one:
        waiting = [one.call(text="x" * 3000) for _ in range(80)]
        rows = Outcome(lambda: list(one.channel.stream("box.rows", {})))
        done = Outcome(lambda: one.channel.done(0, None))
        one.wait_for_pong(b"all wait")
        assert done.is_running
        one.send(trailers())
        for outcome in [*waiting, rows]:
            with pytest.raises(BridgeClosed):
                outcome.get()
        done.get()


def test_the_last_word_is_sent_when_there_is_room() -> None:
    with peer(x4=0) as one:
        done = Outcome(lambda: one.channel.done(3, {"message": "x"}))
        one.wait_for_pong(b"it waits")
        assert done.is_running
        one.send(settings(x4=5000))
        done.get()
        (last,) = [m for m in one.messages(0.3) if m.HasField("done")]
        assert last.done.exit_code == 3


def test_a_server_that_writes_before_it_reads_is_read() -> None:
    """Both buffers are full: who wants to send must read meanwhile."""
    with peer(x4=1 << 24) as one:
        one.send(window(1 << 24))
        waiting = [one.call(text="x" * 900_000) for _ in range(3)]
        while not all(outcome.is_running for outcome in waiting):
            pass
        for _ in range(40):
            one.send(data(prefixed(answer(999, b"1" * 100_000))))  # More than the buffers hold.
        serving = threading.Thread(target=echo, args=(one, 3), daemon=True)
        serving.start()
        for outcome in waiting:
            assert len(outcome.get()["text"]) == 900_000


def test_a_server_that_pings_and_does_not_read_is_given_up() -> None:
    with peer() as one:
        waiting = one.call()
        one.wait_for_call()
        with pytest.raises(OSError):
            one.send(frame(PING, body=bytes(8)) * (100 * MAX_UNWRITTEN))
        with pytest.raises(BridgeClosed):
            waiting.get()


def test_large_answers_pass_in_a_bounded_window() -> None:
    text = "x" * (20 * 1024 * 1024)
    with peer() as one:
        waiting = one.call()
        one.wait_for_call()
        left = {0: WINDOW, 1: WINDOW}
        stream = prefixed(answer(1, f'"{text}"'.encode()))
        while stream:
            size = min(left[0], left[1], FRAME, len(stream))
            if size:
                one.send(frame(DATA, 0, 1, stream[:size]))
                stream, left = stream[size:], {key: value - size for key, value in left.items()}
            for kind, _, which, body in one.frames(0 if size else 5):
                if kind == WINDOW_UPDATE:
                    left[which] += int.from_bytes(body, "big")
                    if size == 0:
                        break
        assert waiting.get() == text


def test_a_killed_server_ends_every_call() -> None:
    with peer() as one:
        waiting = [one.call(n=n) for n in range(5)]
        one.wait_for_call()
        one.send(data(ANSWER)[:7])
        one.socket.close()
        for outcome in waiting:
            with pytest.raises(BridgeClosed):
                outcome.get()


def test_headers_are_counted_as_one_block() -> None:
    with peer() as one:
        waiting = one.call()
        one.wait_for_call()
        one.send(headers(flags=0), *[frame(CONTINUATION, 0, 1, bytes(1000))] * 50)
        one.send(frame(CONTINUATION, END_HEADERS, 1, b""), frame(HEADERS, END_HEADERS, 1, RESPONSE))
        one.send(data(ANSWER))
        assert waiting.get() == "yes"
