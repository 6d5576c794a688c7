"""What a script can ask of the kernel, tried from inside with the gate off.

Each refused system call is tried by its number in `test_sandbox_seccomp.py`; here is what the calls
are for, by the C library where it has them, and that ordinary Python does not miss any.
"""

import pytest
from kit.probes import Batch
from kit.sandboxed import BACKENDS, ON_ALL, execute

PROBES = {
    "namespaces": """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
seen = []
for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x04000000, 0x08000000, 0x02000000, 0x80):
    arguments = (ctypes.c_uint64 * 11)(flag)
    if libc.unshare(flag) != -1:
        seen.append(("unshare", hex(flag)))
    value = libc.syscall(435, arguments, 88)  # clone3
    if value == 0:
        os._exit(0)
    if value != -1:
        seen.append(("clone3", hex(flag)))
for name in os.listdir("/proc/self/ns"):
    descriptor = os.open(f"/proc/self/ns/{name}", os.O_RDONLY)
    if libc.setns(descriptor, 0) != -1:
        seen.append(name)
fine = not seen
""",
    "mounts": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
seen = [
    libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
    libc.mount(b"none", b"/workspace", b"proc", 0, None),
    libc.mount(None, b"/", None, 32 | 4096, None),
    libc.umount2(b"/tools", 2),
    libc.umount2(b"/proc/cmdline", 2),
    libc.chroot(b"/tmp"),
    libc.syscall(428, -100, b"/", 1),
    libc.syscall(430, b"tmpfs", 0),
]
fine = all(one == -1 for one in seen)
""",
    "processes of others": """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
child = os.fork()
if child == 0:
    import time
    time.sleep(30)
buffer = ctypes.create_string_buffer(64)
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
vector = Vector(ctypes.addressof(buffer), 64)
seen = [
    libc.ptrace(0, 0, 0, 0) if WHERE else 0,  # elsewhere it would stop for a tracer
    libc.ptrace(16, child, 0, 0), libc.ptrace(0x4206, child, 0, 0),
    libc.process_vm_readv(child, ctypes.byref(vector), 1, ctypes.byref(vector), 1, 0),
    libc.process_vm_writev(child, ctypes.byref(vector), 1, ctypes.byref(vector), 1, 0),
    libc.syscall(438, os.pidfd_open(child), 0, 0),
]
os.kill(child, 9)
fine = all(one == -1 for one in seen)
""",
    "the host's clock, name and power": """
import ctypes, time, socket
libc = ctypes.CDLL(None, use_errno=True)
seen = [libc.sethostname(b"x", 1), libc.reboot(0xfee1dead), libc.swapoff(b"/x"), libc.acct(b"/x"),
        libc.setdomainname(b"x", 1), libc.klogctl(3, None, 0), libc.vhangup()]
try:
    time.clock_settime(time.CLOCK_REALTIME, time.time())
    seen.append(0)
except OSError:
    pass
fine = all(one == -1 for one in seen)
""",
    "terminal injection": """
import fcntl, os
seen = []
master = None
try:
    master, slave = os.openpty()
except OSError:
    pass
targets = [0, 1, 2] + ([master, slave] if master is not None else [])
for target in targets:
    for request in (0x5412, 0x541C, 0x5412 | 1 << 32, 0x541C | 1 << 32):
        try:
            fcntl.ioctl(target, request & 0xFFFFFFFF, b"x")
            seen.append(request)
        except OSError as error:
            if error.errno != 1:
                seen.append(error)
fine = not seen
""",
}  # fmt: skip

BATCH = Batch(PROBES)


@pytest.mark.parametrize("name", PROBES)
@ON_ALL
def test_it_holds_inside(name: str, where: str) -> None:
    BATCH.check(name, where)


@pytest.mark.parametrize("name", ["processes of others"])
def test_the_probe_can_fail(name: str) -> None:
    BATCH.control(name)


ORDINARY = {
    "files": """
import csv, glob, gzip, json, mmap, os, pathlib, pickle, shutil, sqlite3, tarfile, tempfile, zipfile
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "a.csv").write_text("a,b\\n1,2\\n")
    rows = list(csv.DictReader((folder / "a.csv").open()))
    shutil.copytree(folder, folder.parent / "copy")
    shutil.copy2(folder / "a.csv", folder / "b.csv")
    shutil.make_archive("/workspace/all", "gztar", folder)
    with zipfile.ZipFile("/workspace/x.zip", "w") as file:
        file.write(folder / "a.csv")
    with open(folder / "a.csv", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        first = view[:1]
    os.fsync(os.open(folder / "a.csv", os.O_RDONLY))
base = sqlite3.connect("/workspace/x.db")
base.execute("pragma journal_mode=wal")
base.execute("create table t (a)")
base.executemany("insert into t values (?)", [(n,) for n in range(100)])
base.commit()
print(rows, first, base.execute("select sum(a) from t").fetchone(), len(tarfile.open("/workspace/all.tar.gz").getnames()))
""",
    "threads": """
import concurrent.futures, multiprocessing.dummy, queue, threading
together = threading.Barrier(65)
threads = [threading.Thread(target=together.wait) for _ in range(64)]
for thread in threads: thread.start()
together.wait(20)
for thread in threads: thread.join()
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    squares = list(pool.map(lambda n: n * n, range(8)))
with multiprocessing.dummy.Pool(4) as pool:
    cubes = pool.map(lambda n: n ** 3, range(4))
print(squares[-1], cubes)
""",
    "processes": """
import concurrent.futures, multiprocessing, os, signal, subprocess, sys
def double(n):
    return 2 * n
with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
    print(list(pool.map(double, range(3))))
print(subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True).stdout.strip())
read, write = os.pipe()
if os.fork() == 0:
    os.nice(5)
    os.write(write, b"child")
    os._exit(0)
