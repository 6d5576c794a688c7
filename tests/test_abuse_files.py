"""What a script can see and change of files, tried from inside with the gate off."""

import atexit
import os
import socket
import tempfile
from pathlib import Path

import pytest
from kit.probes import ROOT, Batch
from kit.sandboxed import BACKENDS, ON_ALL, execute

MIB = 1 << 20

_HOST = tempfile.TemporaryDirectory(prefix="limbeck-host-secret-")
atexit.register(_HOST.cleanup)
CANARY = Path(_HOST.name, "canary.txt")
CANARY.write_text("seen")
os.chmod(_HOST.name, 0o755)  # nothing but the walls keeps it from a script
CANARY.chmod(0o644)

PROBES = {
    "host files": """
import os
seen = [path for path in ("/root", "/home", "/var", "/srv", "/boot", "/usr/bin/env", "/bin/sh",
        "/etc/shadow", "/etc/machine-id", "/etc/ssh", "/etc/ld.so.cache", "/etc/resolv.conf.bak",
        CANARY) if os.path.exists(path)]
for prefix in ("/proc/self/root", "/proc/self/cwd/..", "/proc/1/root", "/proc/self/task/self/root"):
    if os.path.exists(prefix + CANARY):
        seen.append(prefix)
fine = not [one for one in seen if one != "/etc/ld.so.cache"]
""",
    "host accounts": """
import os, pwd
seen = []
for path in ("/etc/passwd", "/etc/group", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf"):
    # A container has files of its own by these names.
    text = open(path).read() if os.path.exists(path) else ""
    if "root" in text or HOSTNAME in text.split():
        seen.append(path)
try:
    seen.append(pwd.getpwuid(os.getuid()).pw_name)
except KeyError:
    pass
seen += [one.pw_name for one in pwd.getpwall()]
fine = not set(seen) - {"sandbox"}  # the image's own
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
        os.unlink(os.path.join(folder, "probe"))
    except OSError:
        pass
fine = sorted(seen) == ["/dev/shm", "/tmp", "/workspace"]
""",
    "tmpfs sizes": """
import os
seen = {}
for folder in ("/tmp", "/workspace", "/dev/shm"):
    size = 0
    for number in range(8):  # one file alone could be stopped by its own limit
        try:
            with open(f"{folder}/big{number}", "wb", buffering=0) as file:
                while sum(seen.values()) + size < 300 << 20:
                    size += file.write(b"x" * 65536)
        except OSError as error:
            seen[f"{folder} {number}"] = 0
            last = error.errno
    seen[folder] = size
    for number in range(8):
        if os.path.exists(f"{folder}/big{number}"):
            os.unlink(f"{folder}/big{number}")
fine = sum(seen.values()) <= 100 << 20 and seen["/tmp"] <= 32 << 20 and last == 28
""",
    "sparse giant file": """
import errno
seen = []
for size in (1 << 30, 1 << 40, (1 << 63) - 1):
    with open("/workspace/sparse", "wb") as file:
        for act in (lambda: file.truncate(size), lambda: (file.seek(size - 1), file.write(b"x"), file.flush())):
            try:
                act()
                seen.append(size)
            except OSError as error:
                if error.errno not in (errno.EFBIG, errno.EINVAL, errno.ENOSPC):
                    seen.append(error)
            file = open("/workspace/sparse", "wb")
import os, signal
os.unlink("/workspace/sparse")
fine = not seen
""".replace("import errno\n", "import errno, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"),
    "the runtime is read-only": """
import json, os, sys, limbeck.runtime.supervisor as own, RestrictedPython
seen = []
folders = {os.path.dirname(module.__file__) for module in (json, os, own, RestrictedPython)}
for path in [*(module.__file__ for module in (json, os, own, RestrictedPython)), sys.executable]:
    for act in (lambda: open(path, "r+b"), lambda: os.unlink(path), lambda: os.chmod(path, 0o777),
                lambda: os.rename(path, path + "x"), lambda: os.utime(path)):
        try:
            act()
            seen.append(path)
        except OSError:
            pass
for folder in [*folders, "/tools", "/data", "/bridge"]:
    try:
        open(f"{folder}/new", "x")
        seen.append(folder)
    except OSError:
        pass
fine = not seen
""",
    "links": """
import os
seen = []
os.symlink(CANARY, "/workspace/link")
os.symlink("/proc/1/root", "/workspace/root")
for path in ("/workspace/link", f"/workspace/root{CANARY}"):
    if os.path.exists(path):
        seen.append(path)
for path in (os.__file__, "/bridge/s", "/tools/tools/__init__.py"):
    try:
        os.link(path, "/workspace/hard")
        seen.append(path)
    except OSError:
        pass
fine = not seen
""",
    "device nodes": """
import os, stat
known = {"null", "zero", "full", "random", "urandom", "tty", "console", "ptmx", "fd", "stdin",
         "stdout", "stderr", "shm", "pts", "core", "mqueue"}
seen = sorted(set(os.listdir("/dev")) - known)
for kind in (stat.S_IFCHR, stat.S_IFBLK):
    for major, minor in ((1, 1), (1, 3), (8, 0), (259, 0)):
        try:
            os.mknod("/workspace/node", kind | 0o666, os.makedev(major, minor))
            seen.append((kind, major))
        except OSError:
            pass
for folder, _, names in os.walk("/"):
    if folder.startswith(("/proc", "/dev")):
        continue
    for name in names:
        mode = os.lstat(os.path.join(folder, name)).st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            seen.append(os.path.join(folder, name))
fine = not seen
""",
    "setuid programs": """
import os, stat
seen = []
for folder, _, names in os.walk(TOP):
    if folder.startswith("/proc"):
        continue
    for name in names:
        try:
            status = os.lstat(os.path.join(folder, name))
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and status.st_mode & (stat.S_ISUID | stat.S_ISGID):
            seen.append(os.path.join(folder, name))
fine = not seen
""",
    "/sys": """
import os
seen = []
for folder, _, names in os.walk("/sys"):
    for name in names:
        try:
            descriptor = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_NOFOLLOW)
            if os.fstat(descriptor).st_rdev != os.stat("/dev/null").st_rdev:
                seen.append(os.path.join(folder, name))
            os.close(descriptor)
        except OSError:
            pass
    try:
        os.mkdir(os.path.join(folder, "probe"))
        seen.append(folder)
    except OSError:
        pass
fine = not seen
""",
    "host names in mountinfo": """
import os
text = open("/proc/self/mountinfo").read()
seen = [word for word in (os.path.dirname(CANARY), CHECKOUT, HOME) if len(word) > 1 and word in text]
fine = not seen and len(text.splitlines()) > 5
""",
    "other programs": """
import os
seen = []
for folder in ("/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/opt", "/snap"):
    if os.path.isdir(folder):
        seen += [name for name in os.listdir(folder) if not name.startswith("python3")]
fine = not seen
""",
    "site-packages": """
import importlib.util
seen = [name for name in ("pip", "setuptools", "pydantic", "click", "pytest", "limbeck.bridge",
        "limbeck.sandbox", "limbeck.serve") if importlib.util.find_spec(name) is not None]
fine = not seen
""",
    "programs in /tmp": """
import os
# bubblewrap mounts no tmpfs with noexec: nothing there but what the script made.
seen = {path: bool(os.statvfs(path).f_flag & os.ST_NOEXEC) for path in ("/tmp", "/workspace", "/dev/shm")}
flags = [os.statvfs(path).f_flag for path in seen]
fine = all(flag & os.ST_NOSUID and flag & os.ST_NODEV for flag in flags)
fine = fine and (WHERE != "docker" or all(seen.values()))
""",
}  # fmt: skip

