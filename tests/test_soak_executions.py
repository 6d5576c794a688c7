"""Many executions at once while sandboxes are killed at random: every result true, nothing left."""

import asyncio
import contextlib
import os
import random
import signal
import subprocess

import pytest
from kit.sandboxed import BACKENDS, ON_BOTH, left_since, traces

from limbeck import AsyncExecutor, Toolset
from limbeck.sandbox.folders import base_folder

CONCURRENCY = 8
SCRIPT = """
from tools import ledger
total = 0
for number in range(40):
    total += ledger.add({name}, number)
print({name}, total)
"""


class Ledger:
    """Knows what was really called."""

    def __init__(self) -> None:
        self.calls: dict[int, int] = {}
        self.toolset = Toolset("ledger")
        self.toolset.add(self.add, effect="write")

    def add(self, name: int, number: int) -> int:
        """Count a call."""
        self.calls[name] = self.calls.get(name, 0) + 1
        return number


def _own_uids() -> set[int]:
    """Uids of this process's living sandboxes: their sockets belong to them."""
    found = set()
    for path in base_folder().iterdir():
        with contextlib.suppress(OSError):
            if (path / "owner").read_text().split()[0] == str(os.getpid()):
                found.add((path / "bridge" / "s").lstat().st_uid)
    return found


def _victims() -> list[int]:
    """Processes of this process's living sandboxes."""
    uids, found = _own_uids(), []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/status") as file:
                uid = int(next(line for line in file if line.startswith("Uid:")).split()[1])
                if uid in uids:
                    found.append(int(name))
    return found


async def _soak(where: str, count: int) -> None:
    ledger = Ledger()
    chance = random.Random(1)
    places = asyncio.Semaphore(CONCURRENCY)

    async def one(executor: AsyncExecutor, name: int) -> str:
        async with places:
            result = await executor.execute_code(SCRIPT.format(name=name))
        text = result.for_model()
        assert result.status in ("ok", "killed", "unavailable"), text
        assert result.calls.started <= ledger.calls.get(name, 0) + 1
        if result.status == "ok":
            assert result.printout == f"{name} 780\n"
            assert result.calls.succeeded == ledger.calls[name] == 40
        elif result.status == "unavailable":
            assert ledger.calls.get(name, 0) == 0
        else:
            assert result.error.code in ("signal", "sandbox_lost", "bridge_closed")
            assert result.calls.writes_applied <= ledger.calls.get(name, 0)
        return result.status

    async def kill_some() -> None:
        while True:
            await asyncio.sleep(0.5)
            if victims := _victims():
                with contextlib.suppress(OSError):
                    os.kill(chance.choice(victims), signal.SIGKILL)

    before = traces()
    async with AsyncExecutor([ledger.toolset], backend=BACKENDS[where], warm=2) as executor:
        killer = asyncio.create_task(kill_some())
        statuses = await asyncio.gather(*(one(executor, name) for name in range(count)))
        killer.cancel()
    assert statuses.count("ok") > count // 10
    assert not left_since(before)
    if where == "docker":
        shown = ["docker", "ps", "-a", "--format", '{{.Label "io.limbeck.owner"}}']
        owners = subprocess.run(shown, capture_output=True, text=True, check=True).stdout.split(
            "\n"
        )
        assert not [owner for owner in owners if owner.split(" ")[0] == str(os.getpid())]


def _needs_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root tells sandboxes by their uids")


@ON_BOTH
def test_sixty_executions_while_sandboxes_die(where: str) -> None:
    _needs_root()
    asyncio.run(_soak(where, 60))


@pytest.mark.slow
@ON_BOTH
def test_three_hundred_executions_while_sandboxes_die(where: str) -> None:
    _needs_root()
    asyncio.run(_soak(where, 300))
