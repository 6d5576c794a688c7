"""bubblewrap's argument list, as data: what is mounted, where, and that nothing else is.

SAFETY: this file is the wall of the embedded sandbox. Order matters: later mounts lie over earlier
ones, and a remount closes what was mounted before it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

from .backend import LONGEST_LIFE, HostFolder, Limits
from .packages import PackagesFolder
from .provision import Interpreter, RuntimeFolder

INSIDE_LIB = "/limbeck/lib"
INSIDE_PACKAGES = "/limbeck/packages"
SHM_BYTES = 1024 * 1024
MEMORY_SHARE = 0.94
"""RLIMIT_DATA as a part of the memory limit: a script sees MemoryError before the kill."""

MASKED_FILES = (
    "cmdline", "config.gz", "consoles", "diskstats", "interrupts", "iomem", "ioports", "kallsyms",
    "kcore", "key-users", "keys", "kmsg", "kpagecgroup", "kpagecount", "kpageflags",
    "latency_stats", "modules", "partitions", "sched_debug", "slabinfo", "softirqs",
    "sysrq-trigger", "timer_list", "vmallocinfo",
)  # fmt: skip
"""Of /proc: what tells of the host, or acts on it."""
MASKED_FOLDERS = ("acpi", "asound", "bus", "driver", "fs", "irq", "scsi", "tty")


def options(
    *,
    uid: int,
    limits: Limits,
    folder: HostFolder,
    runtime: RuntimeFolder,
    interpreter: Interpreter,
    packages: PackagesFolder | None,
    status_descriptor: int,
    filter_descriptor: int,
) -> list[str]:
    """bubblewrap's options: everything but the program."""
    return [
        *_namespaces(uid),
        *_python(interpreter, runtime),
        *_packages(packages, interpreter),
        *_proc(),
        *_dev(),
        *_writable(limits),
        *_ours(folder),
        # The root itself is a tmpfs without a size: closed last.
        "--remount-ro", "/",
        *_environment(limits, packages),
        "--chdir", "/workspace",
        "--json-status-fd", str(status_descriptor),
        # Loaded last of all, before the first instruction of process 1.
        "--seccomp", str(filter_descriptor),
    ]  # fmt: skip


def _namespaces(uid: int) -> list[str]:
    return [
        "--unshare-all", "--unshare-user", "--uid", str(uid), "--gid", str(uid),
        "--disable-userns", "--die-with-parent", "--new-session", "--as-pid-1",
        "--cap-drop", "ALL", "--clearenv", "--hostname", "sandbox",
    ]  # fmt: skip


def _python(interpreter: Interpreter, runtime: RuntimeFolder) -> Iterator[str]:
    """Single files and the standard library: no other program is there."""
    yield from _read_only(interpreter.path)
    for library in interpreter.libraries:
        # What the runtime's own packages bring lies in its folder already.
        if not library.startswith(f"{runtime.root}/"):
            yield from ("--ro-bind", os.path.realpath(library), library)
    yield from _read_only(interpreter.stdlib)
    for name in ("site-packages", "dist-packages"):
        if (Path(interpreter.stdlib) / name).is_dir():
            hidden = f"{interpreter.stdlib}/{name}"
            yield from ("--size", "4096", "--tmpfs", hidden, "--remount-ro", hidden)
    if Path("/usr/share/zoneinfo").is_dir():
        yield from _read_only("/usr/share/zoneinfo")
    yield from ("--ro-bind", str(runtime.lib), INSIDE_LIB)


def _packages(packages: PackagesFolder | None, interpreter: Interpreter) -> Iterator[str]:
    if packages is None:
        return
    yield from ("--ro-bind", str(packages.lib), INSIDE_PACKAGES)
    for library in packages.libraries:
        if library not in interpreter.libraries:
            yield from ("--ro-bind", os.path.realpath(library), library)


def _read_only(path: str) -> tuple[str, str, str]:
    return ("--ro-bind", path, path)


def _proc() -> Iterator[str]:
    yield from ("--proc", "/proc")
    for name in MASKED_FILES:
        if Path("/proc", name).is_file():
            yield from ("--ro-bind", "/dev/null", f"/proc/{name}")
    for name in MASKED_FOLDERS:
        if Path("/proc", name).is_dir():
            hidden = f"/proc/{name}"
            yield from ("--size", "4096", "--tmpfs", hidden, "--remount-ro", hidden)
    # Also makes oom_score_adj and the like unwritable.
    yield from ("--remount-ro", "/proc")


def _dev() -> list[str]:
    return [
        "--dev", "/dev",
        "--size", str(SHM_BYTES), "--perms", "1777", "--tmpfs", "/dev/shm",
        # /dev is a tmpfs without a size: closed, what lies on it stays open.
        "--remount-ro", "/dev",
    ]  # fmt: skip


def _writable(limits: Limits) -> list[str]:
    return [
        "--size", str(limits.tmp), "--perms", "1777", "--tmpfs", "/tmp",
        "--size", str(limits.workspace), "--perms", "0700", "--tmpfs", "/workspace",
    ]  # fmt: skip


def _ours(folder: HostFolder) -> list[str]:
    # A read-only bind does not stop connect(), and nothing in it can be unlinked or renamed.
    return [
        "--ro-bind", str(folder.bridge), "/bridge",
        "--ro-bind", str(folder.tools), "/tools",
        "--ro-bind", str(folder.data), "/data",
    ]  # fmt: skip


def threads(limits: Limits) -> dict[str, str]:
    """How many threads numeric libraries start: their default is every core of the host."""
    cores = str(max(math.ceil(limits.cpu), 1))
    return dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "ARROW_IO_THREADS"), cores)


def most_cpu(limits: Limits) -> int:
    """The hard RLIMIT_CPU of a sandbox that is made before anybody knows what it is for."""
    return math.ceil(max(LONGEST_LIFE * max(limits.cpu, 1), limits.cpu_budget + 5))


def _environment(limits: Limits, packages: PackagesFolder | None) -> Iterator[str]:
    # SAFETY: no secret: everything inside can read it.
    for name, value in {
        "PYTHONPATH": f"{INSIDE_LIB}:{INSIDE_PACKAGES}" if packages else INSIDE_LIB,
        **threads(limits),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "MALLOC_ARENA_MAX": "2",
        "HOME": "/workspace",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }.items():
        yield from ("--setenv", name, value)


def program(interpreter: Interpreter, limits: Limits) -> list[str]:
    """Process 1 and its settings; nothing in it is secret."""
    start = "from limbeck.runtime.supervisor import main; main()"
    return [
        interpreter.path, "-s", "-S", "-P", "-c", start,
        f"data={int(limits.memory * MEMORY_SHARE)}",
        f"nproc={limits.pids}",
        f"fsize={max(limits.tmp, limits.workspace)}",
        f"cpu={most_cpu(limits)}",
    ]  # fmt: skip
