"""Which system calls a sandbox may make: the moby profile, resolved, and what is taken from it.

The profile of Docker's own (`moby-default.json`) is deny-by-default and kept up to date with new
kernels. It is resolved for a process without capabilities on its native architecture; then the
subtractions below make it smaller. What is left out by both is refused with EPERM, a number that
nobody here knows with ENOSYS, so that a C library falls back to an older call.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LOW_32 = 0xFFFF_FFFF
NAMESPACES = 0x7E02_0000
"""Every CLONE_NEW* that clone takes."""

SUBTRACTIONS = {
    "other processes' memory and descriptors": (
        "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise "
        "process_mrelease"
    ),
    "memory that no limit of a process sees, only the kernel's where there is a cgroup": (
        "memfd_create memfd_secret remap_file_pages shmget shmat shmctl shmdt semget semop semctl "
        "semtimedop msgget msgsnd msgrcv msgctl ipc mq_open mq_unlink mq_timedsend "
        "mq_timedreceive mq_notify mq_getsetattr setxattr lsetxattr fsetxattr setxattrat"
    ),
    "large and often broken parts of the kernel that Python does not need": (
        "io_setup io_submit io_getevents io_pgetevents io_cancel io_destroy splice tee vmsplice "
        "fanotify_mark inotify_init inotify_init1 inotify_add_watch inotify_rm_watch seccomp "
        "modify_ldt"
    ),
    "what reaches the whole host, or tells of it": (
        "sync syncfs name_to_handle_at statmount listmount mincore adjtimex clock_adjtime"
    ),
    "limits that a script could widen": "sched_setaffinity ioprio_set capset",
    "a clock that signals: SIGCONT would wake what was frozen": "timer_create",
    "one call that stands for many, on 32-bit machines": "socketcall",
}
"""Reason to names: what the moby profile allows and this policy does not."""

SOCKET_OPTIONS = (
    socket.SO_REUSEADDR, socket.SO_KEEPALIVE, socket.SO_LINGER, socket.SO_REUSEPORT,
    socket.SO_PASSCRED, socket.SO_RCVTIMEO, socket.SO_SNDTIMEO,
)  # fmt: skip
"""No buffer sizes (kernel memory that nobody counts), no filters, no marks."""

IOCTLS = (
    0x5401,  # TCGETS: isatty
    0x802C542A,  # TCGETS2: isatty of newer C libraries
    0x540F,  # TIOCGPGRP
    0x5411,  # TIOCOUTQ
    0x5413,  # TIOCGWINSZ
    0x541B,  # FIONREAD
    0x5421,  # FIONBIO
    0x5450,  # FIONCLEX
    0x5451,  # FIOCLEX
    0x5452,  # FIOASYNC
)
"""Compared on 32 bits, as the kernel does. No TIOCSTI, no TIOCLINUX, nothing of devices."""

FCNTLS = (0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 36, 37, 38, 1030, 1032)
"""Duplicates, flags, locks, and what asks. No F_SETOWN and F_SETSIG, by which a descriptor sends
SIGCONT to what was frozen, no F_SETPIPE_SZ (kernel memory that nobody counts), no leases.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Holds when an argument, masked, has one of some values; at most 32 bits of it count."""

    argument: int
    values: tuple[int, ...]
    mask: int = LOW_32


CONDITIONS: Mapping[str, tuple[Condition, ...]] = {
    "socket": (Condition(argument=0, values=(socket.AF_UNIX,)),),
    "socketpair": (Condition(argument=0, values=(socket.AF_UNIX,)),),
    "clone": (Condition(argument=0, values=(0,), mask=NAMESPACES),),
    "ioctl": (Condition(argument=1, values=IOCTLS),),
    "fcntl": (Condition(argument=1, values=FCNTLS),),
    "personality": (Condition(argument=0, values=(0, LOW_32)),),
    "setsockopt": (
        Condition(argument=1, values=(socket.SOL_SOCKET,)),
        Condition(argument=2, values=SOCKET_OPTIONS),
    ),
    # Of the caller alone: process 1 has the same uid, and these ask for no more than that.
    "prlimit64": (Condition(argument=0, values=(0,)),),
    "setpriority": (
        Condition(argument=0, values=(0,)),  # PRIO_PROCESS
        Condition(argument=1, values=(0,)),
    ),
    "sched_setscheduler": (Condition(argument=0, values=(0,)),),
    "sched_setparam": (Condition(argument=0, values=(0,)),),
    "sched_setattr": (Condition(argument=0, values=(0,)),),
}
"""Allowed only when all conditions of a call hold, else EPERM."""

# Its flags lie in memory that no filter can read; with ENOSYS a C library takes clone.
UNKNOWN = frozenset({"clone3"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A decision for each system call that is known by name."""

    allowed: frozenset[str]
    conditions: Mapping[str, tuple[Condition, ...]]
    unknown: frozenset[str]
    """Answered with ENOSYS."""

    def error(self, name: str) -> int:
        """The error of a call that is not allowed."""
        return errno.ENOSYS if name in self.unknown else errno.EPERM


def make_policy(profile: Mapping[str, Any], numbers: Mapping[str, Mapping[str, int]]) -> Policy:
    """Resolve a moby profile and subtract. Raises ValueError when it is not what we know."""
    if profile["defaultAction"] != "SCMP_ACT_ERRNO":
        raise ValueError("the profile allows by default")
    known = {name for table in numbers.values() for name in table}
    plain = {name for rule in _resolved(profile) for name in rule["names"]} & known
    return Policy(
        allowed=frozenset(plain - _subtracted() - set(CONDITIONS) - UNKNOWN),
        conditions=CONDITIONS,
        unknown=UNKNOWN,
    )


def _subtracted() -> set[str]:
    return {name for names in SUBTRACTIONS.values() for name in names.split()}


def _resolved(profile: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The rules that allow without a condition: no capability, a kernel of ours, our machines."""
    for rule in profile["syscalls"]:
        needed = rule.get("includes", {})
        if set(needed) - {"caps", "arches", "minKernel"}:
            raise ValueError(f"the profile has a condition that nobody here knows: {needed}")
        ours = set(needed.get("arches", ["amd64"])) & {"amd64", "arm64"}
        if rule["action"] == "SCMP_ACT_ALLOW" and ours and not needed.get("caps"):
            # A rule with arguments is one of `CONDITIONS`, or refused.
            if not rule.get("args"):
                yield rule
            elif set(rule["names"]) - set(CONDITIONS):
                raise ValueError(f"the profile has a new rule with arguments: {rule['names']}")
