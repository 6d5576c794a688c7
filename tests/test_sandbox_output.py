"""The printout's listener on the loop, beside others who use descriptors."""

import asyncio
import os
from pathlib import Path

from limbeck.sandbox.output import OutputListener


def test_a_listener_that_ends_leaves_others_descriptors_alone(tmp_path: Path) -> None:
    """A pidfd that got the number of the closed socket was never seen to be readable."""

    async def run() -> None:
        listener = OutputListener()
        listener.open(tmp_path, os.geteuid())
        await asyncio.sleep(0)
        number = listener._socket.fileno()
        await listener.drain()
        read, write = os.pipe()
        if read != number:
            os.dup2(read, number)
            os.close(read)
        readable = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(number, readable.set)
        await asyncio.sleep(0)
        os.write(write, b"x")
        await asyncio.wait_for(readable.wait(), 10)
        loop.remove_reader(number)
        os.close(number)
        os.close(write)

    asyncio.run(run())
