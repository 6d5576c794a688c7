"""The host's side of process 1: the clock goes in, lines that nobody else inside can write come
out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from ..runtime import clock
from ..runtime.errors import SandboxUnavailable

FREEZE_SECONDS = 10.0
"""How long the answer to freeze and thaw may take; process 1 itself gives up earlier."""

_LONGEST = 128
"""Bytes of a line; process 1 writes none as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOneReport:
    """The line of the end, read; empty when there was none."""

    exit_code: int | None = None
    signal: int | None = None
    word: str = ""
    """exited, deadline, ended or unstoppable."""
    cpu_seconds: float | None = None


def parse_report(line: str) -> ProcessOneReport:
    """Read the line of the end; anything else is an empty report."""
    words = line.split()
    if len(words) != 5 or words[0] != "exit":
        return ProcessOneReport()
    _, code, number, word, cpu = words
    return ProcessOneReport(
        exit_code=int(code) if code.isdigit() else None,
        signal=int(number) if number.isdigit() else None,
        word=word,
        cpu_seconds=int(cpu) / 1000 if cpu.isdigit() else None,
    )


class ProcessOne:
    """Talks to process 1; belongs to the loop. `feed` it what process 1 writes."""

    def __init__(self, send: Callable[[bytes], object]) -> None:
        """`send` brings a message to its standard input; an OSError means that it is dead."""
        self._send = send
        self._line = bytearray()
        self._answer: asyncio.Future[str] | None = None
        self.ended = False
        self.report = ProcessOneReport()

    def begin(self, wall: float) -> None:
        """A job of `wall` seconds begins."""
        self._tell(clock.message(clock.START, int(wall * 1000)))

    def pause(self) -> None:
        """The clock stands still: a person is asked."""
        self._tell(clock.message(clock.PAUSE))

    def resume(self) -> None:
        """The clock goes on."""
        self._tell(clock.message(clock.RESUME))

    def finish(self) -> None:
        """Kill everything and exit."""
        self._tell(clock.message(clock.END))

    async def freeze(self) -> int:
        """Stop everything else inside; how many threads. Raises SandboxUnavailable."""
        words = (await self._ask(clock.FREEZE)).split()
        if len(words) != 2 or words[0] != "frozen" or not words[1].isdigit():
            raise SandboxUnavailable({"sandbox": "it could not be stopped, and was killed"})
        return int(words[1])

    async def thaw(self) -> None:
        """Let everything go on. Raises SandboxUnavailable."""
        if await self._ask(clock.THAW) != "thawed":
            raise SandboxUnavailable({"sandbox": "it ended while it stood still"})

    def feed(self, data: bytes) -> None:
        """Take what process 1 wrote; b"" when it writes no more."""
        if not data:
            self.ended = True
            self._settle("")
        for piece in data.splitlines(keepends=True):
            self._line += piece[: max(_LONGEST - len(self._line), 0)]
            if piece.endswith(b"\n"):
                self._hear(self._line.decode("ascii", "replace").strip())
                self._line.clear()

    def _tell(self, message: bytes) -> None:
        with contextlib.suppress(OSError):  # it is dead already: who waits for it learns
            self._send(message)

    async def _ask(self, op: bytes) -> str:
        if self.ended or self._answer is not None:
            return ""
        self._answer = asyncio.get_running_loop().create_future()
        self._tell(clock.message(op))
        try:
            async with asyncio.timeout(FREEZE_SECONDS):
                return await self._answer
        except TimeoutError:
            return ""
        finally:
            self._answer = None

    def _hear(self, line: str) -> None:
        if line.startswith("exit "):
            self.report = parse_report(line)
        else:
            self._settle(line)

    def _settle(self, line: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(line)
