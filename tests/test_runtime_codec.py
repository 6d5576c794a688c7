"""The worker's own coding of the bridge's messages, against protobuf's."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limbeck.runtime import codec, wire_pb2

numbers = st.integers(0, 2**64 - 1)
small = st.integers(0, 2**32 - 1)
texts = st.text(st.characters(codec="utf-8"), max_size=40)
blobs = st.binary(max_size=300)


def parsed(data: bytes) -> wire_pb2.FromSandbox:
    return wire_pb2.FromSandbox.FromString(data)


@given(small, texts, texts)
def test_hello(protocol: int, python: str, gate: str) -> None:
    wanted = wire_pb2.Hello(protocol=protocol, python=python, gate=gate)
    assert parsed(codec.hello(protocol, python, gate)) == wire_pb2.FromSandbox(hello=wanted)


@given(
    blobs,
    st.lists(st.tuples(numbers, texts, blobs), max_size=5),
    st.lists(st.tuples(numbers, small), max_size=5),
    st.lists(numbers, max_size=5),
    st.booleans(),
)
def test_parts_joined_make_one_message(token, calls, credits, cancels, pong) -> None:
    data = b"".join(
        [
            codec.token(token),
            *(codec.call(*one) for one in calls),
            *(codec.credit(*one) for one in credits),
            codec.cancels(cancels),
            codec.PONG if pong else b"",
        ]
    )
    assert parsed(data) == wire_pb2.FromSandbox(
        token=token,
        calls=[wire_pb2.ToolCall(id=i, tool=t, arguments=a) for i, t, a in calls],
        credits=[wire_pb2.Credit(id=i, parts=p) for i, p in credits],
        cancels=cancels,
        pong=pong,
    )


@given(st.integers(-(2**31), 2**31 - 1), blobs)
def test_done(exit_code: int, error: bytes) -> None:
    wanted = wire_pb2.Done(exit_code=exit_code, error=error)
    assert parsed(codec.done(exit_code, error)) == wire_pb2.FromSandbox(done=wanted)


@given(
    st.tuples(texts, blobs, texts, st.booleans(), small, small, st.lists(texts)) | st.none(),
    st.booleans(),
)
def test_a_job(job, ping: bool) -> None:
    keys = ("execution_id", "token", "script", "gate", "max_inflight", "max_arguments")
    keys += ("open_modules",)
    message = wire_pb2.FromHost(ping=ping)
    if job is not None:
        message.job.CopyFrom(wire_pb2.Job(**dict(zip(keys, job, strict=True))))
    read = codec.read_from_host(message.SerializeToString())
    assert read.ping == ping
    assert (read.job is None) is (job is None)
    if job is not None:
        assert tuple(getattr(read.job, key) for key in keys) == job


@given(
    st.lists(
        st.tuples(numbers, blobs, blobs, st.booleans(), st.lists(blobs, max_size=4), st.booleans()),
        max_size=5,
    )
)
def test_results(results) -> None:
    keys = ("id", "value", "error", "stream", "rows", "last")
    message = wire_pb2.FromHost(
        results=[wire_pb2.ToolResult(**dict(zip(keys, one, strict=True))) for one in results]
    )
    read = codec.read_from_host(message.SerializeToString())
    assert [tuple(getattr(one, key) for key in keys) for one in read.results] == results


def test_fields_of_a_newer_host_are_passed_over() -> None:
    unknown = b"\x78\x05" + b"\x79" + b"12345678" + b"\x7a\x03abc" + b"\x7d" + b"1234"
    data = unknown + wire_pb2.FromHost(ping=True).SerializeToString() + unknown
    assert codec.read_from_host(data).ping


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(codec.CodecError):
        codec.read_from_host(data)


@pytest.mark.parametrize(
    "data",
    [b"\x80", b"\x12\x05ab", b"\x08\x01", b"\x10\x01", b"\x0b", b"\x18" + b"\xff" * 11, b"\x79123"],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(codec.CodecError):
        codec.read_from_host(data)
