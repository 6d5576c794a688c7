"""What a script sees and can do inside, gate off: each property is tried, not read off a flag.

The same probes run without a sandbox at the end of the file, to show that they can fail.
"""

import json
import os
import socket
import subprocess
import sys

import pytest
from kit.sandboxed import BACKEND, BACKENDS, ON_ALL, ON_BOTH, execute

PROBES = {
    "host files": """
import os
seen = [path for path in ("/root", "/home", "/var", "/usr/bin/env", "/bin/sh", "/etc/shadow",
        "/etc/machine-id", "/etc/ssh", CANARY) if os.path.exists(path)]
for path in ("/etc/passwd", "/etc/hostname"):
    # A container has files of its own by these names.
    text = open(path).read() if os.path.exists(path) else ""
    if "root" in text or HOSTNAME in text.split():
        seen.append(path)
fine = not seen
""",
    "network": """
import socket
seen = []
for address in (("127.0.0.1", PORT), ("169.254.169.254", 80), ("192.0.2.1", 80)):
    try:
        socket.create_connection(address, 1).close()
        seen.append(address)
    except OSError:
        pass
fine = not seen and sorted(name for _, name in socket.if_nameindex()) == ["lo"]
""",
    "uid": """
import os
seen = [os.getresuid(), os.getresgid(), os.getgroups()]
fine = 0 not in [*os.getresuid(), *os.getresgid()] and set(os.getgroups()) <= {os.getgid()}
""",
    "capabilities": """
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
seen = [status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")]
fine = all(int(one, 16) == 0 for one in seen) and status["NoNewPrivs"] == "1"
""",
    "processes": """
import os
seen = sorted(name for name in os.listdir("/proc") if name.isdigit())
fine = len(seen) <= 5 and os.getppid() == 1
""",
    "process 1": """
import os
seen = []
for name in ("environ", "mem", "maps", "fd/0", "fd/1", "root", "cwd", "exe"):
    try:
        open(f"/proc/1/{name}", "rb").read(1)
        seen.append(name)
    except OSError:
        pass
for name in ("root", "exe", "cwd"):
    try:
        seen.append(os.readlink(f"/proc/1/{name}"))
    except OSError:
        pass
fine = not seen
""",
    "writable places": """
import os
seen = []
for folder, _, _ in os.walk("/"):
    if folder.startswith("/proc/"):
        continue
    try:
        with open(os.path.join(folder, "probe"), "x"):
            seen.append(folder)
    except OSError:
        pass
fine = sorted(seen) == ["/dev/shm", "/tmp", "/workspace"]
""",
    "tmpfs sizes": """
seen = {}
for folder in ("/tmp", "/workspace", "/dev/shm"):
    size = 0
    try:
        with open(f"{folder}/big", "wb") as file:
            while size < 200 << 20:
                size += file.write(b"x" * 65536)
                file.flush()
    except OSError:
        pass
    seen[folder] = size
fine = sum(seen.values()) <= 100 << 20
""",
    "kernel files": """
import os
seen = []
for folder, _, names in os.walk("/proc/sys"):
    for name in names:
        try:
            os.close(os.open(os.path.join(folder, name), os.O_WRONLY))
            seen.append(name)
        except OSError:
            pass
for name in ("sysrq-trigger", "self/oom_score_adj", "self/loginuid", "1/oom_score_adj"):
    try:
        descriptor = os.open(f"/proc/{name}", os.O_WRONLY)
        # A masked file is /dev/null, which takes everything and does nothing.
        if os.fstat(descriptor).st_rdev != os.stat("/dev/null").st_rdev:
            seen.append(name)
        os.close(descriptor)
    except OSError:
        pass
for name in ("kcore", "kallsyms", "cmdline", "keys", "timer_list", "modules"):
    try:
        if open(f"/proc/{name}", "rb").read(1):
            seen.append(name)
    except OSError:
        pass
fine = not seen
""",
    "mounts": """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
seen = [
    libc.mount(b"none", b"/tmp", b"tmpfs", 0, None),
    libc.umount2(b"/tools", 2),
    libc.mount(None, b"/", None, 32 | 4096, None),
]
fine = all(one == -1 for one in seen)
""",
    "user namespaces": """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
seen = []
child = os.fork()
if child == 0:
    os._exit(0 if libc.unshare(0x10000000) == 0 else 1)
_, status = os.waitpid(child, 0)
seen = os.waitstatus_to_exitcode(status)
fine = seen == 1
""",
    "bridge folder": """
import os
seen = []
for name in ("/bridge/s", "/bridge/o"):
    for act in (os.unlink, lambda p: os.chmod(p, 0o777), lambda p: os.rename(p, "/bridge/x")):
        try:
            act(name)
            seen.append(name)
        except OSError:
            pass
fine = not seen
""",
    "environment": """
import os, sys
known = {"PYTHONPATH", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "MALLOC_ARENA_MAX", "HOME",
         "LANG", "TZ", "PWD", "LC_CTYPE", "HOSTNAME", "PATH"}
seen = sorted(set(os.environ) - known)
fine = not seen and not any("site-packages" in path for path in sys.path)
""",
    "descriptors": """
import os
seen = []
for name in sorted(os.listdir("/proc/self/fd"), key=int):
    try:
        seen.append(os.readlink(f"/proc/self/fd/{name}"))
    except OSError:
        pass
fine = seen[0] == "/dev/null" and all(
    one.startswith(("socket:", "anon_inode:[event")) for one in seen[1:]
) and sum(one.startswith("socket:") for one in seen) <= 3
""",
    "limits": """
import resource
seen = {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource)
        if name.startswith("RLIMIT_")}
hard = {name: limit[1] for name, limit in seen.items()}
fine = hard["RLIMIT_CORE"] == 1 and hard["RLIMIT_NOFILE"] <= 256 \\
    and hard["RLIMIT_CPU"] > 0 and hard["RLIMIT_MEMLOCK"] == 0 and 0 < hard["RLIMIT_DATA"] < 256 << 20
""",
    "names": """
import socket
seen = socket.gethostname()
fine = seen == "sandbox"
""",
    "programs": """
import os
seen = []
for folder in ("/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"):
    if os.path.isdir(folder):
        seen += [name for name in os.listdir(folder) if not name.startswith("python3")]
fine = not seen
""",
    "site-packages": """
import importlib.util
seen = [name for name in ("pip", "setuptools", "pydantic", "click", "pytest", "limbeck.bridge",
        "limbeck.sandbox") if importlib.util.find_spec(name) is not None]
fine = not seen
""",
}  # fmt: skip


