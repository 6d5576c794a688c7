"""Makes the filter's files from the policy: `python -m limbeck.sandbox.seccomp.build`.

The same input gives the same bytes; a test compares them with what is committed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import ARCHITECTURES
from .bpf import assemble
from .policy import LOW_32, Condition, Policy, make_policy

FOLDER = Path(__file__).resolve().parent

Numbers = Mapping[str, Mapping[str, int]]
"""Architecture to name to number."""


def build() -> dict[str, bytes]:
    """File name to content."""
    numbers = read_numbers((FOLDER / "numbers.txt").read_text("utf-8"))
    profile = json.loads((FOLDER / "moby-default.json").read_text("utf-8"))
    policy = make_policy(profile, numbers)
    text = json.dumps(docker_form(policy, numbers), indent=1) + "\n"
    return {
        "policy.json": text.encode(),
        **{f"{name}.bpf": assemble(policy, name, numbers[name]) for name in ARCHITECTURES},
    }


def read_numbers(text: str) -> Numbers:
    """Read `numbers.txt`: a name and its number on each architecture, or `-`."""
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {
        machine: {row[0]: int(row[column]) for row in rows if row[column] != "-"}
        for column, machine in enumerate(ARCHITECTURES, 1)
    }


def docker_form(policy: Policy, numbers: Numbers) -> dict[str, Any]:
    """The policy as Docker's loader reads it.

    Every known call is named: runc answers ENOSYS above the highest number that is named.
    """
    known = {name for table in numbers.values() for name in table}
    refused = known - policy.allowed - set(policy.conditions) - policy.unknown
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": policy.error(""),
        # Without sub-architectures: the tables of 32-bit programs and x32 kill.
        "archMap": [
            {"architecture": f"SCMP_ARCH_{machine.upper()}", "subArchitectures": []}
            for machine in ARCHITECTURES
        ],
        "syscalls": [
            {"names": sorted(policy.allowed), "action": "SCMP_ACT_ALLOW"},
            *(
                {"names": [name], "action": "SCMP_ACT_ALLOW", "args": arguments}
                for name, conditions in sorted(policy.conditions.items())
                for arguments in _products(conditions)
            ),
            *(
                {"names": sorted(names), "action": "SCMP_ACT_ERRNO", "errnoRet": policy.error(one)}
                for one, names in (("", refused), (min(policy.unknown), policy.unknown))
            ),
        ],
    }


def _products(conditions: tuple[Condition, ...]) -> list[list[dict[str, Any]]]:
    """One list of comparisons, all of which must hold, for each way in which they can."""
    ways: list[list[dict[str, Any]]] = [[]]
    for condition in conditions:
        ways = [[*way, _compare(condition, one)] for way in ways for one in condition.values]
    return ways


def _compare(condition: Condition, value: int) -> dict[str, Any]:
    return {
        "index": condition.argument,
        "op": "SCMP_CMP_MASKED_EQ",
        "value": condition.mask & LOW_32,
        "valueTwo": value,
    }


def main() -> None:
    """Write the files beside this one."""
    for name, content in build().items():
        (FOLDER / name).write_bytes(content)
        print(f"{name}: {len(content)} bytes")


if __name__ == "__main__":
    main()
