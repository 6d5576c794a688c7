"""Everything that crashed processes left, also what only takes room: `limbeck doctor --reap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..runtime.errors import ConfigurationError, SandboxUnavailable
from . import holding, uids
from .backend import Leftover
from .bubblewrap import BubblewrapBackend
from .docker import DockerBackend
from .provision import prepare_runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaping:
    """What was found, and who could not be asked."""

    found: tuple[Leftover, ...]
    notes: tuple[str, ...]
    """One line for each part that was not looked at, with the reason."""


async def reap_all(embedded: BubblewrapBackend, docker: DockerBackend) -> Reaping:
    """Remove all that no living process owns. Nothing of a living one is touched."""
    found: list[Leftover] = []
    notes: list[str] = []
    for reap in (docker.reap, docker.reap_images, embedded.reap):
        try:
            found += await reap()
        except (ConfigurationError, SandboxUnavailable) as error:
            notes.append(str(error))
    for look in (uids.reap, _reap_runtimes):
        found += _unless_refused(look, notes)
    return Reaping(found=tuple(found), notes=tuple(dict.fromkeys(notes)))


def _reap_runtimes() -> Sequence[Leftover]:
    current = prepare_runtime().root
    return holding.reap(current.parent, current)


def _unless_refused(look: Callable[[], Sequence[Leftover]], notes: list[str]) -> Sequence[Leftover]:
    try:
        return look()
    except ConfigurationError as error:
        notes.append(str(error))
        return ()
