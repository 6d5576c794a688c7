"""Findings about this machine: which backend works, how limits are held, what to mend."""

from __future__ import annotations

import asyncio
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from ..sandbox.backend import Backend
from ..sandbox.bubblewrap import BubblewrapBackend
from ..sandbox.core import Core, Request, Settings
from ..sandbox.docker import DockerBackend
from ..stubs.catalog import Catalog
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
    embedded = BubblewrapBackend(
        python=configuration.python,
        bwrap=configuration.bwrap,
        require_hard_limits=configuration.require_hard_limits,
    )
    findings = [
        Finding(name="limbeck", ok=None, text=__version__),
        Finding(name="python", ok=None, text=platform.python_version()),
        Finding(name="kernel", ok=None, text=platform.release()),
        Finding(name="user", ok=None, text=_user()),
        Finding(name="user namespaces", ok=None, text=_user_namespaces()),
    ]
    works = False
    for backend in (embedded, DockerBackend()):
        problem, memory_limit = asyncio.run(_try(backend))
        works = works or problem is None
        findings.append(_of_backend(backend.name, problem, memory_limit))
    return Diagnosis(findings=tuple(findings), works=works)


def _of_backend(name: str, problem: str | None, memory_limit: str) -> Finding:
    if problem is not None:
        return Finding(name=name, ok=False, text=problem)
    hard = memory_limit.startswith("cgroup")
    held = memory_limit if hard else f"{memory_limit}: best effort, killed within about 0.1 s"
    return Finding(name=name, ok=True, text=f"a script ran; memory is held by {held}")


async def _try(backend: Backend) -> tuple[str | None, str]:
    """Run a script for real: what is wrong, and how memory is limited."""
    core = Core(Settings(whole=Catalog([]), scopes=frozenset(), backend=backend))
    request = Request(
        script="print(1)", tool_loop=asyncio.get_running_loop(), cancel=asyncio.Event()
    )
    try:
        result = await core.execute(request)
    finally:
        await core.close()
    if result.status != "ok":
        message = result.error.message if result.error is not None else result.status
        return message.removeprefix(f"{backend.name}: "), ""
    return None, result.sandbox.memory_limit


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
