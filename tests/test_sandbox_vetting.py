"""The vetting child: serves many, survives what kills it, and is nobody on this host."""

import asyncio
import os
from pathlib import Path

import pytest
from kit.sandboxed import BACKEND

from limbeck.runtime import gate
from limbeck.sandbox.vetting import UID, Vetter


def _vetter() -> Vetter:
    return Vetter(*BACKEND.vetting())


def test_it_answers_as_the_gate_does() -> None:
    source = "import socket\nx = eval('1')\ny.__globals__"

    async def run() -> list[gate.Fault]:
        vetter = _vetter()
        try:
            return await vetter.vet(source, gate=True)
        finally:
            await vetter.close()

    assert asyncio.run(run()) == gate.vet(source)


def test_one_child_serves_many_at_once() -> None:
    async def run() -> None:
        vetter = _vetter()
        sources = [f"x{number} = {number}\nimport socket" for number in range(30)]
        answers = await asyncio.gather(*(vetter.vet(source, gate=True) for source in sources))
        assert all(len(faults) == 1 for faults in answers)
        child = vetter._child.pid
        assert await vetter.vet("print(1)", gate=True) == []
        assert vetter._child.pid == child
        await vetter.close()

    asyncio.run(run())


def test_a_killed_child_is_a_refusal_and_the_next_script_gets_a_new_one() -> None:
    async def run() -> None:
        vetter = _vetter()
        assert await vetter.vet("print(1)", gate=True) == []
        os.kill(vetter._child.pid, 19)
        waiting = asyncio.create_task(vetter.vet("print(2)", gate=True))
        await asyncio.sleep(0.1)
        os.kill(vetter._child.pid, 9)
        (fault,) = await waiting
        assert "could not be vetted" in fault.message
        assert await vetter.vet("print(3)", gate=True) == []
        await vetter.close()

    asyncio.run(run())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root drops the uid")
def test_the_child_is_nobody() -> None:
    async def run() -> str:
        vetter = _vetter()
        await vetter.vet("print(1)", gate=True)
        status = Path(f"/proc/{vetter._child.pid}/status").read_text()
        await vetter.close()
        return status

    fields = dict(line.split(":\t", 1) for line in asyncio.run(run()).splitlines())
    assert set(fields["Uid"].split()) == {str(UID)}
    assert fields["NoNewPrivs"] == "1"
    assert int(fields["CapEff"], 16) == 0


def test_an_idle_child_ends_with_its_host() -> None:
    async def run() -> int:
        vetter = _vetter()
        await vetter.vet("print(1)", gate=True)
        child = vetter._child
        child.stdin.close()
        return await asyncio.wait_for(child.wait(), 10)

    assert asyncio.run(run()) == 0


@pytest.mark.parametrize(
    "bomb",
    ["(" * 5_000, "-" * 250_000 + "1", "x" + ".a" * 120_000, "lambda:" * 30_000 + "1",
     "if x:\n pass\n" * 20_000, "f'{" * 150 + "1" + "}'" * 150, "[" * 100_000],
)  # fmt: skip
def test_bombs_are_plain_refusals_or_pass(bomb: str) -> None:
    async def run() -> None:
        vetter = _vetter()
        faults = await vetter.vet(bomb, gate=True)
        assert all(isinstance(fault, gate.Fault) for fault in faults)
        assert await vetter.vet("print(1)", gate=True) == []
        await vetter.close()

    asyncio.run(run())
