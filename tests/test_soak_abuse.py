"""Hostile scripts at random, eight at a time, while their host is killed now and then.

At the end nothing of any of those hosts is left: processes, containers, cgroups, folders.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from kit.sandboxed import BACKENDS, ON_BOTH

from limbeck.sandbox.folders import base_folder

ROOT = Path(__file__).parent


class Host:
    """A process that runs hostile scripts, and what was seen of its sandboxes."""

    def __init__(self, where: str, seed: int) -> None:
        self.lines: list[str] = []
        self.names: set[str] = set()
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "kit" / "storm.py"), where, str(seed)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def watch(self, seconds: float) -> None:
        """Let it run, and remember the names of its sandboxes."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.process.poll() is None:
            self.names |= {path.name for path in base_folder().iterdir() if self._is_mine(path)}
            time.sleep(0.1)

    def kill(self) -> None:
        assert self.process.poll() is None, self.process.stderr.read()[-3_000:]
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._reading.join(20)
        assert not self._reading.is_alive(), "something holds the dead host's output"
        self.process.stdout.close()
        self.process.stderr.close()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def _is_mine(self, path: Path) -> bool:
        try:
            return (path / "owner").read_text().split()[0] == str(self.process.pid)
        except OSError:
            return False


def _processes(names: set[str]) -> list[str]:
    """Living processes that see one of these sandboxes' folders as /bridge."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                mounts = (path / "mountinfo").read_text()
            except OSError:
                continue
            if any(f"{name}/bridge /bridge" in mounts for name in names):
                found.append(path.name)
    return found


def _containers(names: set[str]) -> list[str]:
    shown = ["docker", "ps", "-a", "--format", '{{.Label "io.limbeck.sandbox"}}']
    out = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    return [name for name in out.split() if name in names]


def _soak(where: str, seconds: float) -> None:
    chance = random.Random(7)
    names: set[str] = set()
    ends: Counter[str] = Counter()
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        host = Host(where, chance.randrange(1_000_000))
        host.watch(chance.uniform(8, 20))
        host.kill()
        assert not [line for line in host.lines if line.startswith("UNTRUE")], host.lines
        names |= host.names
        ends.update(line.split()[0] for line in host.lines)
    deadline = time.monotonic() + 20
    while _processes(names) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _processes(names) == []
    asyncio.run(BACKENDS[where].reap())
    assert not names & {path.name for path in base_folder().iterdir()}
    assert not [path for path in Path("/sys/fs/cgroup").glob("**/limbeck/*") if path.name in names]
    if where == "docker":
        assert _containers(names) == []
    assert len(names) > 10
    assert {"ok", "timeout"} <= ends.keys(), ends
    print(where, len(names), "sandboxes;", dict(ends))


@pytest.mark.slow
@ON_BOTH
def test_nothing_is_left_of_hostile_scripts_and_killed_hosts(where: str) -> None:
    _soak(where, 90.0)
