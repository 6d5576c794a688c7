"""The filter of system calls: fresh, the same in both forms, and really in force inside."""

import errno
import json
import platform
import socket
import struct

import pytest
from kit.filters import ALLOW, KILL, run_bpf, run_profile
from kit.sandboxed import BACKENDS, ON_ALL, ON_BOTH, execute

from limbeck.runtime.errors import ConfigurationError
from limbeck.sandbox import seccomp
from limbeck.sandbox.bubblewrap import BubblewrapBackend
from limbeck.sandbox.docker import DockerBackend
from limbeck.sandbox.seccomp.bpf import AUDIT_ARCHITECTURES
from limbeck.sandbox.seccomp.build import FOLDER, build, read_numbers
from limbeck.sandbox.seccomp.policy import SUBTRACTIONS, make_policy

MOBY = json.loads((FOLDER / "moby-default.json").read_text())
NUMBERS = read_numbers((FOLDER / "numbers.txt").read_text())
POLICY = make_policy(MOBY, NUMBERS)
PROFILE = json.loads(seccomp.docker_profile())
HERE = platform.machine()

NEVER = [
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "kcmp",
    "pidfd_getfd",
    "keyctl",
    "add_key",
    "request_key",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "io_setup",
    "modify_ldt",
    "name_to_handle_at",
    "open_by_handle_at",
    "sync",
    "syncfs",
    "memfd_create",
    "shmget",
    "shmat",
    "semget",
    "msgget",
    "sched_setaffinity",
    "unshare",
    "setns",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "fsopen",
    "fsconfig",
    "fsmount",
    "open_tree",
    "move_mount",
    "mount_setattr",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "swapon",
    "swapoff",
    "settimeofday",
    "clock_settime",
    "sethostname",
    "setdomainname",
    "acct",
    "quotactl",
    "syslog",
    "iopl",
    "ioperm",
    "mbind",
    "set_mempolicy",
    "vhangup",
    "seccomp",
    "splice",
    "statmount",
    "listmount",
]

HIGH = 1 << 40
"""A bit that the kernel does not read: the filter must not be led astray by it."""

ARGUMENTS = {
    "socket": [(family,) for family in range(48)] + [(1 | HIGH,), (2 | HIGH,)],
    "socketpair": [(1,), (2,), (16,)],
    "clone": [(0x11,), (0x3D0F00,), *((1 << bit,) for bit in range(32)), (HIGH,)],
    "ioctl": [(0, one) for one in (0x5401, 0x5412, 0x541C, 0x5412 | HIGH, 0x5413, 0x541B, 0x8933)],
    "prlimit64": [(0,), (1,), (HIGH,)],
    "setpriority": [(0, 0), (0, 1), (1, 0), (2, 0)],
    "personality": [(0,), (0xFFFFFFFF,), (8,), (0x40000,), (0x400000,)],
    "setsockopt": [
        (3, level, option) for level in (0, 1, 6, 41) for option in (2, 7, 8, 9, 26, 32, 33, 50)
    ],
}


@pytest.mark.parametrize("name", build())
def test_the_committed_file_is_fresh(name: str) -> None:
    assert (FOLDER / name).read_bytes() == build()[name], "run: make seccomp"


@pytest.mark.parametrize("machine", seccomp.ARCHITECTURES)
def test_both_forms_decide_alike(machine: str) -> None:
    program = seccomp.filter_path(machine).read_bytes()
    for name, number in NUMBERS[machine].items():
        for arguments in ARGUMENTS.get(name, [()]):
            got = run_bpf(program, AUDIT_ARCHITECTURES[machine], number, arguments)
            assert got == run_profile(PROFILE, name, arguments), (name, arguments)


