"""The embedded backend: bubblewrap, a uid of its own, a cgroup where one can be made.

    sh (joins the cgroups) -> setpriv (drops the uid) -> bwrap -> process 1 -> worker

A fixed chain of execs with its arguments as data, started from limbeck's one loop thread: bwrap's
--die-with-parent is tied to the thread that started it.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Collection, Hashable
from pathlib import Path

from ..bridge.threads import DaemonPool
from ..runtime.errors import ConfigurationError, SandboxUnavailable
from . import cgroup, seccomp, uids
from .backend import Leftover, Limits
from .bwrap_sandbox import BubblewrapSandbox
from .diagnosis import explain
from .leftovers import reap_host
from .packages import PackagesFolder, find_packages
from .provision import (
    Interpreter,
    RuntimeFolder,
    candidates,
    examine,
    find_bwrap,
    prepare_runtime,
)

TRIAL_SECONDS = 30.0

_TRIAL = f"""
import contextlib, sys
import limbeck.runtime.worker, limbeck.runtime.supervisor
with contextlib.redirect_stdout(sys.stderr):
    exec({seccomp.PROBE!r})
print('exit 0 - exited 0')
"""
"""Imports what a sandbox needs and says on stderr whether the filter of system calls holds."""


class BubblewrapBackend:
    """Makes sandboxes with bubblewrap."""

    name = "bubblewrap"

    def __init__(
        self,
        *,
        python: str | None = None,
        bwrap: str | None = None,
        require_hard_limits: bool = False,
        cgroups: bool = True,
        packages: str | None = None,
        open_modules: Collection[str] = (),
        uid_base: int = uids.BASE,
    ) -> None:
        """Nothing is looked for before `check`.

        Args:
            python: Interpreter for the sandboxes; by default one is looked for and tried.
            bwrap: The bubblewrap program; by default one is looked for.
            require_hard_limits: Refuse where memory can only be watched.
            cgroups: Use cgroups where they can be made; off only to try the watcher.
            packages: A virtual environment whose packages the sandboxes have.
            open_modules: Packages that must be there.
            uid_base: First uid of the sandboxes' range, for root.
        """
        self._uid_base = uids.checked_base(uid_base)
        self._environment = packages
        self._open_modules = frozenset(open_modules)
        self._packages: PackagesFolder | None = None
        self._python = python
        self._configured_bwrap = bwrap
        self._require_hard_limits = require_hard_limits
        self._use_cgroups = cgroups
        self._hierarchies: cgroup.Hierarchies | None = None
        self._runtime: RuntimeFolder | None = None
        self._interpreter: Interpreter | None = None
        self._bwrap = ""
        self._pool = DaemonPool("limbeck-provision", 1)
        self._checked = False
        self._problem: str | None = None

    async def check(self) -> str | None:
        """None if a sandbox can start here, else what is wrong; tried once, for real."""
        if not self._checked:
            try:
                self._problem = await self._try()
            except ConfigurationError as error:
                self._problem = str(error)
            self._checked = True
            self._pool.close()
        return self._problem

    def vetting(self) -> tuple[Path, Path]:
        """Interpreter and library folder that a dropped uid can read."""
        runtime, interpreter = self._ready()
        return Path(interpreter.path), runtime.lib

    def shape(self, limits: Limits) -> Hashable:
        """Interpreter, runtime folder, and what the kernel holds."""
        runtime, interpreter = self._ready()
        return (self.name, interpreter.path, runtime.root, limits.held)

    async def create(self, limits: Limits) -> BubblewrapSandbox:
        """Reserve uid, folder and cgroup. Raises SandboxUnavailable."""
        problem = await self.check()
        if problem is not None:
            raise SandboxUnavailable({self.name: problem})
        return self._create(limits, self._ready()[1])

    def _ready(self) -> tuple[RuntimeFolder, Interpreter]:
        if self._runtime is None or self._interpreter is None:
            raise SandboxUnavailable({self.name: self._problem or "it was not checked yet"})
        return self._runtime, self._interpreter

    async def _try(self) -> str | None:
        seccomp.filter_path()  # SAFETY: raises where there is none
        self._runtime = await self._pool.run(prepare_runtime)
        find = functools.partial(find_packages, self._environment, self._open_modules)
        self._packages = await self._pool.run(find)
        self._bwrap = find_bwrap(self._configured_bwrap, self._runtime)
        self._hierarchies = cgroup.find_hierarchies() if self._use_cgroups else None
        if self._hierarchies is None and self._require_hard_limits:
            return (
                "require_hard_limits is set and no cgroup can be made here.\n"
                "Hint: run as root, or delegate a cgroup v2 subtree to this user."
            )
        await self.reap()
        problems: dict[str, list[str]] = {}
        for path in candidates(self._python):
            problem = await self._try_python(path)
            if problem is None:
                return None
            problems.setdefault(problem, []).append(path)
        told = [f"{', '.join(paths)}: {problem}" for problem, paths in problems.items()]
        return "\n".join(told) or (
            "no Python for the sandbox was found.\nHint: name one with the key `python`."
        )

    async def _try_python(self, path: str) -> str | None:
        """Start a sandbox with an interpreter and let it import the worker."""
        assert self._runtime is not None
        try:
            interpreter = await self._pool.run(functools.partial(examine, path, self._runtime))
        except ConfigurationError as error:
            return error.problem
        sandbox = self._create(Limits(), interpreter, trial=True)
        try:
            await sandbox.start()
            report = await asyncio.wait_for(sandbox.wait(), TRIAL_SECONDS)
        except TimeoutError:
            return f"no answer within {TRIAL_SECONDS:g} s"
        finally:
            await sandbox.close()
        if report.exit_code != 0:
            return explain(report.diagnosis, interpreter.path, self._bwrap)
        problem = seccomp.read_proof(report.diagnosis.strip().rpartition("\n")[2])
        if problem is None:
            self._interpreter = interpreter
        return problem

    async def reap(self) -> list[Leftover]:
        """Remove processes, cgroups and folders whose owner is dead."""
        return reap_host()

    def _create(
        self, limits: Limits, interpreter: Interpreter, *, trial: bool = False
    ) -> BubblewrapSandbox:
        assert self._runtime is not None
        program = [interpreter.path, "-s", "-S", "-P", "-c", _TRIAL] if trial else None
        return BubblewrapSandbox(
            limits=limits,
            runtime=self._runtime,
            interpreter=interpreter,
            bwrap=self._bwrap,
            hierarchies=self._hierarchies,
            packages=self._packages,
            program=program,
            uid_base=self._uid_base,
        )
