"""Filters of system calls worked through by hand: classic BPF as the kernel does, Docker's JSON as runc does."""

import struct
from collections.abc import Sequence
from typing import Any

from limbeck.sandbox.seccomp import bpf

ALLOW, KILL = "allow", "kill"


def run_bpf(program: bytes, architecture: int, number: int, arguments: Sequence[int] = ()) -> Any:
    """The answer of a BPF program: "allow", "kill", or an errno."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    code = list(struct.iter_unpack("<HBBI", program))
    accumulator, at = 0, 0
    for _ in range(len(code)):
        operation, when_true, when_false, value = code[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif operation == 0x54:
            accumulator &= value
        elif operation == 0x05:
            at += value
        elif operation == 0x15:
            at += when_true if accumulator == value else when_false
        elif operation == 0x35:
            at += when_true if accumulator >= value else when_false
        elif operation == 0x06:
            return _meaning(value)
        else:
            raise AssertionError(f"{operation:#x} is none of ours")
    raise AssertionError("the program does not end")


def _meaning(value: int) -> Any:
    if value & 0xFFFF_0000 == bpf.ERRNO:
        return value & 0xFFFF
    return {bpf.ALLOW: ALLOW, bpf.KILL_PROCESS: KILL}[value]


def run_profile(profile: dict[str, Any], name: str, arguments: Sequence[int] = ()) -> Any:
    """The answer of a Docker profile to a call that runc knows by name."""
    whole = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    for rule in profile["syscalls"]:
        if name in rule["names"] and all(
            whole[one["index"]] & one["value"] == one["valueTwo"] for one in rule.get("args", [])
        ):
            return ALLOW if rule["action"] == "SCMP_ACT_ALLOW" else rule["errnoRet"]
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    return profile["defaultErrnoRet"]
