"""What is left of a sandbox that does not die, for the log: the operator's only clue."""

from __future__ import annotations

import os
from pathlib import Path

_MOST = 10


def remains(uid: int) -> str:
    """Living processes of a sandbox's uid, with what the kernel says they wait for."""
    if uid == os.geteuid():
        return "its processes have this user's uid"
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and (line := _of(path, uid)):
            found.append(line)
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return ("; ".join(found[:_MOST]) + more) or "no process has its uid"


def _of(path: Path, uid: int) -> str:
    try:
        lines = (path / "status").read_text().splitlines()
        waits = (path / "wchan").read_text()
    except OSError:
        return ""
    fields = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    if int(fields["Uid"].split()[0]) != uid:
        return ""
    state = fields["State"].split()[0]
    inside = fields.get("NSpid", "").split()[-1:]
    return f"{path.name} ({fields['Name']}, {inside} inside, {state}, waits in {waits})"
