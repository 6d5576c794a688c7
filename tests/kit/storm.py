"""A host that runs hostile scripts at random until it is killed: `python storm.py BACKEND SEED`.

It prints a line an execution. What is untrue of a result ends it with a line that says what.
"""

import asyncio
import random
import sys

from kit.contract import CASES
from kit.sandboxed import BACKENDS
from test_abuse_memory import EATERS
from test_abuse_processes import STORMS

from limbeck import AsyncExecutor, Toolset

CONCURRENCY = 8
WALL = 2.0
ENDS = {"ok", "error", "timeout", "memory", "cpu", "output", "pids", "killed"}

SCRIPTS = {
    **EATERS,
    **STORMS,
    **{name: case.script for name, case in CASES.items() if case.started},
    "calls": "from tools import box\nfor n in range(200): box.add(n, 1)\nprint('added')",
    "calls for ever": "from tools import box\nwhile True: box.add(1, 1)",
    "rows for ever": "from tools import box\nfor row in box.rows(): pass",
    "calls from everywhere": """
import os, threading
from tools import box
def call():
    while True: box.add(1, 2)
for _ in range(20): threading.Thread(target=call, daemon=True).start()
os.fork()
call()
""",
}


def make_tools() -> Toolset:
    box = Toolset("box")

    @box.tool(effect="read")
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @box.tool(effect="read")
    def rows():
        """Stream rows without an end."""
        number = 0
        while True:
            yield number
            number += 1

    return box


async def main(where: str, seed: int) -> None:
    chance = random.Random(seed)
    options = {"gate": "off", "limits": {"wall": WALL}, "warm": 2}
    async with AsyncExecutor([make_tools()], backend=BACKENDS[where], **options) as executor:

        async def worker() -> None:
            while True:
                name = chance.choice(sorted(SCRIPTS))
                result = await executor.execute_code(SCRIPTS[name])
                if result.status not in ENDS or not result.started:
                    print(f"UNTRUE {name}: {result.for_model()}", flush=True)
                    return
                if name == "calls" and result.status == "ok" and result.calls.succeeded != 200:
                    print(f"UNTRUE {name}: {result.calls}", flush=True)
                    return
                print(f"{result.status} {name}", flush=True)

        await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
