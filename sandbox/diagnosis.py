"""Why a sandbox did not start, from what the launcher said: the cause and the mend.

The launcher's texts are bubblewrap's own (0.8 to 0.11), the loader's and the kernel's. The first
row that fits is taken: what is more particular stands above.
"""

from __future__ import annotations

from dataclasses import dataclass

PROFILE_FILE = "/etc/apparmor.d/limbeck-bwrap"

_APPARMOR = (
    "allow user namespaces to the bwrap in use, by its exact path. Write this to {file}:\n"
    "{profile}"
    "and load it: apparmor_parser -r {file}. A distribution's profile covers /usr/bin/bwrap alone. "
    "Or use the docker backend."
)
_CONTAINER_MAY = (
    "in a container: give it a seccomp profile that allows user namespaces "
    "(docker: --security-opt seccomp=FILE); on a host: sysctl -w "
    "kernel.unprivileged_userns_clone=1 where that key exists. Or use the docker backend."
)
_COUNTS = (
    "raise what is 0 or too low among /proc/sys/user/max_*_namespaces; inside another sandbox "
    "(bubblewrap with --disable-userns) run limbeck outside of it."
)
_KERNEL = "use a kernel with CONFIG_USER_NS, or the docker backend."
_UNMASK = (
    "run the outer container with an unmasked /proc (docker: --security-opt "
    "systempaths=unconfined; Kubernetes: procMount: Unmasked), or use the docker backend."
)
_MOUNTS = (
    "run the outer container with an AppArmor profile that allows mounts (docker: --security-opt "
    "apparmor=PROFILE with `mount,` and `userns,`), or use the docker backend."
)
_BWRAP = "name a bwrap that anybody may read with the key `bwrap`: {bwrap} is not one."
_PYTHON = "name a Python that anybody may read with the key `python`: {python} is not one."


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    mark: str
    """Part of what was written."""
    cause: str
    mend: str


TABLE = (
    Row("setting up uid map: Permission denied", "AppArmor forbids it user namespaces", _APPARMOR),
    Row("setting up gid map: Permission denied", "AppArmor forbids it user namespaces", _APPARMOR),
    Row(
        "writing to setgroups: Permission denied",
        "AppArmor gives it a user namespace without capabilities",
        _APPARMOR,
    ),
    Row(
        "loopback: Failed RTM_NEW",
        "AppArmor gives it a user namespace without capabilities",
        _APPARMOR,
    ),
    Row(
        "No permissions to creat",  # "create" or "creating", by its version
        "user namespaces are switched off here",
        _CONTAINER_MAY,
    ),
    Row(
        "Creating new namespace failed: Operation not permitted",
        "user namespaces are switched off here",
        _CONTAINER_MAY,
    ),
    Row("ENOSPC", "the kernel's limit of namespaces is reached or zero", _COUNTS),
    Row("nesting depth", "the kernel's limit of namespaces is reached or zero", _COUNTS),
    Row(
        "the kernel does not support user namespaces",
        "this kernel has no user namespaces",
        _KERNEL,
    ),
    Row("Can't mount proc", "the outer container masks /proc", _UNMASK),
    Row("Failed to make / slave", "the outer AppArmor profile forbids mounts", _MOUNTS),
    Row(
        "bwrap: error while loading shared libraries",
        "bwrap's own libraries cannot be reached by the sandbox's uid",
        _BWRAP,
    ),
    Row(
        "Can't find source path",
        "a file of Python's cannot be reached by the sandbox's uid",
        _PYTHON,
    ),
    Row(
        "Permission denied",
        "a file of Python's cannot be reached by the sandbox's uid",
        _PYTHON,
    ),
)


def explain(text: str, python: str, bwrap: str) -> str:
    """The cause and the mend of what the launcher wrote, and its last line as it stands."""
    last = (text.strip().splitlines() or ["it ended without a word"])[-1][:500]
    for row in TABLE:
        if row.mark in text:
            mend = row.mend.format(
                bwrap=bwrap, python=python, file=PROFILE_FILE, profile=apparmor_profile(bwrap)
            )
            return f"{row.cause} ({last})\nHint: {mend}"
    return f"the sandbox did not start: {last}"


def apparmor_profile(bwrap: str) -> str:
    """A profile that changes nothing but this: the program at this path may have user namespaces.

    In the form of AppArmor 4, as distributions ship theirs for browsers.
    """
    return (
        "abi <abi/4.0>,\n"
        "include <tunables/global>\n"
        f'profile limbeck-bwrap "{_escaped(bwrap)}" flags=(unconfined) {{\n'
        "  userns,\n"
        "}\n"
    )


def _escaped(path: str) -> str:
    """What AppArmor would read as a pattern is meant as it stands."""
    return "".join(f"\\{one}" if one in '\\*?[]{}^"' else one for one in path)
