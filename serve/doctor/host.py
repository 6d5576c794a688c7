"""What the host says about itself: for information, or a warning where a wall is thinner by it."""

from __future__ import annotations

import grp
import os
import platform
from pathlib import Path

from .finding import Finding, Mark

PROC = Path("/proc")

_NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")


def kernel() -> Finding:
    """Its release."""
    release = platform.release()
    return Finding(
        name="kernel",
        text=f"{release} {platform.machine()}",
        values={"release": release, "machine": platform.machine()},
    )


def user() -> Finding:
    """Whose uid sandboxes have."""
    uid = os.geteuid()
    text = (
        "root; each sandbox has a uid of its own"
        if uid == 0
        else f"uid {uid}; sandboxes run as this uid in namespaces of their own"
    )
    return Finding(name="user", text=text, values={"euid": uid})


def seccomp(proc: Path = PROC) -> Finding:
    """Whether this very process is filtered: then it runs in a container, or a service's cage."""
    mode = status_field(_read(proc / "self/status") or "", "Seccomp")
    words = {"0": "none", "1": "strict", "2": "a filter"}
    return Finding(
        name="seccomp",
        text=f"of this process: {words.get(mode or '', 'unknown')}",
        values={"mode": int(mode) if mode is not None and mode.isdigit() else None},
    )


def user_namespaces(proc: Path = PROC, *, bwrap_works: bool) -> Finding:
    """The kernel's switches. They only explain: what counts is whether bubblewrap ran."""
    switches = {
        name: _read(proc / "sys" / name.replace(".", "/"))
        for name in (
            *(f"user.max_{kind}_namespaces" for kind in _NAMESPACES),
            "kernel.unprivileged_userns_clone",
            "kernel.apparmor_restrict_unprivileged_userns",
        )
    }
    values = {name: int(text) for name, text in switches.items() if text and text.isdigit()}
    shown = [f"max_user_namespaces={values.get('user.max_user_namespaces', 'unknown')}"]
    shown += [f"{key}={value}" for key, value in values.items() if key.startswith("kernel.")]
    closed = [
        name for name, value in values.items() if (value == 1 if "apparmor" in name else value == 0)
    ]
    blamed = bool(closed) and not bwrap_works
    return Finding(
        name="user namespaces",
        mark=Mark.WARN if blamed else Mark.INFO,
        text=", ".join(shown) + (f"; closed by {', '.join(closed)}" if closed else ""),
        hint="see bubblewrap: its message tells which of them counts." if blamed else "",
        values=values,
    )


def yama(proc: Path = PROC) -> Finding:
    """Who may trace whom among processes of one uid."""
    scope = _read(proc / "sys/kernel/yama/ptrace_scope")
    text = "not in this kernel" if scope is None else f"ptrace_scope={scope}"
    return Finding(name="yama", text=text, values={"ptrace_scope": _whole(scope)})


def swap(proc: Path = PROC, cgroups: Path = Path("/sys/fs/cgroup")) -> Finding:
    """Swap that no limit counts would let a sandbox use more than its memory."""
    lines = (_read(proc / "swaps") or "").splitlines()[1:]
    kib = sum(int(line.split()[2]) for line in lines if len(line.split()) > 2)
    counted = _swap_is_counted(cgroups)
    values = {"bytes": kib * 1024, "counted": counted}
    if not kib:
        return Finding(name="swap", text="none", values=values)
    if counted:
        return Finding(
            name="swap", text=f"{kib // 1024} MiB; sandboxes get none of it", values=values
        )
    return Finding(
        name="swap",
        mark=Mark.WARN,
        text=f"{kib // 1024} MiB that no cgroup counts: a memory limit can be passed by swapping",
        hint="switch it off, or boot with swapaccount=1.",
        values=values,
    )


def core_pattern(proc: Path = PROC) -> Finding:
    """A core dump's handler runs on the host, as root, with a sandbox's bytes."""
    pattern = _read(proc / "sys/kernel/core_pattern") or ""
    piped = pattern.startswith("|")
    text = (
        f"piped to {pattern[1:]}; a sandbox's core limit of 1 byte keeps it from starting"
        if piped
        else (pattern or "unknown")
    )
    return Finding(name="core pattern", text=text, values={"pattern": pattern, "piped": piped})


def docker_group() -> Finding:
    """Who may talk to the engine is root."""
    try:
        number = grp.getgrnam("docker").gr_gid
    except KeyError:
        return Finding(name="docker group", text="none", values={"member": False})
    member = number in {*os.getgroups(), os.getegid()}
    if member and os.geteuid() != 0:
        return Finding(
            name="docker group",
            mark=Mark.WARN,
            text="this user is a member: that is as good as being root on this host",
            hint="do not run handlers that you would not run as root, or use rootless docker.",
            values={"member": True},
        )
    return Finding(
        name="docker group",
        text="this user is a member" if member else "this user is no member",
        values={"member": member},
    )


def status_field(status: str, name: str) -> str | None:
    """One line of /proc/PID/status."""
    for line in status.splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return value.strip()
    return None


def _swap_is_counted(cgroups: Path) -> bool:
    if (cgroups / "cgroup.controllers").exists():
        # The top has no limits of its own: any cgroup below tells.
        return any(cgroups.glob("*/memory.swap.max"))
    return (cgroups / "memory/memory.memsw.limit_in_bytes").exists()


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return None
