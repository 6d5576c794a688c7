"""What a script can reach by sockets, tried from inside with the gate off."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.probes import Batch
from kit.sandboxed import BACKENDS, ON_ALL, ON_BOTH, execute

from limbeck import AsyncExecutor

PROBES = {
    "interfaces": """
lines = open("/proc/net/dev").read().splitlines()[2:]
seen = sorted(line.partition(":")[0].strip() for line in lines)
routes = [open(f"/proc/net/{name}").read().splitlines() for name in ("route",)]
fine = seen == ["lo"] and all(len(lines) <= 1 for lines in routes)
""",
    "host loopback": """
import socket
seen = []
for host in ("127.0.0.1", "localhost", "0.0.0.0", "::1"):
    try:
        socket.create_connection((host, TCP_PORT), 1).close()
        seen.append(host)
    except OSError:
        pass
fine = not seen
""",
    "datagrams": """
import socket
seen = []
try:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"x", ("127.0.0.1", UDP_PORT))
    seen.append("sent")
except OSError:
    pass
fine = not seen
""",
    "outside addresses": """
import socket
seen = []
for address in (("192.0.2.1", 80), ("169.254.169.254", 80), ("172.17.0.1", 2375), ("10.0.0.1", 53)):
    try:
        socket.create_connection(address, 1).close()
        seen.append(address)
    except PermissionError:
        pass
    except OSError as error:
        if isinstance(error, TimeoutError):
            seen.append(address)  # it had a way
fine = not seen
""",
    "names": """
import socket
seen = []
for name in ("example.com", "localhost.localdomain.example", "metadata.google.internal"):
    try:
        seen.append(socket.getaddrinfo(name, 80))
    except OSError:
        pass
fine = not seen
""",
    "socket families": """
import socket
seen = []
for family in range(64):
    for kind in (1, 2, 3, 5):
        try:
            socket.socket(family, kind).close()
            seen.append((family, kind))
        except OSError:
            pass
fine = {family for family, _ in seen} == {socket.AF_UNIX}
""",
    "abstract sockets": """
import socket
seen = []
for name in ABSTRACT:
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.connect("\\0" + name)
        seen.append(name)
    except OSError:
        pass
lines = open("/proc/net/unix").read().splitlines()[1:]
seen += [line for line in lines if "@" in line]
fine = not seen
""",
    "sockets in the file system": """
import os, socket, stat
seen = []
for prefix in ("", "/proc/1/root", "/proc/self/root", f"/proc/{os.getppid()}/root"):
    for path in (SOCKET, "/var/run/docker.sock", "/run/docker.sock", "/run/systemd/private",
                 "/run/dbus/system_bus_socket", "/run/containerd/containerd.sock"):
        try:
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(prefix + path)
            seen.append(prefix + path)
        except OSError:
            pass
for folder, _, names in os.walk("/"):
    if folder.startswith("/proc"):
        continue
    for name in names:
        path = os.path.join(folder, name)
        try:
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                seen.append(path)
        except OSError:
            pass
fine = set(seen) <= {"/bridge/s", "/bridge/o"}
""",
    "the bridge's folder": """
import os, socket
seen = []
for name in ("/bridge/s", "/bridge/o"):
    for act in (os.unlink, lambda p: os.chmod(p, 0o777), lambda p: os.rename(p, "/bridge/x"),
                lambda p: os.link(p, "/tmp/x"), lambda p: os.chown(p, 0, 0)):
        try:
            act(name)
            seen.append(name)
        except OSError:
            pass
try:
    socket.socket(socket.AF_UNIX).bind("/bridge/mine")
    seen.append("bound")
except OSError:
    pass
fine = not seen
""",
}  # fmt: skip


@pytest.fixture(scope="module")
def facts(tmp_path_factory) -> Iterator[dict[str, object]]:
    """Listeners of the host's that nothing but the walls keeps from a script."""
    path = str(tmp_path_factory.mktemp("host") / "s")
    abstract = f"limbeck-test-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        for name in (path, f"\0{abstract}"):
            one = stack.enter_context(socket.socket(socket.AF_UNIX))
            one.bind(name)
            one.listen(8)
        for folder in Path(path).parents:
            if folder.owner() == Path(path).owner() and str(folder).startswith("/tmp/"):
                folder.chmod(0o755)
        os.chmod(path, 0o777)
        yield {
            "TCP_PORT": tcp.getsockname()[1], "UDP_PORT": udp.getsockname()[1],
            "ABSTRACT": [abstract], "SOCKET": path, "udp": udp,
        }  # fmt: skip


@pytest.fixture(scope="module")
def batch(facts) -> Batch:
    return Batch(PROBES, lambda: {name: facts[name] for name in facts if name.isupper()})


@pytest.mark.parametrize("name", PROBES)
@ON_ALL
def test_it_holds_inside(name: str, where: str, batch: Batch, facts) -> None:
    batch.check(name, where)
    with pytest.raises(BlockingIOError):
        facts["udp"].recv(1)


@pytest.mark.parametrize(
    "name",
    ["host loopback", "datagrams", "socket families", "abstract sockets", "sockets in the file system"],
)  # fmt: skip
def test_the_probe_can_fail(name: str, batch: Batch, facts) -> None:
    batch.control(name)
    with contextlib.suppress(BlockingIOError):
        facts["udp"].recv(1)


@ON_BOTH
def test_a_second_connection_to_the_bridge_is_refused(where: str) -> None:
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
def test_sandboxes_do_not_reach_each_other(where: str) -> None:
    """An abstract socket of one sandbox, looked for by another that lives at the same time."""
    serve = """
import socket, time
one = socket.socket(socket.AF_UNIX)
one.bind("\\0limbeck-neighbour")
one.listen()
print("listening", flush=True)
time.sleep(60)
"""
    seek = """
import socket
try:
    socket.socket(socket.AF_UNIX).connect("\\0limbeck-neighbour")
    print("connected")
except OSError as error:
    print(type(error).__name__)
"""

    async def both() -> str:
        listening = asyncio.Event()
        async with AsyncExecutor(gate="off", backend=BACKENDS[where]) as executor:
            neighbour = asyncio.create_task(
                executor.execute_code(serve, on_output=lambda *_: listening.set())
            )
            await asyncio.wait_for(listening.wait(), 30)
            result = await executor.execute_code(seek)
            assert not neighbour.done()
            neighbour.cancel()
            await asyncio.wait([neighbour])
        return result.printout

    assert asyncio.run(both()) == "ConnectionRefusedError\n"
