"""Ways to use more CPU than allowed, tried from inside with the gate off.

No assertion here is about how fast this machine is: only upper bounds on what the host counted.
"""

import pytest
from kit.sandboxed import BACKENDS, ON_ALL, execute, left_since, traces

RELAY = """
import os, time
while True:  # each child is too short for a limit of its own
    child = os.fork()
    if child == 0:
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass
        os._exit(0)
    os.waitpid(child, 0)
"""
ORPHANS = """
import os, time
while True:  # nobody of ours waits for them: process 1 adopts and reaps
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            end = time.process_time() + 0.05
            while time.process_time() < end:
                pass
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.05)
"""
THREADS = """
import hashlib, threading
data = b"x" * (1 << 20)
def spin():
    while True:
        hashlib.sha256(data)  # without the interpreter's lock
for _ in range(4):
    threading.Thread(target=spin).start()
"""


@pytest.mark.parametrize("script", [RELAY, ORPHANS, THREADS], ids=["relay", "orphans", "threads"])
@ON_ALL
def test_the_host_counts_all_of_it(script: str, where: str) -> None:
    before = traces()
    result = execute(script, backend=BACKENDS[where], limits={"cpu_seconds": 1, "wall": 30})
    assert result.status == "cpu", result.for_model()
    assert not left_since(before)


@ON_ALL
def test_four_spinning_processes_share_one_core(where: str) -> None:
    script = """
import os
for _ in range(3):
    if os.fork() == 0:
        try:
            os.sched_setaffinity(0, range(os.cpu_count()))
        except OSError:
            pass
        while True: pass
while True: pass
"""
    result = execute(script, backend=BACKENDS[where], limits={"wall": 2, "cpu_seconds": 60})
    assert result.status == "timeout"
    # What the sandbox's start used comes on top.
    assert result.usage.cpu <= 1.3 * result.usage.wall + 1
