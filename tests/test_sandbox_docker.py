"""The docker backend when things go wrong: a killed host, a daemon that hangs, none at all."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from kit.sandboxed import execute, needs_docker

from limbeck.sandbox import docker as backend
from limbeck.sandbox.auto import AutoBackend
from limbeck.sandbox.bubblewrap import BubblewrapBackend
from limbeck.sandbox.choice import DockerOptions
from limbeck.sandbox.docker import DockerBackend
from limbeck.sandbox.docker_sandbox import DEADLINE_LABEL, OWNER_LABEL
from limbeck.sandbox.owner import this_process

HOST = textwrap.dedent("""
    from limbeck import Executor, Toolset
    box = Toolset("box")

    @box.tool(effect="read")
    def started() -> None:
        print("started", flush=True)

    executor = Executor([box], gate="off", backend="docker")
    executor.execute_code("from tools import box\\nbox.started()\\nwhile True: pass")
""")


def _containers(owner: int) -> list[str]:
    found = subprocess.run(
        ["docker", "ps", "-a", "--format", "{{.ID}} {{.State}} {{.Label \"io.limbeck.owner\"}}"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    return [line for line in found if line.split()[2] == str(owner)]


@needs_docker
def test_a_killed_host_s_container_ends_and_is_reaped() -> None:
    host = subprocess.Popen([sys.executable, "-c", HOST], stdout=subprocess.PIPE, text=True)
    assert host.stdout.readline() == "started\n"
    (running,) = _containers(host.pid)
    assert " running " in running
    host.kill()
    host.wait()
    host.stdout.close()
    for _ in range(100):
        if not any(" running " in line for line in _containers(host.pid)):
            break
        time.sleep(0.1)
    assert not any(" running " in line for line in _containers(host.pid))
    asyncio.run(DockerBackend().reap())
    assert _containers(host.pid) == []


class Deaf:
    """A daemon that takes connections and never answers, on a socket of its own."""

    def __init__(self, path: str) -> None:
        program = (
            "import socket, time\n"
            f"s = socket.socket(socket.AF_UNIX); s.bind({path!r}); s.listen(64)\n"
            "print('listening', flush=True)\n"
            "time.sleep(600)\n"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout.readline() == "listening\n"

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def test_a_daemon_that_never_answers_is_told_in_bounded_time(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(backend, "CALL_SECONDS", 1.0)
    deaf = Deaf(str(tmp_path / "d.sock"))
    try:
        result = execute("1", backend=DockerBackend(base_url=f"unix://{tmp_path}/d.sock"))
    finally:
        deaf.close()
    assert result.status == "unavailable"
    assert "docker" in result.for_model()
    assert "Hint:" in result.for_model()


@needs_docker
def test_a_daemon_that_stops_in_the_middle_gives_a_true_status(monkeypatch) -> None:
    """The daemon is stopped while a script runs, and goes on afterwards."""
    pid = int(subprocess.run(["pidof", "dockerd"], capture_output=True, text=True).stdout or 0)
    if not pid:
        pytest.skip("the daemon is not a process here")
    monkeypatch.setattr(backend, "CALL_SECONDS", 2.0)
    docker = DockerBackend()
    stopped = []

    def stop(stream: str, text: str) -> None:
        os.kill(pid, signal.SIGSTOP)
        stopped.append(text)

    try:
        script = "import time\nprint('began', flush=True)\ntime.sleep(0.5)\nprint('ended')"
        result = execute(
            script, backend=docker, on_output=lambda *one: None if stopped else stop(*one)
        )
        assert result.printout == "began\nended\n"
        assert result.status == "ok"
    finally:
        os.kill(pid, signal.SIGCONT)
    assert execute("print(1)", backend=DockerBackend()).status == "ok"
    asyncio.run(DockerBackend().reap())


def test_without_a_daemon_auto_falls_to_bubblewrap_and_names_both_mends(tmp_path) -> None:
    missing = DockerBackend(base_url=f"unix://{tmp_path}/none.sock")
    auto = AutoBackend([missing, BubblewrapBackend()])
    result = execute("print(1)", backend=auto)
    assert (result.status, result.sandbox.backend) == ("ok", "bubblewrap")
    neither = AutoBackend([missing, BubblewrapBackend(bwrap="/nonexistent")])
    text = execute("print(1)", backend=neither).for_model()
    assert "docker: " in text
    assert "bubblewrap: " in text


@needs_docker
def test_auto_takes_docker_when_it_works() -> None:
    result = execute("print(1)", backend=AutoBackend([DockerBackend(), BubblewrapBackend()]))
    assert result.sandbox.backend == "docker"
    assert result.sandbox.image.startswith("limbeck:")


@needs_docker
def test_the_reaper_takes_the_dead_s_and_the_overdue_and_nobody_else_s() -> None:
    here = this_process()
    pid = here.split()[0]
    later, before = str(int(time.time()) + 600), str(int(time.time()) - 1)
    wanted = {
        (here, later): True,
        (here, before): False,
        (f"{pid} 1", later): False,
        (f"{pid} 1 17", later): True,  # Of another namespace: nobody here knows.
        (f"{pid} 1 17", before): False,
        ("", ""): False,
    }
    docker = DockerBackend()
    assert asyncio.run(docker.check()) is None
    made = {}
    for owner, deadline in wanted:
        labels = ["--label", f"{OWNER_LABEL}={owner}", "--label", f"{DEADLINE_LABEL}={deadline}"]
        created = subprocess.run(
            ["docker", "create", *labels, docker.image], capture_output=True, text=True, check=True
        )
        made[owner, deadline] = created.stdout.strip()
    try:
        asyncio.run(docker.reap())
        left = subprocess.run(
            ["docker", "ps", "-aq", "--no-trunc"], capture_output=True, text=True, check=True
        ).stdout.split()
        assert {key: container in left for key, container in made.items()} == wanted
    finally:
        subprocess.run(["docker", "rm", "-f", *made.values()], capture_output=True)


def test_a_process_ends_although_the_daemon_never_answers(tmp_path) -> None:
    """Threads that wait for the daemon are daemons themselves: nothing joins them."""
    deaf = Deaf(str(tmp_path / "d.sock"))
    program = textwrap.dedent(f"""
        from limbeck import Executor
        from limbeck.sandbox import docker
        docker.CALL_SECONDS = 1.0
        backend = docker.DockerBackend(base_url="unix://{tmp_path}/d.sock")
        print(Executor(backend=backend).execute_code("print(1)").status)
    """)
    try:
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
        )
    finally:
        deaf.close()
    assert (done.returncode, done.stdout) == (0, "unavailable\n"), done.stderr


@needs_docker
def test_options_reach_the_engine() -> None:
    options = DockerOptions(runtime="io.containerd.runc.v2")
    result = execute("print(1)", backend="docker", docker=options)
    assert result.status == "ok", result.for_model()
    missing = execute("print(1)", backend="docker", docker=DockerOptions(runtime="runsc-no"))
    assert missing.status == "unavailable"
    assert "runsc-no" in missing.for_model()
    other = execute("print(1)", backend="docker", docker=DockerOptions(image="limbeck:none"))
    assert "limbeck:none" in other.for_model()
