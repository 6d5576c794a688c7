"""Findings about this machine: which backend works, how limits are held, what to mend."""

from __future__ import annotations

import asyncio
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from ..sandbox.backend import Limits
from ..sandbox.bubblewrap import BubblewrapBackend
from .config import Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    name: str
    ok: bool | None
    """None: told for information."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All findings; `works` when a backend ran a real sandbox."""

    findings: tuple[Finding, ...]
    works: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return asdict(self)

    def render(self) -> str:
        """A table for a terminal."""
        width = max(len(finding.name) for finding in self.findings)
        marks = {True: "ok  ", False: "FAIL", None: "    "}
        return "\n".join(
            f"{marks[finding.ok]} {finding.name.ljust(width)}  {finding.text}"
            for finding in self.findings
        )


def diagnose(configuration: Configuration) -> Diagnosis:
    """Run a real sandbox and look around."""
    backend = BubblewrapBackend(
        python=configuration.python,
        bwrap=configuration.bwrap,
        require_hard_limits=configuration.require_hard_limits,
    )
    problem, memory_limit = asyncio.run(_try(backend))
    findings = [
        Finding(name="limbeck", ok=None, text=__version__),
        Finding(name="python", ok=None, text=platform.python_version()),
        Finding(name="kernel", ok=None, text=platform.release()),
        Finding(name="user", ok=None, text=_user()),
        Finding(name="user namespaces", ok=None, text=_user_namespaces()),
        Finding(
            name="bubblewrap",
            ok=problem is None,
            text=problem or "a sandbox started and imported the runtime",
        ),
    ]
    if problem is None:
        hard = memory_limit.startswith("cgroup")
        text = memory_limit if hard else f"{memory_limit}: best effort, killed within about 0.1 s"
        findings.append(Finding(name="memory limit", ok=None, text=text))
    return Diagnosis(findings=tuple(findings), works=problem is None)


async def _try(backend: BubblewrapBackend) -> tuple[str | None, str]:
    problem = await backend.check()
    if problem is not None:
        return problem, ""
    sandbox = await backend.create(Limits())
    try:
        return None, sandbox.memory_limit
    finally:
        await sandbox.close()


def _user() -> str:
    if os.geteuid() == 0:
        return "root; each sandbox has a uid of its own"
    return f"uid {os.geteuid()}; sandboxes run as this uid in namespaces of their own"


def _user_namespaces() -> str:
    """What the kernel's switches say; the trial above is what counts."""
    parts = []
    for name in (
        "user/max_user_namespaces",
        "kernel/unprivileged_userns_clone",
        "kernel/apparmor_restrict_unprivileged_userns",
    ):
        path = Path("/proc/sys") / name
        if path.exists():
            parts.append(f"{path.name}={path.read_text().strip()}")
    return ", ".join(parts)
