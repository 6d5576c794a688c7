"""The printout socket of one sandbox: first connection stdout, second stderr, no third."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path

from ..bridge.server import give_socket
from ..runtime.wire import OUTPUT_SOCKET
from .printout import Printout, whole_characters

log = logging.getLogger("limbeck.sandbox")

STREAMS = ("stdout", "stderr")
CHUNK = 64 * 1024
DRAIN_SECONDS = 2.0
"""How long to read on after the sandbox is dead; everything written is in the socket already."""

OnOutput = Callable[[str, str], None]
"""Called with the stream's name and the text, on limbeck's loop."""


class OutputListener:
    """Reads what the worker writes to file descriptors 1 and 2."""

    def __init__(self) -> None:
        """Until `begin` nothing is printed: there is no script yet."""
        self._printout = Printout(kept=CHUNK)
        self._maximum = CHUNK
        self._on_output: OnOutput | None = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._reading: list[asyncio.Task[None]] = []
        self._accepting: asyncio.Task[None] | None = None
        self.overflow = asyncio.Event()

    @property
    def connected(self) -> asyncio.Task[None]:
        """Done when the worker has both streams and nobody can connect any more."""
        assert self._accepting is not None, "open comes first"
        return self._accepting

    def open(self, folder: Path, uid: int) -> None:
        """Listen in `folder`; the socket belongs to `uid` alone."""
        path = folder / OUTPUT_SOCKET
        self._socket.bind(str(path))
        give_socket(path, uid)
        self._socket.listen(len(STREAMS))
        self._accepting = asyncio.create_task(self._accept())

    def begin(self, printout: Printout, maximum: int, on_output: OnOutput | None) -> None:
        """A job begins. `maximum` bytes in all; beyond it `overflow` is set, nothing more kept."""
        self._printout, self._maximum, self._on_output = printout, maximum, on_output

    async def drain(self) -> None:
        """Read what the dead sandbox has left in its sockets, and close them."""
        if self._reading:
            await asyncio.wait(self._reading, timeout=DRAIN_SECONDS)
        tasks = [*self._reading, *([self._accepting] if self._accepting is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            # Before their sockets are closed: the loop forgets a cancelled read a moment later, by
            # its descriptor's number, which may be somebody else's by then.
            await asyncio.wait(tasks)
        self._socket.close()
        self._printout.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        for name in STREAMS:
            connection, _ = await loop.sock_accept(self._socket)
            connection.setblocking(False)
            self._reading.append(asyncio.create_task(self._read(name, connection)))
        # SAFETY: the script may connect too, but only after the worker has both its streams.
        self._socket.close()

    async def _read(self, name: str, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        begun = b""  # Of a character whose rest is still to come.
        with connection:
            try:
                while data := await loop.sock_recv(connection, CHUNK):
                    data = begun + data
                    end = whole_characters(data)
                    begun = data[end:]
                    self._take(name, data[:end])
            finally:
                self._take(name, begun)

    def _take(self, name: str, data: bytes) -> None:
        """Hand on what was printed, as far as it may be."""
        if self.overflow.is_set():
            return
        room = self._maximum - self._printout.total
        if len(data) > room:
            data = data[: whole_characters(data[:room])]
            self.overflow.set()
        self._printout.feed(data)
        if self._on_output is None or not data:
            return
        try:
            self._on_output(name, data.decode("utf-8", "replace"))
        except Exception:
            # Whoever listened is gone; a script that nobody reads would stop at its next line.
            log.exception("on_output failed; it is told nothing more")
            self._on_output = None
