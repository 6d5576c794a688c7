"""Known holes of the engine and its parts: a table of versions, compared as versions.

A distribution may mend a hole without a new version: the finding is a warning, and says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_VERSION = re.compile(
    r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:[-~.+]?(alpha|beta|rc)[.-]?(\d+))?(?![0-9])", re.IGNORECASE
)
_STAGES = {"alpha": 0, "beta": 1, "rc": 2, "": 3}

Version = tuple[int, int, int, int, int]
"""Major, minor, patch, stage, number of the stage; compares as versions do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """A fault that some versions of a component have."""

    component: str
    """As the engine names it, in small letters."""
    name: str
    fixed: tuple[str, ...]
    """The first version without it, one for each series that was mended."""
    text: str


HOLES = (
    Hole(
        component="runc",
        name="CVE-2024-21626",
        fixed=("1.1.12",),
        text="a leaked descriptor gives a container the host's files",
    ),
    Hole(
        component="runc",
        name="CVE-2025-31133",
        fixed=("1.2.8", "1.3.3", "1.4.0-rc.3"),
        text="a race over masked paths lets a container write to the host's /proc",
    ),
    Hole(
        component="engine",
        name="io_uring in the built-in seccomp profile",
        fixed=("25.0.0",),
        text="a container without a profile of its own reaches io_uring",
    ),
)


def parse(text: str) -> Version | None:
    """A version as engines and distributions write it: 1.1.5+ds1, 1.2.0-rc.1, 20.10.24+dfsg1."""
    match = _VERSION.match(text.strip())
    if match is None:
        return None
    major, minor, patch, stage, number = match.groups()
    return (
        int(major),
        int(minor),
        int(patch or 0),
        _STAGES[(stage or "").lower()],
        int(number or 0),
    )


def holes_of(component: str, version: str) -> list[Hole]:
    """The holes that this version has, by its number; all of them when it has none to read."""
    return [
        hole
        for hole in HOLES
        if hole.component == component and not _is_fixed(hole, parse(version))
    ]


def _is_fixed(hole: Hole, version: Version | None) -> bool:
    if version is None:
        return False
    fixes = [fix for fix in map(parse, hole.fixed) if fix is not None]
    same_series = [fix for fix in fixes if fix[:2] == version[:2]]
    return version >= min(same_series, default=max(fixes))
