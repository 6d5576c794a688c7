"""What crashed processes leave is removed; what a living one owns stays."""

import asyncio
import fcntl
import io
import json
import os
import subprocess
import sys
import tarfile
import textwrap
import time
from pathlib import Path

import pytest
from kit.sandboxed import BACKEND, DOCKER, ON_BOTH, needs_docker

from limbeck.sandbox import docker, folders, holding, leftovers, uids
from limbeck.sandbox.backend import Leftover
from limbeck.sandbox.image import ABI_LABEL
from limbeck.sandbox.provision import find_bwrap, prepare_runtime
from limbeck.sandbox.reaper import reap_all

_WORDS = folders.this_process().split()
DEAD = " ".join([_WORDS[0], "1", *_WORDS[2:]])
"""This process, had it started when the machine did."""

HOST = textwrap.dedent("""
    import sys
    from limbeck import Executor, Toolset
    box = Toolset("box")

    @box.tool(effect="read")
    def go_on() -> None:
        print("started", flush=True)
        sys.stdin.readline()

    executor = Executor([box], gate="off", backend=sys.argv[1])
    result = executor.execute_code("from tools import box\\nbox.go_on()\\nprint('went on')")
    print(result.printout, flush=True)
    executor.close()
""")


def _host(where: str) -> subprocess.Popen[str]:
    """An executor in a process of its own, in the middle of a script."""
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, where],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert host.stdout.readline() == "started\n"
    return host


def _folders_of(host: subprocess.Popen[str]) -> list[str]:
    return [
        path.parent.name
        for path in folders.base_folder().glob("*/owner")
        if path.read_text().split()[0] == str(host.pid)
    ]


