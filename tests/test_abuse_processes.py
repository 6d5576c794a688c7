"""What a script can do to processes, its own and others', tried from inside with the gate off."""

import os
import subprocess
import sys

import pytest
from kit.probes import Batch
from kit.sandboxed import BACKENDS, ON_ALL, execute, left_since, traces

PROBES = {
    "sees only its own": """
import os
seen = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
fine = len(seen) <= 3 and max(seen) < 1_000
""",
    "uid": """
import os
seen = [os.getresuid(), os.getresgid(), os.getgroups()]
fine = 0 not in [*os.getresuid(), *os.getresgid()] and set(os.getgroups()) <= {os.getgid()}
for act in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.seteuid(0)):
    try:
        act()
        fine = False
    except OSError:
        pass
""",
    "capabilities": """
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
seen = [status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")]
fine = all(int(one, 16) == 0 for one in seen) and status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
""",
    "process 1 is closed": """
import os
seen = []
for name in ("environ", "mem", "maps", "smaps", "auxv", "io", "syscall", "stack", "fd/0", "fd/1",
             "fd/2", "root/etc", "cwd/x", "exe", "map_files", "fdinfo/0", "timers"):
    for flags in (os.O_RDONLY, os.O_WRONLY):
        try:
            descriptor = os.open(f"/proc/1/{name}", flags)
        except OSError:
            continue
        try:
            if flags == os.O_WRONLY or os.read(descriptor, 1):
                seen.append(name)
        except OSError:
            pass
for name in ("root", "exe", "cwd", "fd/0", "fd/1", "ns/pid"):
    try:
        seen.append(os.readlink(f"/proc/1/{name}"))
    except OSError:
        pass
fine = not seen
""",
    "kill everything": """
import os, signal
# Threads have numbers too: those of this sandbox are left out, and so is who runs the probes.
own = {1, os.getpid(), os.getppid()}
for pid in os.listdir("/proc"):
    if pid.isdigit() and os.path.isdir(f"/proc/{pid}/task"):
        own |= {int(task) for task in os.listdir(f"/proc/{pid}/task")}
seen = []
for pid in range(1, 40_000):
    if pid not in own:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            try:
                os.kill(pid, number)
                seen.append(pid)
            except OSError:
                pass
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV):
    os.kill(1, number)
fine = not seen and os.path.exists("/proc/1/stat") and " T " not in open("/proc/1/stat").read()
""",
    "forks are counted": """
import os, signal, time
children = []
try:
    while len(children) < 400:
        child = os.fork()
        if child == 0:
            time.sleep(100)
            os._exit(0)
        children.append(child)
    seen = len(children)
except OSError as error:
    seen = (len(children), error.errno)
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
fine = isinstance(seen, tuple) and seen[0] <= 96 and seen[1] == 11
""",
    "threads are counted": """
import threading
stop = threading.Event()
threads = []
try:
    while len(threads) < 400:
        thread = threading.Thread(target=stop.wait)
        thread.start()
        threads.append(thread)
    seen = [len(threads)]
except RuntimeError as error:
    seen = [len(threads), str(error)]
stop.set()
for thread in threads:
    thread.join()
fine = len(seen) == 2 and 32 <= seen[0] <= 96
""",
    "priorities and limits": """
import os, resource, sched
seen = []
def tried(name, act):
    try:
        act()
        seen.append(name)
    except (OSError, ValueError):
        pass
tried("nice", lambda: os.nice(-1))
tried("priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, -5))
for policy in (os.SCHED_FIFO, os.SCHED_RR):
    tried("real time", lambda: os.sched_setscheduler(0, policy, os.sched_param(1)))
tried("process 1", lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
tried("everybody", lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19))
tried("process 1 idle", lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))
tried("cores", lambda: os.sched_setaffinity(0, range(os.cpu_count())))
for name in ("CPU", "DATA", "NOFILE", "CORE", "FSIZE", "MEMLOCK", "MSGQUEUE", "STACK"):
    which = getattr(resource, f"RLIMIT_{name}")
    soft, hard = resource.getrlimit(which)
    if hard == resource.RLIM_INFINITY:
        seen.append(f"{name} is endless")
    tried(name, lambda: resource.setrlimit(which, (soft, hard + 1)))
    tried(name, lambda: resource.prlimit(1, which, (1, 1)))
os.nice(1)
os.setpriority(os.PRIO_PROCESS, 0, 19)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
fine = not seen and resource.getrlimit(resource.RLIMIT_NOFILE) == (64, 64)
""",
    "hard limits": """
import resource
seen = {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource)
        if name.startswith("RLIMIT_")}
hard = {name: limit[1] for name, limit in seen.items()}
fine = hard["RLIMIT_CORE"] == 1 and hard["RLIMIT_NOFILE"] <= 256 and hard["RLIMIT_CPU"] > 0 \\
    and hard["RLIMIT_MEMLOCK"] == 0 and 0 < hard["RLIMIT_DATA"] < 256 << 20 \\
    and 0 <= hard["RLIMIT_SIGPENDING"] <= 1_024
""",
    "oom score": """
import os
before = open("/proc/self/oom_score_adj").read()
seen = []
for path in ("/proc/self/oom_score_adj", "/proc/self/oom_adj", "/proc/1/oom_score_adj"):
    try:
        with open(path, "w") as file:
            file.write("-1000")
        seen.append(path)
    except OSError:
        pass
fine = not seen and open("/proc/self/oom_score_adj").read() == before and int(before) > 0
""",
    "descriptors": """
import os
seen = []
for name in sorted(os.listdir("/proc/self/fd"), key=int):
    try:
        seen.append(os.readlink(f"/proc/self/fd/{name}"))
    except OSError:
        pass
# Besides 0, 1, 2 and the channel's: the pipe of this probe.
fine = seen[0] == "/dev/null" and os.read(0, 1) == b"" and all(
    one.startswith(("socket:", "anon_inode:[event", "pipe:")) for one in seen[1:]
) and sum(one.startswith("socket:") for one in seen) <= 3 \\
    and sum(one.startswith("pipe:") for one in seen) == 1
""",
}  # fmt: skip

