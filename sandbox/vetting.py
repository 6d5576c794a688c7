"""The host's side of the vetting child: one process, restarted when it dies.

Reading a stranger's source is work that can take a second and a gigabyte; it does neither on
limbeck's loop. A child that hangs or dies is a plain refusal.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from ..runtime.gate import MAX_FAULTS, Fault
from .uids import BASE

WALL_SECONDS = 10.0
"""For one script; the child's own timer of CPU time strikes long before."""

MAX_REPLY = 4 * 1024 * 1024

UID = BASE - 1
"""Of the vetting child, when root: it shares it with nothing."""

_START = "from limbeck.runtime.gate.child import main; main()"


class Vetter:
    """Vets scripts in a child process. Belongs to limbeck's loop."""

    def __init__(self, python: Path, library: Path) -> None:
        """`python` runs with `library` on its path; both must be readable by a dropped uid."""
        self._python = python
        self._library = library
        self._child: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def vet(self, source: str, gate: bool) -> list[Fault]:
        """Every fault of a script, as `gate.vet` tells them; one at a time, in turn."""
        async with self._turn:
            try:
                async with asyncio.timeout(WALL_SECONDS):
                    return await self._ask(source, gate)
            except (TimeoutError, asyncio.IncompleteReadError, OSError, ValueError) as error:
                await self._end()
                why = "it took too long" if isinstance(error, TimeoutError) else "too complex"
                hint = "send a shorter, simpler script"
                message = f"the script could not be vetted ({why})"
                return [Fault(line=0, column=0, message=message, hint=hint)]

    async def close(self) -> None:
        """End the child."""
        async with self._turn:
            await self._end()

    async def _ask(self, source: str, gate: bool) -> list[Fault]:
        child = await self._ready()
        assert child.stdin is not None
        assert child.stdout is not None
        data = json.dumps({"source": source, "gate": gate}).encode()
        child.stdin.write(len(data).to_bytes(4, "big") + data)
        await child.stdin.drain()
        size = int.from_bytes(await child.stdout.readexactly(4), "big")
        if size > MAX_REPLY:
            raise ValueError("the vetting child answers too much")
        return _faults(json.loads(await child.stdout.readexactly(size)))

    async def _ready(self) -> asyncio.subprocess.Process:
        if self._child is None or self._child.returncode is not None:
            self._child = await asyncio.create_subprocess_exec(
                *self._command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={"PYTHONPATH": str(self._library), "LANG": "C.UTF-8"},
                cwd="/",
                start_new_session=True,
            )
        return self._child

    def _command(self) -> list[str]:
        program = [str(self._python), "-s", "-S", "-P", "-c", _START]
        if os.geteuid() != 0:
            return program
        # SAFETY: what reads a stranger's text is nobody on this host.
        return [
            "setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--inh-caps=-all",
            "--no-new-privs", *program,
        ]  # fmt: skip

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    child.kill()
            await child.wait()


def _faults(reply: Any) -> list[Fault]:
    """The child read hostile text: its answer is checked like a stranger's."""
    if not isinstance(reply, list):
        raise ValueError("the vetting child answers no list")
    return [
        Fault(
            line=int(item["line"]),
            column=int(item["column"]),
            message=str(item["message"])[:2_000],
            hint=str(item["hint"])[:2_000],
            source_line=str(item["source_line"])[:500],
        )
        for item in reply[:MAX_FAULTS]
    ]
