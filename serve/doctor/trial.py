"""The real thing: a script run by each backend, and a look around from inside.

The look needs no wall to be down: what it prints is read as anything else from a sandbox.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from ...sandbox.backend import Backend
from ...sandbox.core import Core, Request, Settings
from ...sandbox.result import ExecutionResult
from ...stubs.catalog import Catalog
from .finding import Finding, Mark

_LOOK = """
import ctypes, errno, json
wanted = ("Seccomp", "Seccomp_filters", "NoNewPrivs", "CapEff", "Uid")
with open("/proc/self/status") as file:
    found = dict(line.split(":", 1) for line in file)
seen = {name: found[name].split()[0] for name in wanted if name in found}
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(425, 0, None)
seen["io_uring"] = errno.errorcode.get(ctypes.get_errno(), "")
print(json.dumps(seen))
"""
"""Call 425 is io_uring_setup; without arguments it answers EFAULT or EINVAL where it is reached."""

_WIDE = "scripts reach more of the kernel than they need; docs/security.md says what that means."
_REFUSED = frozenset({"EPERM", "ENOSYS", "EACCES"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How a backend did."""

    backend: str
    problem: str | None
    """None when a script ran."""
    memory_limit: str = ""
    seen: dict[str, str] | None = None
    """From inside; None when it could not be read."""

    @property
    def reaches_io_uring(self) -> bool | None:
        """None: nobody knows."""
        error = (self.seen or {}).get("io_uring")
        return None if error is None else error not in _REFUSED

    def findings(self) -> list[Finding]:
        """Of the backend, and of the filter seen inside."""
        if self.problem is not None:
            return [Finding.failed(self.backend, self.problem)]
        hard = self.memory_limit.startswith("cgroup")
        held = self.memory_limit + ("" if hard else ": best effort, killed within about 0.1 s")
        ran = Finding(
            name=self.backend,
            mark=Mark.OK,
            text=f"a script ran; memory is held by {held}",
            values={"memory_limit": self.memory_limit},
        )
        return [ran, self._filter()]

    def _filter(self) -> Finding:
        name = f"{self.backend} seccomp"
        if self.seen is None:
            return Finding(name=name, mark=Mark.WARN, text="could not be seen from inside")
        mode = self.seen.get("Seccomp", "unknown")
        reached = self.reaches_io_uring
        text = {"0": "no filter", "2": "a filter"}.get(mode, f"mode {mode}")
        text += f" inside; io_uring is {'within reach' if reached else 'refused'}"
        fine = mode == "2" and not reached
        return Finding(
            name=name,
            mark=Mark.OK if fine else Mark.WARN,
            text=text,
            hint="" if fine else _WIDE,
            values={
                "mode": int(mode) if mode.isdigit() else None,
                "no_new_privileges": self.seen.get("NoNewPrivs") == "1",
                "io_uring_reachable": reached,
            },
        )


async def attempt(backend: Backend) -> Trial:
    """Run a script as users do, gate and all; then look around without the gate."""
    ran = await _run(backend, "print(1)", gate=True)
    if ran.status != "ok" or ran.printout != "1\n":
        message = ran.error.message if ran.error is not None else str(ran.status)
        problem = message.removeprefix(f"{backend.name}: ")
        return Trial(backend=backend.name, problem=problem)
    looked = await _run(backend, _LOOK, gate=False)
    return Trial(
        backend=backend.name,
        problem=None,
        memory_limit=ran.sandbox.memory_limit,
        seen=_read(looked.printout),
    )


async def _run(backend: Backend, script: str, *, gate: bool) -> ExecutionResult:
    core = Core(Settings(whole=Catalog([]), scopes=frozenset(), backend=backend, gate=gate))
    request = Request(script=script, tool_loop=asyncio.get_running_loop(), cancel=asyncio.Event())
    try:
        return await core.execute(request)
    finally:
        await core.close()


def _read(printout: str) -> dict[str, str] | None:
    try:
        seen: Any = json.loads(printout)
    except ValueError:
        return None
    if not isinstance(seen, dict):
        return None
    return {key: value[:64] for key, value in seen.items() if isinstance(value, str)}
