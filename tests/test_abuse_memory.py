"""Ways to use more memory than allowed, tried from inside with the gate off.

Memory that no process maps (files, pipes, sockets, messages) is the kernel's: a cgroup counts it,
the watcher counts what it can see, and the filter of system calls refuses the rest.
"""

import pytest
from kit.probes import Batch
from kit.sandboxed import BACKENDS, ON_ALL, execute, left_since, traces

MIB = 1 << 20

PROBES = {
    "memfd": """
import os
try:
    os.memfd_create("x")
    seen = "made"
except OSError as error:
    seen = error.errno
fine = seen == 1
""",
    "System V": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
seen = [libc.shmget(0, 1 << 20, 0o1600), libc.semget(0, 100, 0o1600), libc.msgget(0, 0o1600)]
libc.mq_open.restype = ctypes.c_int
seen.append(libc.mq_open(b"/x", 0o102, 0o600, None))
fine = seen == [-1, -1, -1, -1]
""",
    "mlock": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
memory = ctypes.create_string_buffer(1 << 20)
seen = [libc.mlockall(3), libc.mlock(memory, 1 << 20)]
fine = seen == [-1, -1]
""",
    "pipes": """
import fcntl, os
seen, ends = 0, []
try:
    while True:
        ends.append(os.pipe2(os.O_NONBLOCK))
        try:
            fcntl.fcntl(ends[-1][1], 1031, 1 << 20)  # F_SETPIPE_SZ
        except OSError:
            pass
        try:
            while True:
                seen += os.write(ends[-1][1], b"x" * 65536)
        except BlockingIOError:
            pass
except OSError as error:
    last = error.errno
fine = seen <= 80 << 20 and last == 24
""",
    "socket buffers": """
import socket
seen, pairs = 0, []
try:
    while True:
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        pairs.append(pair)
        for one in pair:
            try:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
                last = "raised"
            except OSError:
                pass
            one.setblocking(False)
            try:
                while True:
                    seen += one.send(b"x" * 65536)
            except BlockingIOError:
                pass
except OSError as error:
    last = error.errno
fine = seen <= 80 << 20 and last == 24
""",
    "descriptors in flight": """
import array, os, socket
pairs, seen, last = [], 0, 0
null = os.open("/dev/null", os.O_RDONLY)
message = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * 100))]
for _ in range(50):
    pair = socket.socketpair()
    pair[0].setblocking(False)
    pairs.append(pair)
    try:
        while seen < 100_000:
            pair[0].sendmsg([b"x"], message)
            seen += 100
    except BlockingIOError:
        pass
    except OSError as error:
        last = error.errno
        break
# The kernel counts them against RLIMIT_NOFILE, one message late.
fine = seen <= 256 + 100 and last == 109
""",
    "memory error": """
seen = []
for size in (512 << 20, 1 << 40):
    try:
        bytearray(size)
        seen.append(size)
    except MemoryError:
        pass
fine = not seen
""",
    "page cache": """
import os
seen = 0
for folder, _, names in os.walk(os.path.dirname(os.__file__)):
    for name in names:
        try:
            with open(os.path.join(folder, name), "rb") as file:
                seen += len(file.read())
        except OSError:
            pass
fine = seen > 10 << 20
""",
}  # fmt: skip

BATCH = Batch(PROBES)


@pytest.mark.parametrize("name", PROBES)
@ON_ALL
def test_it_holds_inside(name: str, where: str) -> None:
    BATCH.check(name, where)


@pytest.mark.parametrize("name", ["memfd", "System V", "memory error"])
def test_the_probe_can_fail(name: str) -> None:
    BATCH.control(name)


EATERS = {
    "shared mapping": """
import mmap
m = mmap.mmap(-1, 512 << 20)
for i in range(0, 512 << 20, 4096): m[i] = 1
""",
    "children": """
import os, time
for _ in range(8):
    if os.fork() == 0:
        x = bytearray(b"x") * (100 << 20)
        time.sleep(100)
        os._exit(0)
os.wait()
time.sleep(100)
""",
    "sockets of many processes": """
import os, socket, time
for _ in range(24):
    if os.fork() == 0:
        pairs = []
        try:
            while True:
                pair = socket.socketpair()
                pairs.append(pair)
                for one in pair:
                    one.setblocking(False)
                    try:
                        while True: one.send(b"x" * 65536)
                    except BlockingIOError: pass
        except OSError:
            time.sleep(100)
os.wait()
time.sleep(100)
""",
    "page tables": """
import mmap
maps = []
for _ in range(200_000):
    maps.append(mmap.mmap(-1, 1 << 21, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ))
    maps[-1][4096]
""",
    "files and processes together": """
import time
for folder, size in (("/tmp", 30 << 20), ("/workspace", 60 << 20)):
    with open(f"{folder}/x", "wb", buffering=0) as file:
        for _ in range(size >> 16): file.write(b"x" * 65536)
x = []
for _ in range(200): x.append(b"x" * (1 << 20))
import os
if os.fork() == 0:
    y = b"y" * (100 << 20)
time.sleep(100)
""",
}  # fmt: skip


@pytest.mark.parametrize("name", EATERS)
@ON_ALL
def test_it_is_stopped_by_the_limit(name: str, where: str) -> None:
    """A child may be lost to the limit instead of the whole: then the rest waits for the deadline."""
    before = traces()
    result = execute(EATERS[name], backend=BACKENDS[where], limits={"wall": 6})
    assert result.status in ("memory", "timeout"), result.for_model()
    if result.status == "timeout":
        assert where != "watcher"
        assert result.usage.memory_peak > 200 * MIB  # it did reach the limit
    assert result.usage.memory_peak is None or result.usage.memory_peak < (
        400 * MIB if where == "watcher" else 257 * MIB
    )
    assert not left_since(before)
