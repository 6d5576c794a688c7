"""The printout socket of one sandbox: first connection stdout, second stderr, no third."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..bridge.server import give_socket
from ..runtime.wire import OUTPUT_SOCKET
from .printout import Printout, whole_characters

log = logging.getLogger("limbeck.sandbox")

STREAMS = ("stdout", "stderr")
CHUNK = 64 * 1024
MOST_LEFT = 16 * 1024 * 1024
"""Bytes that are read at the end: more than two sockets hold."""

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
        self._reading: list[_Stream] = []
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

    def finish(self) -> None:
        """A job has ended and nothing inside runs: read what is still in the sockets."""
        for stream in self._reading:
            stream.read_all()
        self._printout.close()
        self._printout, self._on_output = Printout(kept=CHUNK), None

    async def drain(self) -> None:
        """Read what the dead sandbox has left in its sockets, and close them."""
        if self._accepting is not None:
            self._accepting.cancel()
            # Before its socket is closed: the loop forgets a cancelled accept a moment later, by
            # its descriptor's number, which may be somebody else's by then.
            await asyncio.wait([self._accepting])
        self.finish()
        for stream in self._reading:
            stream.close()
        self._socket.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        for name in STREAMS:
            connection, _ = await loop.sock_accept(self._socket)
            self._reading.append(_Stream(connection, partial(self._take, name)))
        # SAFETY: the script may connect too, but only after the worker has both its streams.
        self._socket.close()

    def _take(self, name: str, data: bytes) -> None:
        """Hand on what was printed, as far as it may be."""
        if self.overflow.is_set() or not data:
            return
        room = self._maximum - self._printout.total
        if len(data) > room:
            data = data[: whole_characters(data[:room])]
            self.overflow.set()
        self._printout.feed(data)
        if self._on_output is None:
            return
        try:
            self._on_output(name, data.decode("utf-8", "replace"))
        except Exception:
            # Whoever listened is gone; a script that nobody reads would stop at its next line.
            log.exception("on_output failed; it is told nothing more")
            self._on_output = None


class _Stream:
    """One connection: read when there is something, in whole characters."""

    def __init__(self, connection: socket.socket, take: Callable[[bytes], None]) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._take = take
        self._begun = b""
        """Of a character whose rest is still to come."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(connection, self._read)

    def read_all(self) -> None:
        """Take what is there, and a character that never came to its end."""
        left = MOST_LEFT
        while left > 0 and (size := self._read()):
            left -= size
        begun, self._begun = self._begun, b""
        self._take(begun)

    def close(self) -> None:
        """Read no more."""
        if self._connection.fileno() >= 0:
            self._loop.remove_reader(self._connection)
            self._connection.close()

    def _read(self) -> int:
        """Read once: how many bytes; 0 when there is nothing, now or ever."""
        if self._connection.fileno() < 0:
            return 0
        try:
            data = self._connection.recv(CHUNK)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if not data:
            self.close()
            return 0
        size = len(data)
        data = self._begun + data
        end = whole_characters(data)
        self._begun = data[end:]
        self._take(data[:end])
        return size