@pytest.mark.parametrize("machine", seccomp.ARCHITECTURES)
def test_what_the_filter_decides(machine: str) -> None:
    program, own = seccomp.filter_path(machine).read_bytes(), AUDIT_ARCHITECTURES[machine]
    numbers = NUMBERS[machine]

    def ask(name: str, *arguments: int):
        return run_bpf(program, own, numbers[name], arguments)

    for name in NEVER:
        if name in numbers:
            assert ask(name) == errno.EPERM, name
    for name in ("read", "openat", "execve", "futex", "mmap", "wait4", "epoll_pwait", "prctl"):
        assert ask(name) == ALLOW
    assert ask("clone3") == errno.ENOSYS
    assert ask("socket", socket.AF_UNIX) == ALLOW
    assert {ask("socket", family) for family in range(48) if family != 1} == {errno.EPERM}
    assert ask("clone", 0x3D0F00) == ALLOW  # a thread
    for bit in (17, 25, 26, 27, 28, 29, 30):
        assert ask("clone", 1 << bit) == errno.EPERM
    assert ask("ioctl", 0, 0x5401) == ALLOW
    assert ask("ioctl", 0, 0x5412 | HIGH) == errno.EPERM
    assert ask("setsockopt", 3, 1, 2) == ALLOW
    assert {ask("setsockopt", 3, 1, one) for one in (7, 8, 32, 33)} == {errno.EPERM}
    assert [ask("personality", one) for one in (0, 0xFFFFFFFF)] == [ALLOW, ALLOW]
    known = set(numbers.values())
    unknown = {run_bpf(program, own, one) for one in range(2_000) if one not in known}
    assert unknown == {errno.ENOSYS}


@pytest.mark.parametrize("machine", seccomp.ARCHITECTURES)
def test_other_tables_of_calls_kill(machine: str) -> None:
    program, own = seccomp.filter_path(machine).read_bytes(), AUDIT_ARCHITECTURES[machine]
    for other in (0x40000003, 0x40000028, *AUDIT_ARCHITECTURES.values()):
        assert run_bpf(program, other, NUMBERS[machine]["read"]) == (
            ALLOW if other == own else KILL
        )
    x32 = run_bpf(program, own, 0x40000000)
    assert x32 == (KILL if machine == "x86_64" else errno.ENOSYS)
    assert {one["architecture"] for one in PROFILE["archMap"]} == {
        f"SCMP_ARCH_{one.upper()}" for one in seccomp.ARCHITECTURES
    }
    assert not any(one["subArchitectures"] for one in PROFILE["archMap"])


@pytest.mark.parametrize("machine", seccomp.ARCHITECTURES)
def test_programs_are_well_formed(machine: str) -> None:
    """Every jump lands inside, and whatever is not a jump is followed by something."""
    code = list(struct.iter_unpack("<HBBI", seccomp.filter_path(machine).read_bytes()))
    assert len(code) < 4096
    for at, (operation, when_true, when_false, value) in enumerate(code):
        ahead = {0x05: [value], 0x15: [when_true, when_false], 0x35: [when_true, when_false]}
        for step in ahead.get(operation, [] if operation == 0x06 else [0]):
            assert at + 1 + step < len(code)


def test_a_subtraction_is_of_something_known() -> None:
    names = [name for text in SUBTRACTIONS.values() for name in text.split()]
    assert len(names) == len(set(names))
    listed = {name for rule in MOBY["syscalls"] for name in rule["names"]}
    assert not set(names) - listed


