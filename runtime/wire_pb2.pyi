from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FromSandbox(_message.Message):
    __slots__ = ("hello", "token", "calls", "credits", "cancels", "done")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    CALLS_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    CANCELS_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    token: bytes
    calls: _containers.RepeatedCompositeFieldContainer[ToolCall]
    credits: _containers.RepeatedCompositeFieldContainer[Credit]
    cancels: _containers.RepeatedScalarFieldContainer[int]
    done: Done
    def __init__(
        self,
        hello: _Optional[_Union[Hello, _Mapping]] = ...,
        token: _Optional[bytes] = ...,
        calls: _Optional[_Iterable[_Union[ToolCall, _Mapping]]] = ...,
        credits: _Optional[_Iterable[_Union[Credit, _Mapping]]] = ...,
        cancels: _Optional[_Iterable[int]] = ...,
        done: _Optional[_Union[Done, _Mapping]] = ...,
    ) -> None: ...

class FromHost(_message.Message):
    __slots__ = ("job", "results")
    JOB_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    job: Job
    results: _containers.RepeatedCompositeFieldContainer[ToolResult]
    def __init__(
        self,
        job: _Optional[_Union[Job, _Mapping]] = ...,
        results: _Optional[_Iterable[_Union[ToolResult, _Mapping]]] = ...,
    ) -> None: ...

class Hello(_message.Message):
    __slots__ = ("protocol", "python", "gate")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    PYTHON_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    python: str
    gate: str
    def __init__(
        self,
        protocol: _Optional[int] = ...,
        python: _Optional[str] = ...,
        gate: _Optional[str] = ...,
    ) -> None: ...

class Job(_message.Message):
    __slots__ = ("execution_id", "token", "script", "gate", "max_inflight", "max_arguments")
    EXECUTION_ID_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    SCRIPT_FIELD_NUMBER: _ClassVar[int]
    GATE_FIELD_NUMBER: _ClassVar[int]
    MAX_INFLIGHT_FIELD_NUMBER: _ClassVar[int]
    MAX_ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    execution_id: str
    token: bytes
    script: str
    gate: bool
    max_inflight: int
    max_arguments: int
    def __init__(
        self,
        execution_id: _Optional[str] = ...,
        token: _Optional[bytes] = ...,
        script: _Optional[str] = ...,
        gate: _Optional[bool] = ...,
        max_inflight: _Optional[int] = ...,
        max_arguments: _Optional[int] = ...,
    ) -> None: ...

class ToolCall(_message.Message):
    __slots__ = ("id", "tool", "arguments")
    ID_FIELD_NUMBER: _ClassVar[int]
    TOOL_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    id: int
    tool: str
    arguments: bytes
    def __init__(
        self,
        id: _Optional[int] = ...,
        tool: _Optional[str] = ...,
        arguments: _Optional[bytes] = ...,
    ) -> None: ...

class Credit(_message.Message):
    __slots__ = ("id", "parts")
    ID_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    id: int
    parts: int
    def __init__(self, id: _Optional[int] = ..., parts: _Optional[int] = ...) -> None: ...

class ToolResult(_message.Message):
    __slots__ = ("id", "value", "error", "stream", "rows", "last")
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
        id: _Optional[int] = ...,
        value: _Optional[bytes] = ...,
        error: _Optional[bytes] = ...,
        stream: _Optional[bool] = ...,
        rows: _Optional[_Iterable[bytes]] = ...,
        last: _Optional[bool] = ...,
    ) -> None: ...

class Done(_message.Message):
    __slots__ = ("exit_code", "error")
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    exit_code: int
    error: bytes
    def __init__(self, exit_code: _Optional[int] = ..., error: _Optional[bytes] = ...) -> None: ...
