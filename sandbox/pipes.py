"""Small waits on descriptors: pipes that are read and bounded, and pidfds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable

MAX_BYTES = 8 * 1024
"""What one pipe keeps; the rest is read and dropped."""


class PipeReader:
    """Reads a pipe on the loop: what was written first, bounded."""

    def __init__(self, descriptor: int, consume: Callable[[bytes], None] | None = None) -> None:
        """`consume` is given what is read, and b"" at the end, instead of keeping it."""
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._consume = consume
        self._data = bytearray()
        self._changed = asyncio.Event()
        self._open = True
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._read)

    def text(self) -> str:
        """What was read so far, with what waits."""
        if self._open:
            self._read()
        return self._data.decode("utf-8", "replace")

    async def find(self, prefix: bytes) -> int | None:
        """The number behind a prefix, as soon as it is there; None at the end of the pipe."""
        pattern = re.compile(re.escape(prefix) + rb"(\d+)\D")
        while True:
            match = pattern.search(self._data)
            if match is not None:
                return int(match.group(1))
            if not self._open:
                return None
            self._changed.clear()
            await self._changed.wait()

    def close(self) -> None:
        """Stop reading; the descriptor stays its owner's."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._descriptor)
            self._changed.set()
            if self._consume is not None:
                self._consume(b"")

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._descriptor, 65_536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.close()
                return
            if self._consume is not None:
                self._consume(data)
                continue
            self._data += data[: MAX_BYTES - len(self._data)]
            self._changed.set()


async def until_readable(descriptor: int, seconds: float | None = None) -> bool:
    """Wait until a descriptor (a pidfd) is readable; False when the time is over."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ready.wait(), seconds)
        return ready.is_set()
    finally:
        loop.remove_reader(descriptor)