BATCH = Batch(
    PROBES,
    lambda: {
        "CANARY": str(CANARY), "HOSTNAME": socket.gethostname(), "CHECKOUT": str(ROOT),
        "HOME": os.path.expanduser("~"), "TOP": "/",
    },
)  # fmt: skip


@pytest.mark.parametrize("name", PROBES)
@ON_ALL
def test_it_holds_inside(name: str, where: str) -> None:
    BATCH.check(name, where)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("host files", {}),
        ("host accounts", {}),
        ("setuid programs", {"TOP": "/usr/bin"}),
        ("host names in mountinfo", {"CHECKOUT": "/proc"}),
        ("other programs", {}),
        ("site-packages", {}),
    ],
)
def test_the_probe_can_fail(name: str, facts: dict[str, str]) -> None:
    BATCH.control(name, **facts)


@ON_ALL
def test_a_flood_of_empty_files_ends(where: str) -> None:
    """A count where there is one; else what the files cost is memory, and counted as such."""
    script = """
import os, sys
number = 0
try:
    for number in range(1_000_000):
        os.close(os.open(f"/tmp/{number}", os.O_CREAT | os.O_WRONLY))
except OSError as error:
    print(error.strerror, number <= 20_000)
"""
    result = execute(script, backend=BACKENDS[where], limits={"memory": 64 * MIB})
    if where == "docker":
        assert result.printout == "No space left on device True\n"
    else:
        assert result.status == "memory", result.for_model()


@ON_ALL
def test_executions_leave_nothing_to_each_other(where: str) -> None:
    leave = """
import os
for folder in ("/tmp", "/workspace", "/dev/shm"):
    open(f"{folder}/left", "w").write("x")
if os.fork() == 0:
    os.setsid()
    while True:
        pass
print(1)
"""
    find = """
import os
names = [name for folder in ("/tmp", "/workspace", "/dev/shm") for name in os.listdir(folder)]
print(names, len([name for name in os.listdir("/proc") if name.isdigit()]))
"""
    assert execute(leave, backend=BACKENDS[where]).status == "ok"
    assert execute(find, backend=BACKENDS[where]).printout == "[] 2\n"
