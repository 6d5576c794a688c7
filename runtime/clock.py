"""The host's clock: messages of fixed size on the standard input of process 1.

    start(wall)   a job of `wall` seconds begins; process 1 kills everything a second after its end
    pause, resume a person is asked: the wall clock stands still, the script's threads go on
    freeze        between two jobs: the clock stands still and so does everything else inside;
                  answered by the line `frozen <threads>` on standard output
    thaw          everything goes on; answered by `thawed`
    end           the execution is over: kill everything and exit
    end of file   the host is gone: the same

A message is SIZE bytes: one letter, eight bytes of milliseconds, zeros.
"""

from __future__ import annotations

SIZE = 64

START = b"s"
PAUSE = b"p"
RESUME = b"r"
FREEZE = b"f"
THAW = b"t"
END = b"e"


def message(op: bytes, milliseconds: int = 0) -> bytes:
    """One message of the clock."""
    return (op + milliseconds.to_bytes(8, "big")).ljust(SIZE, b"\0")


def read(data: bytes) -> tuple[bytes, int]:
    """The letter and the milliseconds of a message."""
    return data[:1], int.from_bytes(data[1:9], "big")
