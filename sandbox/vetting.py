"""The host's side of the vetting child: one process, restarted when it dies.

Reading a stranger's source is work that can take a second and a gigabyte; it does neither on
limbeck's loop, nor in its process. A child that hangs or dies is a plain refusal.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ..runtime.gate import MAX_FAULTS, Fault
from .exhaustion import raise_exhausted
from .uids import BASE

WALL_SECONDS = 10.0
"""For one script; the child's own timer of CPU time strikes long before."""

MAX_REPLY = 4 * 1024 * 1024
MAX_DIAGNOSIS = 2_000
"""Bytes kept of what a child that did not start wrote."""

_UIDS = (BASE - 1, 65534)
"""Of the vetting child, when root: one that nobody else has, else nobody's (where a user namespace
maps few uids)."""

_PROGRAM = "from limbeck.runtime.gate.child import main; main()"


class Vetter:
    """Vets scripts in a child process. Belongs to limbeck's loop."""

    def __init__(self, python: Path, library: Path) -> None:
        """`python` runs with `library` on its path; both must be readable by a dropped uid."""
        self._python = python
        self._library = library
        self._launcher: list[str] | None = None
        self._child: Process | None = None
        self._turn = asyncio.Lock()

    async def vet(self, source: str, gate: bool, open_modules: Collection[str] = ()) -> list[Fault]:
        """Every fault of a script, as `gate.vet` tells them; scripts wait for their turn.

        Raises OSError when the host has no room for the child.
        """
        async with self._turn:
            answered = False
            try:
                async with asyncio.timeout(WALL_SECONDS):
                    child = await self._ready()
                    asked = {"source": source, "gate": gate, "open_modules": sorted(open_modules)}
                    faults = await _ask(child, asked)
                answered = True
                return faults
            except TimeoutError:
                return _refusal(f"it took longer than {WALL_SECONDS:g} s")
            except _NotStartedError as error:
                return _refusal(str(error), hint="run `limbeck doctor`")
            except (EOFError, OSError, ValueError, KeyError, TypeError) as error:
                raise_exhausted(error)
                return _refusal("it takes too much memory or time to read")
            finally:
                if not answered:
                    # SAFETY: an answer that is still to come would be taken for the next script's.
                    await self._end()

    async def close(self) -> None:
        """End the child."""
        async with self._turn:
            await self._end()

    async def _ready(self) -> Process:
        if self._child is None or self._child.returncode is not None:
            if self._launcher is None:
                self._launcher = await _find_launcher()
            self._child = await self._start(self._launcher)
            await self._greet(self._child)
        return self._child

    async def _start(self, launcher: list[str]) -> Process:
        try:
            return await asyncio.create_subprocess_exec(
                *launcher,
                *(str(self._python), "-s", "-S", "-P", "-c", _PROGRAM),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env={"PYTHONPATH": str(self._library), "LANG": "C.UTF-8"},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise_exhausted(error)
            raise _NotStartedError(f"{self._python}: {error.strerror}") from None

    async def _greet(self, child: Process) -> None:
        assert child.stderr is not None
        try:
            await _reply(child)
        except (EOFError, ValueError):
            written = await child.stderr.read(MAX_DIAGNOSIS)
            last = written.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise _NotStartedError(last or "the vetting child ended at once") from None

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        assert child.stdin is not None
        child.stdin.close()
        await child.wait()


class _NotStartedError(Exception):
    """No vetting child can run here; the text says why."""


async def _ask(child: Process, request: dict[str, Any]) -> list[Fault]:
    assert child.stdin is not None
    data = json.dumps(request).encode()
    child.stdin.write(len(data).to_bytes(4, "big") + data)
    await child.stdin.drain()
    return [_fault(item) for item in (await _reply(child))[:MAX_FAULTS]]


async def _reply(child: Process) -> list[Any]:
    assert child.stdout is not None
    size = int.from_bytes(await child.stdout.readexactly(4), "big")
    if size > MAX_REPLY:
        raise ValueError("the vetting child answers too much")
    reply = json.loads(await child.stdout.readexactly(size))
    if not isinstance(reply, list):
        raise ValueError("the vetting child answers no list")
    return reply


def _fault(item: Any) -> Fault:
    """The child read hostile text: its answer is checked like a stranger's."""
    return Fault(
        line=int(item["line"]),
        column=int(item["column"]),
        message=str(item["message"])[:2_000],
        hint=str(item["hint"])[:2_000],
        source_line=str(item["source_line"])[:500],
    )


def _refusal(why: str, *, hint: str = "send a shorter, simpler script") -> list[Fault]:
    message = f"the script could not be vetted ({why})"
    return [Fault(line=0, column=0, message=message, hint=hint)]


async def _find_launcher() -> list[str]:
    """The first chain of programs that starts anything here.

    SAFETY: under root there is none without a dropped uid; the network is left where it can be.
    """
    for launcher in _launchers():
        if not launcher or await _works(launcher):
            return launcher
    raise _NotStartedError("setpriv cannot drop root here; install util-linux")


def _launchers() -> list[list[str]]:
    if os.geteuid() != 0:
        return [["setpriv", "--no-new-privs", "--"], []]
    chains = []
    for uid in _UIDS:
        drop = [f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        drop += ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--"]
        chains += [["unshare", "--net", "--", "setpriv", *drop], ["setpriv", *drop]]
    return chains


async def _works(launcher: list[str]) -> bool:
    try:
        probe = await asyncio.create_subprocess_exec(
            *launcher, "true", stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
        )
    except OSError as error:
        raise_exhausted(error)
        return False
    return await probe.wait() == 0