os.wait()
print(os.read(read, 5).decode())
signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.pause()
""",
    "asyncio": """
import asyncio, os, socket
async def main():
    async def answer(reader, writer):
        writer.write((await reader.readline()).upper())
        writer.close()
    server = await asyncio.start_unix_server(answer, "/tmp/s")
    reader, writer = await asyncio.open_unix_connection("/tmp/s")
    writer.write(b"hello\\n")
    text = await reader.readline()
    writer.close()
    server.close()
    both = await asyncio.gather(asyncio.sleep(0.01, 1), asyncio.to_thread(lambda: 2))
    return text, both
print(asyncio.run(main()))
one, two = socket.socketpair()
one.settimeout(1)
two.sendall(b"x")
print(one.recv(1))
""",
    "the rest": """
import ctypes, datetime, decimal, getpass, hashlib, locale, os, platform, random, secrets, select
import shutil, ssl, statistics, sys, time, uuid, zoneinfo
when = datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Lisbon")).utcoffset()
print(when, decimal.Decimal("1.1") * 3, hashlib.sha256(b"x").hexdigest()[:8], len(secrets.token_bytes(8)))
print(len(str(uuid.uuid4())), sys.stdout.isatty(), shutil.get_terminal_size().columns > 0)
print(os.cpu_count() > 0, len(os.sched_getaffinity(0)) > 0, platform.system(), ssl.OPENSSL_VERSION[:7])
poller = select.epoll()
poller.close()
time.sleep(0.001)
""",
}  # fmt: skip

EXPECTED = {
    "files": "[{'a': '1', 'b': '2'}] b'a' (4950,) 3\n",
    "threads": "49 [0, 1, 8, 27]\n",
    "processes": "[0, 2, 4]\n42\nchild\nalarm\n",
    "asyncio": "(b'HELLO\\n', [1, 2])\nb'x'\n",
    "the rest": "1:00:00 3.3 2d711642 8\n36 False True\nTrue True Linux OpenSSL\n",
}


@pytest.mark.parametrize("name", ORDINARY)
@ON_ALL
def test_ordinary_python_works(name: str, where: str) -> None:
    result = execute(ORDINARY[name], backend=BACKENDS[where])
    assert result.status == "ok", result.for_model()
    assert result.printout == EXPECTED[name]