def _remaining(sandbox: str) -> list[str]:
    """Everything on this host that has the sandbox's name."""
    found = [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/limbeck/{sandbox}")]
    found += [str(path) for path in folders.base_folder().glob(sandbox)]
    if not asyncio.run(DOCKER.check()):
        label = f"label=io.limbeck.sandbox={sandbox}"
        command = ["docker", "ps", "-a", "--filter", label, "--format", "container {{.ID}}"]
        found += subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.splitlines()
    return found


def _reap() -> list[Leftover]:
    """Asked at once: whoever checks a backend on this host reaps too."""
    return [one for one in asyncio.run(reap_all(BACKEND, DOCKER)).found if one.removed]


def _reap_by_command() -> dict:
    command = [sys.executable, "-m", "limbeck", "doctor", "--reap", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@ON_BOTH
def test_what_a_killed_executor_left_is_removed_and_reported(where: str) -> None:
    living = _host(where)
    (kept,) = _folders_of(living)
    try:
        before = len(_remaining(kept))
        # Another process on this host may check its backend, and so reap, before us: once more.
        for _ in range(20):
            host = _host(where)
            (sandbox,) = _folders_of(host)
            assert len(_remaining(sandbox)) == before
            host.kill()
            host.wait()
            host.stdin.close()
            host.stdout.close()
            removed = [one.kind for one in _reap() if _is_of(sandbox, one)]
            assert _remaining(sandbox) == []
            if "folder" in removed and (where == "bubblewrap" or "container" in removed):
                break
        else:
            raise AssertionError(f"not reported: {removed}")
        assert len(_remaining(kept)) == before
        living.stdin.write("go on\n")
        living.stdin.flush()
        assert living.stdout.readline() == "went on\n"
        assert living.wait(60) == 0
    finally:
        living.kill()
        living.wait()
        living.stdin.close()
        living.stdout.close()


def test_the_command_says_in_json_what_it_removed() -> None:
    host = _host("bubblewrap")
    (sandbox,) = _folders_of(host)
    host.kill()
    host.wait()
    host.stdin.close()
    host.stdout.close()
    told = _reap_by_command()
    assert all(set(one) >= {"kind", "name"} for one in told["removed"])
    assert _remaining(sandbox) == []


def _is_of(sandbox: str, one: Leftover) -> bool:
    # A container has a name of the engine's choosing.
    return one.kind == "container" or sandbox in one.name


@pytest.fixture
def base(tmp_path, monkeypatch) -> Path:
    """A base of the test's own for folders and uid locks."""
    monkeypatch.setattr(folders, "_base_path", lambda: tmp_path / "b")
    monkeypatch.setattr(folders, "_check_length", lambda base: None)
    return folders.base_folder()


def test_a_process_that_outlived_its_host_is_killed_first(base: Path) -> None:
    for name, owner in (("0dead001", DEAD), ("0a11fe01", folders.this_process())):
        folder = folders.make_folder(name)
        (folder.root / "owner").write_text(owner)
    bwrap = find_bwrap(None, prepare_runtime())
    strays = [_stray(bwrap, base / name / "bridge") for name in ("0dead001", "0a11fe01")]
    try:
        found = leftovers.reap_host()
        kinds = {one.kind for one in found if "0dead001" in one.name and one.removed}
        assert kinds == {"process", "folder"}
        assert not [one for one in found if "0a11fe01" in one.name]
        assert strays[0].wait(10) != 0
        assert strays[1].poll() is None
        assert [path.name for path in base.iterdir()] == ["0a11fe01"]
    finally:
        for one in strays:
            one.kill()
            one.wait()


def _stray(bwrap: str, bridge: Path) -> subprocess.Popen[bytes]:
    """A sandbox that does not die with its parent, which no backend of ours makes."""
    started = subprocess.Popen(
        [
            bwrap, "--unshare-pid", "--ro-bind", "/usr", "/usr", "--ro-bind-try", "/lib", "/lib",
            "--ro-bind-try", "/lib64", "/lib64", "--ro-bind", str(bridge), "/bridge",
            "--", "/usr/bin/env", "sh", "-c", "echo up; sleep 600",
        ],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    with started.stdout:
        assert started.stdout.readline() == b"up\n"
    return started


def test_a_folder_without_an_owner_is_left_until_it_is_old(base: Path) -> None:
    for name in ("01d01d01", "0e3e3e3e", "not-ours"):
        (base / name).mkdir()
    old = time.time() - folders.NO_OWNER_SECONDS - 60
    for name in ("01d01d01", "not-ours"):
        os.utime(base / name, (old, old))
    assert leftovers.reap_host() == [Leftover("folder", "01d01d01")]
    assert sorted(path.name for path in base.iterdir()) == ["0e3e3e3e", "not-ours"]


def test_what_cannot_be_removed_keeps_its_folder(base: Path, monkeypatch) -> None:
    """Else nobody would know again that the cgroup is a dead sandbox's."""
    folder = folders.make_folder("0dead002")
    (folder.root / "owner").write_text(DEAD)
    stuck = Leftover("cgroup", "0dead002", removed=False)
    monkeypatch.setattr(leftovers.cgroup, "find_hierarchies", lambda: object())
    monkeypatch.setattr(leftovers.cgroup, "reap", lambda hierarchies, dead: [stuck])
    assert leftovers.reap_host() == [stuck]
    assert folder.root.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has uids to lend")
def test_uid_locks_go_when_nobody_holds_them(base: Path) -> None:
    held, given_back = uids.lease_uid(), uids.lease_uid()
    given_back.release()
    assert uids.reap() == [Leftover("uid lock", str(given_back.uid - uids.BASE))]
    assert uids.reap() == []
    again = uids.lease_uid()
    assert again.uid != held.uid
    held.release()
    again.release()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has uids to lend")
def test_a_uid_whose_lock_was_reaped_meanwhile_is_not_lent_twice(base: Path, monkeypatch) -> None:
    """Between the opening and the locking the reaper may take the file away."""
    flock, paths = fcntl.flock, []

    def lock(descriptor: int, operation: int) -> None:
        if not paths:
            paths.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
            paths[0].unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(uids.fcntl, "flock", lock)
    one = uids.lease_uid()
    another = uids.lease_uid()
    assert one.uid != another.uid
    one.release()
    another.release()


HOLDER = "import sys; from pathlib import Path; from limbeck.sandbox.holding import hold; print(hold(Path(sys.argv[1])), flush=True); sys.stdin.read()"


def _aged(path: Path, seconds: float) -> Path:
    path.mkdir()
    (path / "file").write_text("x")
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


def test_runtime_folders_stay_while_somebody_holds_them(tmp_path: Path) -> None:
    day = holding.KEPT_SECONDS
    current, held, free, young = (_aged(tmp_path / (one * 24), day * 2) for one in "abcd")
    os.utime(young)
    making, made = (_aged(tmp_path / f"new-{age}", age) for age in (60, 7200))
    other = _aged(tmp_path / "somebody's", day * 2)
    (tmp_path / ("e" * 24)).symlink_to(other)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, held], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert holder.stdout.readline() == "True\n"
    os.utime(held, (0, 0))
    assert {one.name for one in holding.reap(tmp_path, current)} == {free.name, made.name}
    assert {path.name for path in tmp_path.iterdir()} == {
        current.name, held.name, young.name, making.name, other.name, "e" * 24,
    }  # fmt: skip
    assert (other / "file").exists()
    holder.kill()
    holder.wait()
    holder.stdin.close()
    holder.stdout.close()
    assert holding.reap(tmp_path, current) == [Leftover("runtime", held.name)]


def test_a_folder_that_was_reaped_while_waiting_is_not_held(tmp_path: Path, monkeypatch) -> None:
    root = _aged(tmp_path / ("a" * 24), 0)
    flock = fcntl.flock

    def lock(descriptor: int, operation: int) -> None:
        root.rename(tmp_path / "new-gone")
        flock(descriptor, operation)

    monkeypatch.setattr(holding.fcntl, "flock", lock)
    assert not holding.hold(root)


def test_a_runtime_that_is_used_is_held_and_made_again_when_it_is_gone(tmp_path: Path) -> None:
    root = prepare_runtime().root
    descriptor = os.open(root, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
    other = _aged(tmp_path / ("a" * 24), 0)
    assert holding.hold(other)
    other.rename(tmp_path / "b")
    assert not holding.hold(other)
    other.mkdir()
    assert holding.hold(other)


@needs_docker
def test_an_image_whose_name_another_took_is_removed() -> None:
    name = f"limbeck-test-{os.getpid()}"

    async def build_twice_and_reap() -> tuple[list[str], list[Leftover], list[str]]:
        backend = docker.DockerBackend()
        await backend.daemon.connect()
        try:
            for number in (1, 2):
                await backend.daemon.ask(
                    "import_image_from_data", _layer(f"{name} {number}"), repository=name,
                    tag="x", changes=[f"LABEL {ABI_LABEL}=of-a-test"],
                )  # fmt: skip
                if number == 1:
                    first = await backend.daemon.ask("inspect_image", f"{name}:x")
            reaped = await backend.reap_images()
            with pytest.raises(docker.DaemonError) as gone:
                await backend.daemon.ask("inspect_image", first["Id"])
            assert gone.value.status == 404
            kept = await backend.daemon.ask("images", name=name)
        finally:
            await backend.daemon.ask("remove_image", f"{name}:x")
        return [first["Id"][7:19]], reaped, [one["Id"] for one in kept]

    for _ in range(5):  # another reaper may be faster
        (first,), reaped, kept = asyncio.run(build_twice_and_reap())
        assert len(kept) == 1
        if Leftover("image", first) in reaped:
            return
    raise AssertionError("the image was not reported")


def _layer(text: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        item = tarfile.TarInfo("file")
        item.size = len(text.encode())
        archive.addfile(item, io.BytesIO(text.encode()))
    return buffer.getvalue()
