"""Findings about this machine: which backend works, how limits are held, what to mend."""

from __future__ import annotations

import asyncio
import platform

from ... import __version__
from ...runtime.errors import SandboxUnavailable
from ...sandbox.docker import DockerBackend
from ...sandbox.reaper import Reaping, reap_all
from ..config import Configuration
from . import engine, host, limits, storage
from .finding import Diagnosis, Finding, Mark
from .trial import Trial, attempt

__all__ = ["Diagnosis", "Finding", "Mark", "diagnose", "reap"]


def diagnose(configuration: Configuration) -> Diagnosis:
    """Run real sandboxes and look around."""
    return asyncio.run(_diagnose(configuration))


def reap(configuration: Configuration) -> Reaping:
    """Remove what crashed processes left."""
    options = configuration.backend_options()
    return asyncio.run(reap_all(options.make_embedded(), options.make_docker()))


async def _diagnose(configuration: Configuration) -> Diagnosis:
    options = configuration.backend_options()
    docker = options.make_docker()
    trials = [await attempt(backend) for backend in (options.make_embedded(), docker)]
    inside, outside = trials
    findings = [
        *_about_host(bwrap_works=inside.problem is None),
        *inside.findings(),
        *outside.findings(),
        *await _about_engine(docker, outside),
        *_about_policy(configuration),
    ]
    working = {trial.backend for trial in trials if trial.problem is None}
    works = bool(working) if configuration.backend == "auto" else configuration.backend in working
    return Diagnosis(findings=(*findings, _choice(configuration, trials, works)), works=works)


def _about_host(*, bwrap_works: bool) -> list[Finding]:
    return [
        Finding(name="limbeck", text=__version__, values={"version": __version__}),
        Finding(
            name="python",
            text=platform.python_version(),
            values={"version": platform.python_version()},
        ),
        host.kernel(),
        host.user(),
        host.seccomp(),
        host.user_namespaces(bwrap_works=bwrap_works),
        host.yama(),
        host.swap(),
        host.core_pattern(),
        host.docker_group(),
        limits.cgroups(),
        storage.runtimes(),
        storage.sandboxes(),
    ]


async def _about_engine(docker: DockerBackend, trial: Trial) -> list[Finding]:
    try:
        return await engine.findings(docker, trial)
    except SandboxUnavailable as error:
        if trial.problem is not None:
            return []  # The finding of the backend has the reason.
        return [Finding.failed("engine", error.reasons["docker"])]


def _about_policy(configuration: Configuration) -> list[Finding]:
    names = configuration.policy.unconfirmed_destructive
    if not names:
        return []
    return [
        Finding(
            name="policy",
            mark=Mark.WARN,
            text=f"destructive tools that nobody is asked about: {', '.join(names)}",
            hint="take them out of policy.unconfirmed_destructive where a person can be asked.",
            values={"unconfirmed_destructive": list(names)},
        )
    ]


def _choice(configuration: Configuration, trials: list[Trial], works: bool) -> Finding:
    """What an executor of this configuration would take."""
    preferred = sorted(trials, key=lambda trial: trial.backend != "docker")
    chosen = next((trial.backend for trial in preferred if trial.problem is None), None)
    if configuration.backend != "auto":
        chosen = configuration.backend if works else None
    return Finding(
        name="backend",
        mark=Mark.OK if works else Mark.FAIL,
        text=f"{configuration.backend}" + (f": {chosen}" if chosen else ": none works"),
        values={"configured": configuration.backend, "chosen": chosen},
    )
