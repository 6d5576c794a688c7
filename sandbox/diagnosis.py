"""Why a sandbox did not start, from what the launcher said: the cause and the mend."""

from __future__ import annotations

_KNOWN = (
    (
        "setting up uid map: Permission denied",
        "AppArmor forbids user namespaces to this program",
        "add an AppArmor profile with `userns,` for the bwrap in use ({bwrap}), or use docker.",
    ),
    (
        "RTM_NEWADDR",
        "AppArmor gives this program a user namespace without capabilities",
        "add an AppArmor profile with `userns,` for the bwrap in use ({bwrap}), or use docker.",
    ),
    (
        "No permissions to create new namespace",
        "user namespaces are switched off here",
        "inside a container allow them (its seccomp profile); else set "
        "kernel.unprivileged_userns_clone=1, or use docker.",
    ),
    (
        "Creating new namespace failed: Operation not permitted",
        "user namespaces are switched off here",
        "inside a container allow them (its seccomp profile), or use docker.",
    ),
    (
        "ENOSPC",
        "the kernel's limit of namespaces is reached or zero",
        "raise user.max_user_namespaces and its neighbours in /proc/sys/user.",
    ),
    (
        "nesting depth",
        "the kernel's limit of namespaces is reached or zero",
        "raise user.max_user_namespaces and its neighbours in /proc/sys/user.",
    ),
    (
        "Can't mount proc",
        "the outer container masks /proc",
        "run it with an unmasked /proc (docker: --security-opt systempaths=unconfined), "
        "or use docker as the backend.",
    ),
    (
        "Failed to make / slave",
        "the outer AppArmor profile forbids mounts",
        "run the outer container with a profile that allows them.",
    ),
    (
        "bwrap: error while loading shared libraries",
        "bwrap's own libraries cannot be reached by the sandbox's uid",
        "name a bwrap that anybody may read with the key `bwrap`: {bwrap} is not one.",
    ),
    (
        "Can't find source path",
        "a file of Python's cannot be reached by the sandbox's uid",
        "name a Python that anybody may read with the key `python`: {python} is not one.",
    ),
    (
        "Permission denied",
        "a file of Python's cannot be reached by the sandbox's uid",
        "name a Python that anybody may read with the key `python`: {python} is not one.",
    ),
)


def explain(text: str, python: str, bwrap: str) -> str:
    """The cause and the mend of what the launcher wrote, and its last line as it stands."""
    last = (text.strip().splitlines() or ["it ended without a word"])[-1][:500]
    for mark, cause, mend in _KNOWN:
        if mark in text:
            return f"{cause} ({last})\nHint: {mend.format(bwrap=bwrap, python=python)}"
    return f"the sandbox did not start: {last}"
