"""The filter of system calls, ready for use: JSON for Docker, classic BPF for bubblewrap.

SAFETY: `build.py` makes the files; what may pass is decided in `policy.py`. There is no start
without a filter: an architecture that has none is refused by `check`.
"""

from __future__ import annotations

import json
import platform
from pathlib import Path

from ...runtime.errors import ConfigurationError

ARCHITECTURES = ("x86_64", "aarch64")
"""As `platform.machine` names them. The filter for aarch64 is built, and not run by our tests."""

PROBE = """
import errno, json, os, socket
lines = open("/proc/self/status").read().splitlines()
status = dict(line.split(":", 1) for line in lines if ":" in line)
passed = []
for name, try_it in (
    ("an internet socket", lambda: socket.socket(socket.AF_INET).close()),
    ("a memfd", lambda: os.close(os.memfd_create("probe"))),
    ("other cores", lambda: os.sched_setaffinity(0, os.sched_getaffinity(0))),
):
    try:
        try_it()
        passed.append(name)
    except OSError as error:
        if error.errno != errno.EPERM:
            passed.append(name)
print(json.dumps({"seccomp": int(status["Seccomp"]), "passed": passed}))
"""
"""A script that proves the filter by trying; `read_proof` reads what it prints."""

_FOLDER = Path(__file__).resolve().parent


def filter_path(machine: str = "") -> Path:
    """The BPF program for an architecture, by default this one. Raises ConfigurationError."""
    machine = machine or platform.machine()
    path = _FOLDER / f"{machine}.bpf"
    if machine not in ARCHITECTURES or not path.is_file():
        raise ConfigurationError(
            "seccomp",
            f"there is no filter of system calls for {machine}",
            f"run limbeck on {' or '.join(ARCHITECTURES)}: no sandbox starts without a filter.",
        )
    return path


def docker_profile(machine: str = "") -> str:
    """The policy as `--security-opt seccomp=` takes it. Raises ConfigurationError."""
    filter_path(machine)
    return (_FOLDER / "policy.json").read_text("utf-8")


def read_proof(printed: str) -> str | None:
    """None when PROBE's line says that the filter holds, else what is wrong."""
    try:
        proof = json.loads(printed)
        mode, passed = int(proof["seccomp"]), [str(name) for name in proof["passed"]]
    except (ValueError, TypeError, KeyError):
        return "the filter of system calls could not be proven"
    if mode != 2:
        return f"no filter of system calls is active (seccomp mode {mode})"
    if passed:
        return f"the filter of system calls let through: {', '.join(passed)}"
    return None
