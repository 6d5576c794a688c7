"""What a script can learn of the host and of other executions, tried from inside with the gate off."""

import os
import socket

import pytest
from kit.probes import ROOT, Batch
from kit.sandboxed import ON_ALL

PROBES = {
    "environment": """
import os
known = {"PYTHONPATH", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "MALLOC_ARENA_MAX", "HOME",
         "ARROW_IO_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
         "LANG", "TZ", "PWD", "LC_CTYPE", "HOSTNAME", "PATH"}
seen = sorted(set(os.environ) - known)
fine = not seen
""",
    "command lines": """
import os
seen = []
for pid in os.listdir("/proc"):
    if pid.isdigit():
        for name in ("cmdline", "environ", "comm"):
            try:
                text = open(f"/proc/{pid}/{name}", "rb").read().decode("utf-8", "replace")
            except OSError:
                continue
            seen += [word for word in (CHECKOUT, HOME, "setpriv", "bwrap", "--ro-bind", "SECRET",
                     "token", "TOKEN") if word in text]
fine = not seen
""",
    "import path": """
import sys
seen = [path for path in sys.path if "site-packages" in path or CHECKOUT in path or HOME in path]
fine = not seen and len(sys.path) < 6
""",
    "hostname": """
import os, socket
seen = [socket.gethostname(), os.uname().nodename, open("/proc/sys/kernel/hostname").read().strip(),
        open("/proc/sys/kernel/domainname").read().strip()]
fine = set(seen[:3]) == {"sandbox"} and HOSTNAME not in seen
""",
    "masked files": """
import os
seen = []
for name in ("kcore", "keys", "key-users", "timer_list", "kallsyms", "modules", "cmdline", "diskstats", "partitions",
             "interrupts", "latency_stats", "sched_debug", "kmsg", "config.gz", "iomem",
             "ioports", "slabinfo", "vmallocinfo", "kpagecount", "sysrq-trigger"):
    try:
        if open(f"/proc/{name}", "rb").read(1):
            seen.append(name)
    except OSError:
        pass
for folder in ("scsi", "acpi", "driver", "bus", "asound", "irq", "tty", "fs"):
    if os.path.isdir(f"/proc/{folder}"):
        try:
            seen += [f"{folder}/{name}" for name in os.listdir(f"/proc/{folder}")]
        except OSError:
            pass
fine = not seen
""",
    "hardware": """
import os
seen = []
for folder in ("/sys/class/dmi/id", "/sys/block", "/sys/firmware", "/sys/module", "/sys/kernel",
               "/sys/devices", "/sys/fs/cgroup", "/sys/class/net/eth0"):
    try:
        if os.listdir(folder):
            seen.append(folder)
    except OSError:
        pass
fine = not seen
""",
    "kernel files are closed to writing": """
import os
seen = []
for folder, _, names in os.walk("/proc/sys"):
    for name in names:
        try:
            os.close(os.open(os.path.join(folder, name), os.O_WRONLY))
            seen.append(name)
        except OSError:
            pass
for name in ("sysrq-trigger", "self/loginuid", "self/uid_map", "self/gid_map", "self/setgroups",
             "self/clear_refs", "self/timerslack_ns", "mtrr", "irq/default_smp_affinity"):
    try:
        descriptor = os.open(f"/proc/{name}", os.O_WRONLY)
        # A masked file is /dev/null, which takes everything and does nothing.
        if os.fstat(descriptor).st_rdev != os.stat("/dev/null").st_rdev:
            seen.append(name)
        os.close(descriptor)
    except OSError:
        pass
fine = not seen
""",
    "fresh folders": """
import os
seen = [name for folder in ("/tmp", "/workspace", "/dev/shm") for name in os.listdir(folder)]
fine = not seen
""",
    "cgroups": """
seen = open("/proc/self/cgroup").read()
fine = all(line.endswith(":/") for line in seen.split())
""",
}  # fmt: skip

BATCH = Batch(
    PROBES,
    lambda: {
        "HOSTNAME": socket.gethostname(), "CHECKOUT": str(ROOT),
        "HOME": os.path.expanduser("~") if os.path.expanduser("~") != "/" else str(ROOT),
    },
)  # fmt: skip


@pytest.mark.parametrize("name", PROBES)
@ON_ALL
def test_it_holds_inside(name: str, where: str) -> None:
    BATCH.check(name, where)


@pytest.mark.parametrize(
    "name", ["environment", "command lines", "import path", "hostname", "masked files"]
)
def test_the_probe_can_fail(name: str) -> None:
    BATCH.control(name)
