from collections.abc import Iterable as _Iterable
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar

from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from google.protobuf.internal import containers as _containers

DESCRIPTOR: _descriptor.FileDescriptor

class FromSandbox(_message.Message):
    __slots__ = ("calls", "cancels", "credits", "done", "hello", "pong", "token")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    CANCELS_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    token: bytes
    calls: _containers.RepeatedCompositeFieldContainer[ToolCall]
    credits: _containers.RepeatedCompositeFieldContainer[Credit]
    cancels: _containers.RepeatedScalarFieldContainer[int]
    done: Done
    pong: bool
    def __init__(
        self,
        hello: Hello | _Mapping | None = ...,
        token: bytes | None = ...,
        calls: _Iterable[ToolCall | _Mapping] | None = ...,
        credits: _Iterable[Credit | _Mapping] | None = ...,
        cancels: _Iterable[int] | None = ...,
        done: Done | _Mapping | None = ...,
        pong: bool | None = ...,
    ) -> None: ...

class FromHost(_message.Message):
    __slots__ = ("job", "ping", "results")
    JOB_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    job: Job
    results: _containers.RepeatedCompositeFieldContainer[ToolResult]
    ping: bool
    def __init__(
        self,
        job: Job | _Mapping | None = ...,
        results: _Iterable[ToolResult | _Mapping] | None = ...,
        ping: bool | None = ...,
    ) -> None: ...

class Hello(_message.Message):
    __slots__ = ("gate", "protocol", "python")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    PYTHON_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    python: str
    gate: str
    def __init__(
        self, protocol: int | None = ..., python: str | None = ..., gate: str | None = ...
    ) -> None: ...

class Job(_message.Message):
    __slots__ = (
        "cpu_seconds",
        "execution_id",
        "gate",
        "keep",
        "max_arguments",
        "max_inflight",
        "number",
        "open_modules",
        "script",
        "token",
    )
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    SCRIPT_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    MAX_INFLIGHT_FIELD_NUMBER: _ClassVar[int]
    MAX_ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    OPEN_MODULES_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CPU_SECONDS_FIELD_NUMBER: _ClassVar[int]
    execution_id: str
    token: bytes
    script: str
    gate: bool
    max_inflight: int
    max_arguments: int
    open_modules: _containers.RepeatedScalarFieldContainer[str]
    keep: bool
    number: int
    cpu_seconds: int
    def __init__(
        self,
        execution_id: str | None = ...,
        token: bytes | None = ...,
        script: str | None = ...,
        gate: bool | None = ...,
        max_inflight: int | None = ...,
        max_arguments: int | None = ...,
        open_modules: _Iterable[str] | None = ...,
        keep: bool | None = ...,
        number: int | None = ...,
        cpu_seconds: int | None = ...,
    ) -> None: ...

class ToolCall(_message.Message):
    __slots__ = ("arguments", "id", "tool")
    ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    id: int
    tool: str
    arguments: bytes
    def __init__(
        self, id: int | None = ..., tool: str | None = ..., arguments: bytes | None = ...
    ) -> None: ...

class Credit(_message.Message):
    __slots__ = ("id", "parts")
    ID_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    id: int
    parts: int
    def __init__(self, id: int | None = ..., parts: int | None = ...) -> None: ...

class ToolResult(_message.Message):
    __slots__ = ("error", "id", "last", "rows", "stream", "value")
    ID_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    id: int
    value: bytes
    error: bytes
    stream: bool
    rows: _containers.RepeatedScalarFieldContainer[bytes]
    last: bool
    def __init__(
        self,
        id: int | None = ...,
        value: bytes | None = ...,
        error: bytes | None = ...,
        stream: bool | None = ...,
        rows: _Iterable[bytes] | None = ...,
        last: bool | None = ...,
    ) -> None: ...

class Done(_message.Message):
    __slots__ = ("error", "exit_code", "number")
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    exit_code: int
    error: bytes
    number: int
    def __init__(
        self, exit_code: int | None = ..., error: bytes | None = ..., number: int | None = ...
    ) -> None: ...
