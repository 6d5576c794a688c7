"""`backend = "auto"`: docker when its daemon answers and has our image, else bubblewrap.

Fails closed: when neither works, the answer names both mends, and nothing runs.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path

from ..runtime.errors import SandboxUnavailable
from .backend import Backend, Leftover, Limits, Sandbox


class AutoBackend:
    """The first backend that works."""

    def __init__(self, backends: Sequence[Backend]) -> None:
        self._backends = backends
        self._chosen: Backend | None = None

    @property
    def name(self) -> str:
        """The chosen backend's name; "auto" before `check`."""
        return self._chosen.name if self._chosen is not None else "auto"

    async def check(self) -> str | None:
        """None when one works, else what is wrong with each."""
        if self._chosen is not None:
            return None
        problems = []
        for backend in self._backends:
            problem = await backend.check()
            if problem is None:
                self._chosen = backend
                return None
            problems.append(f"{backend.name}: {problem}")
        return "\n".join(problems)

    def vetting(self) -> tuple[Path, Path] | None:
        """The chosen backend's."""
        return self._ready().vetting()

    def shape(self, limits: Limits) -> Hashable:
        """The chosen backend's."""
        return self._ready().shape(limits)

    async def create(self, limits: Limits) -> Sandbox:
        """A sandbox of the chosen backend. Raises SandboxUnavailable."""
        problem = await self.check()
        if problem is not None:
            raise SandboxUnavailable({"auto": problem})
        return await self._ready().create(limits)

    async def reap(self) -> list[Leftover]:
        """Of every backend, also of those that were not chosen."""
        found = []
        for backend in self._backends:
            found += await backend.reap()
        return found

    def _ready(self) -> Backend:
        assert self._chosen is not None, "check comes first"
        return self._chosen