BATCH = Batch(PROBES)


@pytest.mark.parametrize("name", PROBES)
@ON_ALL
def test_it_holds_inside(name: str, where: str) -> None:
    BATCH.check(name, where)


@pytest.mark.parametrize(
    "name", ["sees only its own", "capabilities", "hard limits", "oom score", "forks are counted"]
)
def test_the_probe_can_fail(name: str) -> None:
    BATCH.control(name)


def test_a_neighbour_on_the_host_is_out_of_reach() -> None:
    """The kill probe again, with a process of the sandbox's own uid that it could hit."""
    script = "import os\nfor pid in range(2, 40_000):\n    if pid != os.getpid() and pid != os.getppid():\n        try: os.kill(pid, 9)\n        except OSError: pass\nprint(os.getuid())"
    program = "import os, time\nos.setuid(int(%d)) if os.geteuid() == 0 else None\ntime.sleep(60)"
    from limbeck.sandbox.uids import BASE

    neighbours = [subprocess.Popen([sys.executable, "-c", program % (BASE + n)]) for n in range(2)]
    try:
        for where in ("bubblewrap", "watcher"):
            result = execute(script, backend=BACKENDS[where])
            # Its own threads have numbers too: the script may have ended itself.
            assert result.started
        assert [one.poll() for one in neighbours] == [None, None]
    finally:
        for one in neighbours:
            one.kill()
            one.wait()


STORMS = {
    "deaf, stopped, in other sessions": """
import os, signal, time
for number in range(1, 65):
    if number not in (9, 19, 32, 33):
        signal.signal(number, signal.SIG_IGN)
for turn in range(4):
    if os.fork() == 0:
        os.setsid()
        if turn == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
        while True:
            time.sleep(1)
while True:
    time.sleep(1)
""",
    "stop the parents and myself": """
import os, signal
for pid in (1, os.getppid(), 0, os.getpid()):
    os.kill(pid, signal.SIGSTOP)
while True:
    pass
""",
    "exec loops": """
import os, sys
for _ in range(4):
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-S", "-c", "import os, sys; os.execv(sys.executable, sys.orig_argv)"])
os.waitpid(-1, 0)
while True:
    pass
""",
    "vfork parents that wait": """
import _posixsubprocess, os, subprocess, sys, threading
def one():
    subprocess.run([sys.executable, "-S", "-c", "import time; time.sleep(100)"])
for _ in range(3):
    threading.Thread(target=one).start()
""",
    "storm of kills": """
import os
while True:
    for _ in range(8):
        if os.fork() == 0:
            while True:
                pass
    os.kill(-1, 9)
    try:
        while True:
            os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        pass
""",
}  # fmt: skip


@pytest.mark.parametrize("name", STORMS)
@ON_ALL
def test_the_deadline_ends_it(name: str, where: str) -> None:
    before = traces()
    result = execute(STORMS[name], backend=BACKENDS[where], limits={"wall": 1.5})
    assert result.status == "timeout", result.for_model()
    assert not left_since(before)


@ON_ALL
def test_a_daemon_that_holds_stdout_delays_nothing(where: str) -> None:
    script = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    for number in (1, 2, 15):
        signal.signal(number, signal.SIG_IGN)
    while True:
        os.write(1, b"")
        time.sleep(0.01)
print("done")
"""
    before = traces()
    result = execute(script, backend=BACKENDS[where], limits={"wall": 20})
    assert (result.status, result.printout) == ("ok", "done\n")
    assert not left_since(before)


@ON_ALL
def test_no_two_live_sandboxes_have_one_uid(where: str) -> None:
    import asyncio

    from limbeck import AsyncExecutor

    async def run() -> set[str]:
        script = "import os, time\ntime.sleep(0.5)\nprint(os.getuid())"
        async with AsyncExecutor(gate="off", backend=BACKENDS[where]) as executor:
            results = await asyncio.gather(*(executor.execute_code(script) for _ in range(3)))
        return {result.printout for result in results}

    assert len(asyncio.run(run())) == (3 if os.geteuid() == 0 else 1)
