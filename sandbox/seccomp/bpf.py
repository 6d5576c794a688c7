"""A policy as classic BPF, the language in which the kernel takes filters of system calls.

    the architecture is another one      kill
    the number is of the x32 table       kill
    binary search over ranges of numbers that share an answer; each leaf returns

Nothing is a loop and every jump leads forward, so that the code is built as lists: a test, what
follows when it fails, what it jumps to.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .policy import LOW_32, Condition, Policy

KILL_PROCESS = 0x8000_0000
ERRNO = 0x0005_0000
ALLOW = 0x7FFF_0000

AUDIT_ARCHITECTURES = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
X32_BIT = 0x4000_0000

_LOAD, _AND = 0x20, 0x54  # BPF_LD|BPF_W|BPF_ABS, BPF_ALU|BPF_AND|BPF_K
_JUMP, _JUMP_EQUAL, _JUMP_AT_LEAST = 0x05, 0x15, 0x35
_RETURN = 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data

_LONGEST = 255
"""Instructions that a conditional jump can pass."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One `struct sock_filter`."""

    code: int
    value: int
    when_true: int = 0
    when_false: int = 0

    def pack(self) -> bytes:
        """As the kernel reads it on a little-endian machine."""
        return struct.pack("<HBBI", self.code, self.when_true, self.when_false, self.value)


Code = list[Instruction]


def assemble(policy: Policy, machine: str, numbers: Mapping[str, int]) -> bytes:
    """The program for one architecture."""
    ranges = _ranges({number: _answer(policy, name) for name, number in numbers.items()})
    code = [
        Instruction(_LOAD, _ARCHITECTURE),
        Instruction(_JUMP_EQUAL, AUDIT_ARCHITECTURES[machine], 1, 0),
        Instruction(_RETURN, KILL_PROCESS),
        Instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        code += [
            Instruction(_JUMP_AT_LEAST, X32_BIT, 0, 1),
            Instruction(_RETURN, KILL_PROCESS),
        ]
    code += _search(ranges)
    return b"".join(one.pack() for one in code)


def _answer(policy: Policy, name: str) -> Code:
    if name in policy.allowed:
        return [Instruction(_RETURN, ALLOW)]
    refusal = Instruction(_RETURN, ERRNO | policy.error(name))
    if name not in policy.conditions:
        return [refusal]
    code: Code = [Instruction(_RETURN, ALLOW)]
    for condition in reversed(policy.conditions[name]):
        code = _when(condition, code, refusal)
    return code


def _when(condition: Condition, then: Code, refusal: Instruction) -> Code:
    """Go on with `then` when the condition holds, else refuse."""
    code = [Instruction(_LOAD, _ARGUMENTS + 8 * condition.argument)]
    if condition.mask != LOW_32:
        code.append(Instruction(_AND, condition.mask))
    for left, value in zip(range(len(condition.values), 0, -1), condition.values, strict=True):
        code.append(Instruction(_JUMP_EQUAL, value, left, 0))
    return [*code, refusal, *then]


def _ranges(answers: Mapping[int, Code]) -> list[tuple[int, Code]]:
    """First number and answer of each range; numbers without an answer are unknown ones."""
    unknown = [Instruction(_RETURN, ERRNO | errno.ENOSYS)]
    ranges: list[tuple[int, Code]] = []
    for number in range(max(answers) + 2):
        answer = answers.get(number, unknown)
        if not ranges or ranges[-1][1] != answer:
            ranges.append((number, answer))
    return ranges


def _search(ranges: Sequence[tuple[int, Code]]) -> Code:
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    below, above = _search(ranges[:middle]), _search(ranges[middle:])
    first = ranges[middle][0]
    if len(below) <= _LONGEST:
        test = [Instruction(_JUMP_AT_LEAST, first, len(below), 0)]
    else:
        test = [Instruction(_JUMP_AT_LEAST, first, 0, 1), Instruction(_JUMP, len(below))]
    return [*test, *below, *above]