def _script(name: str, canary: str, port: int) -> str:
    head = f"CANARY, PORT, HOSTNAME = {canary!r}, {port}, {socket.gethostname()!r}\n"
    return f"{head}{PROBES[name]}\nimport json\nprint(json.dumps([bool(fine), repr(seen)]))"


@pytest.fixture(scope="module")
def canary(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("canary") / "canary.txt"
    path.write_text("seen")
    path.chmod(0o644)
    return str(path)


@pytest.fixture(scope="module")
def port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("name", PROBES)
@ON_ALL
def test_it_holds_inside(name: str, where: str, canary: str, port: int) -> None:
    result = execute(_script(name, canary, port), backend=BACKENDS[where])
    assert result.status == "ok", result.for_model()
    fine, seen = json.loads(result.printout.splitlines()[-1])
    assert fine, seen


CONTROLS = (
    "host files",
    "network",
    "processes",
    "environment",
    "programs",
    "site-packages",
    "names",
)


@pytest.mark.parametrize("name", CONTROLS)
def test_the_probe_can_fail(name: str, canary: str, port: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _script(name, canary, port)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "SECRET": "x"},
    )
    fine, seen = json.loads(done.stdout.splitlines()[-1])
    assert not fine, seen


@ON_BOTH
def test_a_second_connection_is_refused(where: str) -> None:
    script = """
import socket
from limbeck.runtime.channel import Channel
try:
    Channel("/bridge/s", "").wait_for_job()
except BridgeClosed as error:
    print("refused")
try:
    socket.socket(socket.AF_UNIX).connect("/bridge/o")
    print("connected")
except OSError as error:
    print(type(error).__name__)
"""
    result = execute(script, backend=BACKENDS[where])
    assert result.printout == "refused\nConnectionRefusedError\n"


@ON_BOTH
def test_executions_share_nothing(where: str) -> None:
    leave = "open('/tmp/left', 'w').write('x')\nopen('/workspace/left', 'w').write('x')\nprint(1)"
    find = (
        "import os\nprint(os.listdir('/tmp') + os.listdir('/workspace') + os.listdir('/dev/shm'))"
    )
    assert execute(leave, backend=BACKENDS[where]).status == "ok"
    assert execute(find, backend=BACKENDS[where]).printout == "[]\n"


def test_no_two_live_sandboxes_have_one_uid() -> None:
    import asyncio

    from limbeck import AsyncExecutor

    async def run() -> set[str]:
        script = "import os, time\ntime.sleep(0.3)\nprint(os.getuid())"
        async with AsyncExecutor(gate="off", backend=BACKEND) as executor:
            results = await asyncio.gather(*(executor.execute_code(script) for _ in range(4)))
        return {result.printout for result in results}

    uids = asyncio.run(run())
    assert len(uids) == (4 if os.geteuid() == 0 else 1)


@ON_BOTH
def test_ordinary_python_works_inside(where: str) -> None:
    script = """
import asyncio, csv, ctypes, decimal, hashlib, json, sqlite3, ssl, tempfile, threading, zoneinfo, datetime
import multiprocessing.dummy, concurrent.futures
with tempfile.NamedTemporaryFile("w+") as file:
    file.write("a,b\\n1,2\\n")
    file.seek(0)
    rows = list(csv.DictReader(file))
base = sqlite3.connect("/workspace/x.db")
base.execute("create table t (a)")
base.execute("insert into t values (1)")
threads = [threading.Thread(target=lambda: None) for _ in range(64)]
for thread in threads: thread.start()
for thread in threads: thread.join()
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    squares = list(pool.map(lambda n: n * n, range(8)))
async def main():
    return await asyncio.gather(asyncio.sleep(0, 1), asyncio.to_thread(lambda: 2))
when = datetime.datetime(2026, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Lisbon")).utcoffset()
print(rows, base.execute("select * from t").fetchall(), squares[-1], asyncio.run(main()), when)
print(hashlib.sha256(b"x").hexdigest()[:8], decimal.Decimal("1.1") * 3, ssl.OPENSSL_VERSION[:7])
"""
    result = execute(script, backend=BACKENDS[where])
    assert result.status == "ok", result.for_model()
    first = "[{'a': '1', 'b': '2'}] [(1,)] 49 [1, 2] 1:00:00"
    assert result.printout.splitlines()[0] == first