def test_a_profile_that_changed_its_form_is_refused() -> None:
    for change in (
        {"defaultAction": "SCMP_ACT_ALLOW"},
        {"syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "includes": {"x": 1}}]},
        {"syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0}]}]},
    ):
        with pytest.raises(ValueError, match="the profile"):
            make_policy({**MOBY, **change}, NUMBERS)


async def _check(backend) -> str | None:
    return await backend.check()


@pytest.mark.parametrize("make", [BubblewrapBackend, DockerBackend])
def test_an_architecture_without_a_filter_is_refused(make, monkeypatch) -> None:
    import asyncio

    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    problem = asyncio.run(_check(make()))
    assert "no filter of system calls for riscv64" in problem
    assert "Hint:" in problem
    with pytest.raises(ConfigurationError):
        seccomp.filter_path("../x86_64")


def test_a_sandbox_that_lets_calls_through_is_refused(monkeypatch, tmp_path) -> None:
    import asyncio

    everything = tmp_path / "open.bpf"
    everything.write_bytes(struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000))
    monkeypatch.setattr(seccomp, "filter_path", lambda machine="": everything)
    problem = asyncio.run(_check(BubblewrapBackend()))
    assert "let through: an internet socket, a memfd, other cores" in problem


@pytest.mark.parametrize(
    ("printed", "problem"),
    [
        ('{"seccomp": 2, "passed": []}', None),
        ('{"seccomp": 0, "passed": []}', "no filter of system calls is active (seccomp mode 0)"),
        ('{"seccomp": 2, "passed": ["a"]}', "the filter of system calls let through: a"),
        ("[]", "the filter of system calls could not be proven"),
        ("", "the filter of system calls could not be proven"),
    ],
)
def test_a_proof_is_read(printed: str, problem: str | None) -> None:
    assert seccomp.read_proof(printed) == problem


@ON_ALL
def test_the_filter_is_proven_inside(where: str) -> None:
    result = execute(seccomp.PROBE, backend=BACKENDS[where])
    assert seccomp.read_proof(result.printout) is None


TRY_CALLS = """
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
answers = []
for number, *arguments in CALLS:
    ctypes.set_errno(0)
    value = libc.syscall(ctypes.c_long(number), *(ctypes.c_ulong(one) for one in arguments))
    answers.append(ctypes.get_errno() if value == -1 else f"returned {value}")
print(json.dumps(answers))
"""

REFUSED_ARGUMENTS = {
    "prlimit64": [(1, 7, 0, 0)],
    "setpriority": [(0, 1, 19), (1, 0, 19), (2, 0, 19)],
    "sched_setscheduler": [(1, 5, 0)],
    "sched_setparam": [(1, 0)],
    "sched_setattr": [(1, 0, 0)],
    "socket": [(family, 1, 0) for family in (2, 10, 16, 17, 29, 30, 31, 38, 40, 44)] + [(2, 3, 1)],
    "socketpair": [(2, 1, 0, 0)],
    "clone": [(1 << bit | 17,) for bit in (17, 25, 26, 27, 28, 29, 30)],
    "ioctl": [(0, one) for one in (0x5412, 0x541C, 0x5412 | HIGH, 0x541C | HIGH, 0x8933, 0x5410)],
    "personality": [(8,), (0x40000,), (0x400000,)],
    "setsockopt": [(3, 1, option, 0, 0) for option in (7, 8, 26, 32, 33)] + [(3, 6, 1, 0, 0)],
}


def _calls() -> list[tuple[str, list[int], int]]:
    numbers = NUMBERS[HERE]
    refused = set(numbers) - POLICY.allowed - set(POLICY.conditions)
    nothing = [2**64 - 1] * 6
    return [
        *((name, [numbers[name], *nothing], POLICY.error(name)) for name in sorted(refused)),
        *(
            (name, [numbers[name], *arguments], errno.EPERM)
            for name, ways in REFUSED_ARGUMENTS.items()
            for arguments in ways
        ),
        *((f"number {one}", [one, *nothing], errno.ENOSYS) for one in (470, 480, 600, 5_000)),
    ]


def _is_news(number: int, answer: int) -> bool:
    """A library of the engine's that is older than the call takes it for an unknown one."""
    return number > 450 and answer == errno.ENOSYS


@ON_BOTH
def test_each_refused_call_is_refused_inside(where: str) -> None:
    calls = _calls()
    script = f"CALLS = {[call for _, call, _ in calls]}\n{TRY_CALLS}"
    result = execute(script, backend=BACKENDS[where])
    answers = json.loads(result.printout)
    assert len(answers) == len(calls) > 130
    wrong = [
        (name, call[1:], answer)
        for (name, call, error), answer in zip(calls, answers, strict=True)
        if answer != error and not (where == "docker" and _is_news(call[0], answer))
    ]
    assert not wrong


OTHER_TABLE = """
import ctypes, mmap, os
code = CODE
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
function = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
child = os.fork()
if child == 0:
    function()
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(HERE != "x86_64", reason="these tables are x86_64's")
@pytest.mark.parametrize(
    "code",
    [
        b"\xb8\x14\x00\x00\x00\xcd\x80\xc3",  # mov eax, getpid of the 32-bit table; int 0x80; ret
        b"\xb8\x27\x00\x00\x40\x0f\x05\xc3",  # mov eax, getpid of the x32 table; syscall; ret
    ],
    ids=["int 0x80", "x32"],
)
@ON_BOTH
def test_other_tables_of_calls_kill_inside(code: bytes, where: str) -> None:
    result = execute(f"CODE = {code!r}\n{OTHER_TABLE}", backend=BACKENDS[where])
    assert (result.status, result.printout) == ("ok", "-31\n"), result.for_model()
