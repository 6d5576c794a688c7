"""doctor: every cause with its mend, every known hole by its versions, one stable shape of JSON."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from kit.sandboxed import BACKEND, needs_docker

from limbeck.sandbox.diagnosis import TABLE, apparmor_profile, explain
from limbeck.sandbox.provision import find_bwrap, prepare_runtime
from limbeck.serve.config import Configuration, PolicySection
from limbeck.serve.doctor import (  # fmt: skip
    Diagnosis,
    Finding,
    Mark,
    _about_policy,
    _choice,
    engine,
    holes,
    host,
    limits,
    storage,
)
from limbeck.serve.doctor.trial import Trial

BWRAP = "/var/lib/limbeck/0123/bubblewrap/bwrap"

SAID = [
    (
        "bwrap: setting up uid map: Permission denied\n",
        "AppArmor forbids it user namespaces",
        f'profile limbeck-bwrap "{BWRAP}" flags=(unconfined) {{\n  userns,\n}}\n',
    ),
    (
        "bwrap: setting up gid map: Permission denied\n",
        "AppArmor forbids it user namespaces",
        "apparmor_parser -r /etc/apparmor.d/limbeck-bwrap",
    ),
    (
        "bwrap: error writing to setgroups: Permission denied\n",
        "without capabilities",
        f'"{BWRAP}"',
    ),
    (
        "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted\n",
        "without capabilities",
        f'"{BWRAP}"',
    ),
    (
        "bwrap: loopback: Failed RTM_NEWLINK: Operation not permitted\n",
        "without capabilities",
        f'"{BWRAP}"',
    ),
    (
        "bwrap: No permissions to create new namespace, likely because the kernel does not allow "
        "non-privileged user namespaces. On e.g. debian this can be enabled with "
        "'sysctl kernel.unprivileged_userns_clone=1'.\n",
        "switched off here",
        "kernel.unprivileged_userns_clone=1",
    ),
    (
        "bwrap: No permissions to creating new namespace, likely because the kernel does not allow "
        "non-privileged user namespaces.\n",
        "switched off here",
        "--security-opt seccomp=FILE",
    ),
    (
        "bwrap: Creating new namespace failed: Operation not permitted\n",
        "switched off here",
        "--security-opt seccomp=FILE",
    ),
    (
        "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces "
        "exceeded (ENOSPC)\n",
        "limit of namespaces is reached or zero",
        "/proc/sys/user/max_*_namespaces",
    ),
    (
        "bwrap: Creating new namespace failed: No space left on device; nesting depth\n",
        "limit of namespaces is reached or zero",
        "--disable-userns",
    ),
    (
        "bwrap: Creating new namespace failed, likely because the kernel does not support user "
        "namespaces.  bwrap must be installed setuid on such systems.\n",
        "no user namespaces",
        "CONFIG_USER_NS",
    ),
    (
        "bwrap: Can't mount proc on /newroot/proc: Operation not permitted\n",
        "the outer container masks /proc",
        "systempaths=unconfined",
    ),
    (
        "bwrap: Failed to make / slave: Permission denied\n",
        "the outer AppArmor profile forbids mounts",
        "--security-opt apparmor=PROFILE",
    ),
    (
        "/home/u/bwrap: error while loading shared libraries: libcap.so.2: Permission denied\n",
        "bwrap's own libraries",
        f"the key `bwrap`: {BWRAP}",
    ),
    (
        "bwrap: Can't find source path /home/u/python: Permission denied\n",
        "a file of Python's",
        "the key `python`: /usr/bin/python3",
    ),
    ("bwrap: execvp /home/u/python: Permission denied\n", "a file of Python's", "`python`"),
]


@pytest.mark.parametrize(("said", "cause", "mend"), SAID)
def test_each_cause_has_its_mend(said: str, cause: str, mend: str) -> None:
    told, _, hint = explain(f"noise\n{said}", "/usr/bin/python3", BWRAP).partition("\nHint: ")
    assert cause in told
    assert said.strip() in told
    assert mend in hint


def test_every_row_of_the_table_is_the_first_for_some_text() -> None:
    first = {next(row for row in TABLE if row.mark in said) for said, _, _ in SAID}
    assert set(TABLE) == first


def test_no_mend_switches_the_whole_host_s_protection_off() -> None:
    assert not [row for row in TABLE if "apparmor_restrict" in row.mend]


def test_an_unknown_end_is_told_as_it_stands() -> None:
    assert explain("a\nb: strange\n", "p", "b") == "the sandbox did not start: b: strange"
    assert explain("", "p", "b") == "the sandbox did not start: it ended without a word"


def test_a_profile_means_its_path_as_it_stands() -> None:
    assert r'"/a b/\{x\}\*\[1\]/bwrap"' in apparmor_profile("/a b/{x}*[1]/bwrap")
    assert apparmor_profile("/b").count("{") == apparmor_profile("/b").count("}") == 1


def test_nested_under_disable_userns_is_explained_for_real() -> None:
    """What bubblewrap itself says where no further namespace can be made."""
    bwrap = find_bwrap(None, prepare_runtime())
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    done = subprocess.run(
        [
            *(drop if os.geteuid() == 0 else []),
            bwrap, "--unshare-user", "--disable-userns", "--ro-bind", "/", "/", "--proc", "/proc",
            "--", bwrap, "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "true",
        ],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode != 0
    assert "limit of namespaces" in explain(done.stderr, "p", bwrap), done.stderr


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("1.1.5+ds1", (1, 1, 5, 3, 0)),
        ("1.6.20~ds1", (1, 6, 20, 3, 0)),
        ("20.10.24+dfsg1", (20, 10, 24, 3, 0)),
        ("v1.7.13", (1, 7, 13, 3, 0)),
        ("18.09.1-ce", (18, 9, 1, 3, 0)),
        ("25.0", (25, 0, 0, 3, 0)),
        ("1.2.0-rc.3", (1, 2, 0, 2, 3)),
        ("1.3.0-rc1", (1, 3, 0, 2, 1)),
        ("1.2.0~rc1+ds", (1, 2, 0, 2, 1)),
        ("25.0.0-beta.2", (25, 0, 0, 1, 2)),
        ("unknown", None),
        ("", None),
    ],
)
def test_versions_are_read_as_engines_write_them(text: str, version: object) -> None:
    assert holes.parse(text) == version


@pytest.mark.parametrize(
    ("component", "version", "names"),
    [
        ("runc", "1.1.5+ds1", {"CVE-2024-21626", "CVE-2025-31133"}),
        ("runc", "1.1.9", {"CVE-2024-21626", "CVE-2025-31133"}),
        ("runc", "1.1.12", {"CVE-2025-31133"}),
        ("runc", "1.2.0-rc.1", {"CVE-2025-31133"}),
        ("runc", "1.2.7", {"CVE-2025-31133"}),
        ("runc", "1.2.8", set()),
        ("runc", "1.2.10", set()),
        ("runc", "1.3.2", {"CVE-2025-31133"}),
        ("runc", "1.3.3", set()),
        ("runc", "1.4.0-rc.2", {"CVE-2025-31133"}),
        ("runc", "1.4.0-rc.3", set()),
        ("runc", "1.4.0", set()),
        ("runc", "2.0.0", set()),
        ("runc", "unknown", {"CVE-2024-21626", "CVE-2025-31133"}),
        ("engine", "20.10.24+dfsg1", {"io_uring in the built-in seccomp profile"}),
        ("engine", "24.0.9", {"io_uring in the built-in seccomp profile"}),
        ("engine", "25.0.0-beta.1", {"io_uring in the built-in seccomp profile"}),
        ("engine", "25.0.0", set()),
        ("engine", "28.2.2", set()),
        ("containerd", "1.6.20~ds1", set()),
    ],
)
def test_known_holes_by_version(component: str, version: str, names: set[str]) -> None:
    assert {hole.name for hole in holes.holes_of(component, version)} == names


def _tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_the_kernel_s_switches_are_blamed_only_when_bubblewrap_failed(tmp_path: Path) -> None:
    proc = _tree(
        tmp_path,
        {
            "sys/user/max_user_namespaces": "0\n",
            "sys/user/max_net_namespaces": "100\n",
            "sys/kernel/unprivileged_userns_clone": "0\n",
            "sys/kernel/apparmor_restrict_unprivileged_userns": "1\n",
        },
    )
    failed = host.user_namespaces(proc, bwrap_works=False)
    assert failed.mark is Mark.WARN
    for name in ("max_user_namespaces", "unprivileged_userns_clone", "apparmor_restrict"):
        assert name in failed.text.partition("closed by")[2]
    assert "max_net" not in failed.text
    assert host.user_namespaces(proc, bwrap_works=True).mark is Mark.INFO


@pytest.mark.parametrize(
    ("swaps", "memsw", "mark"),
    [
        ("", False, Mark.INFO),
        ("/dev/sda2 partition 2097148 0 -2\n", True, Mark.INFO),
        ("/dev/sda2 partition 2097148 0 -2\n", False, Mark.WARN),
    ],
)
def test_swap_that_nobody_counts_is_a_warning(
    tmp_path: Path, swaps: str, memsw: bool, mark: Mark
) -> None:
    proc = _tree(tmp_path / "proc", {"swaps": f"Filename Type Size Used Priority\n{swaps}"})
    name = "memory/memory.memsw.limit_in_bytes" if memsw else "memory/tasks"
    found = host.swap(proc, _tree(tmp_path / "cgroup", {name: ""}))
    assert found.mark is mark
    assert found.values == {"bytes": 2097148 * 1024 if swaps else 0, "counted": memsw}


def test_version_2_counts_swap_below_the_top(tmp_path: Path) -> None:
    proc = _tree(tmp_path / "proc", {"swaps": "Filename\n/f file 4 0 -2\n"})
    files = {"cgroup.controllers": "memory", "init.scope/memory.swap.max": "max"}
    assert host.swap(proc, _tree(tmp_path / "cgroup", files)).values["counted"] is True


@pytest.mark.parametrize(
    ("files", "values"),
    [
        ({"sys/kernel/core_pattern": "|/usr/bin/dump %P\n"}, {"piped": True}),
        ({"sys/kernel/core_pattern": "core\n"}, {"piped": False}),
        ({}, {"piped": False, "pattern": ""}),
    ],
)
def test_a_piped_core_pattern_is_told(tmp_path: Path, files: dict, values: dict) -> None:
    found = host.core_pattern(_tree(tmp_path, files))
    assert {key: found.values[key] for key in values} == values


def test_yama_and_seccomp_of_this_process(tmp_path: Path) -> None:
    assert host.yama(tmp_path).values == {"ptrace_scope": None}
    proc = _tree(
        tmp_path,
        {"sys/kernel/yama/ptrace_scope": "1\n", "self/status": "Name:\tx\nSeccomp:\t2\n"},
    )
    assert host.yama(proc).values == {"ptrace_scope": 1}
    assert host.seccomp(proc).values == {"mode": 2}
    assert host.seccomp(tmp_path / "none").values == {"mode": None}
    assert host.seccomp().values["mode"] in (0, 2)


def test_a_member_of_the_docker_group_is_as_good_as_root(monkeypatch) -> None:
    monkeypatch.setattr(host.grp, "getgrnam", lambda name: type("G", (), {"gr_gid": 998})())
    monkeypatch.setattr(host.os, "getgroups", lambda: [998])
    monkeypatch.setattr(host.os, "geteuid", lambda: 1000)
    assert host.docker_group().mark is Mark.WARN
    monkeypatch.setattr(host.os, "getgroups", lambda: [1])
    assert host.docker_group().mark is Mark.INFO
    monkeypatch.setattr(host.grp, "getgrnam", lambda name: {}[name])
    assert host.docker_group().values == {"member": False}


def test_cgroups_are_tried_and_read_back(tmp_path: Path) -> None:
    here = limits.cgroups()
    assert here.values["limited_by"] in ("cgroup v1", "cgroup v2", "watcher")
    closed = tmp_path / "file"
    closed.write_text("no folder")
    found = limits.cgroups(closed)
    assert found.mark is Mark.WARN
    assert found.values == {"mode": "none", "writable": False, "limited_by": "watcher"}
    assert found.hint


def test_a_limit_that_is_not_there_after_it_was_written_is_told(
    tmp_path: Path, monkeypatch
) -> None:
    def broken(hierarchies) -> None:
        raise ValueError("pids.max is max although 96 was written")

    monkeypatch.setattr(limits, "_try", broken)
    monkeypatch.setattr(limits.cgroup, "find_hierarchies", lambda root, own: object())
    found = limits.cgroups()
    assert (found.mark, found.values["limited_by"]) == (Mark.WARN, "watcher")
    assert "although 96 was written" in found.text


def test_storage_is_told_with_its_mount(monkeypatch) -> None:
    found = storage.runtimes()
    assert found.values["path"] == str(prepare_runtime().root)
    assert found.values["bytes"] > 100_000
    real = os.statvfs("/")
    closed = type("V", (), {"f_bavail": 1, "f_frsize": 4096, "f_flag": real.f_flag})
    monkeypatch.setattr(storage.os, "statvfs", lambda path: closed)
    assert "--reap" in storage.runtimes().hint
    closed.f_flag = os.ST_NOEXEC
    assert "noexec" in storage.runtimes().text


def _versions(engine: str, runc: str) -> dict:
    return {
        "Components": [
            {"Name": "Engine", "Version": engine},
            {"Name": "containerd", "Version": "1.7.0"},
            {"Name": "runc", "Version": runc},
        ]
    }


def _seen(io_uring: str, mode: str = "2") -> Trial:
    return Trial(backend="docker", problem=None, seen={"Seccomp": mode, "io_uring": io_uring})


def test_components_with_known_holes_are_warnings_with_the_fix() -> None:
    found = engine._of_component("runc", _versions("28.0.0", "1.1.5"), _seen("EPERM"))
    assert found.mark is Mark.WARN
    assert found.values["holes"] == ["CVE-2024-21626", "CVE-2025-31133"]
    assert "1.1.12" in found.hint
    fine = engine._of_component("runc", _versions("28.0.0", "1.4.0"), _seen("EPERM"))
    assert (fine.mark, fine.text) == (Mark.INFO, "1.4.0")
    unknown = engine._of_component("containerd", {}, _seen("EPERM"))
    assert unknown.text == "unknown"


def test_the_engine_s_own_profile_matters_only_where_sandboxes_reach_the_calls() -> None:
    old = _versions("20.10.24+dfsg1", "1.4.0")
    assert engine._of_component("engine", old, _seen("EPERM")).mark is Mark.INFO
    assert engine._of_component("engine", old, _seen("ENOSYS")).mark is Mark.INFO
    assert engine._of_component("engine", old, _seen("EFAULT")).mark is Mark.WARN
    blind = Trial(backend="docker", problem=None, seen=None)
    assert engine._of_component("engine", old, blind).mark is Mark.WARN


@pytest.mark.parametrize(
    ("info", "mark", "word"),
    [
        ({}, Mark.OK, "cgroup"),
        ({"MemoryLimit": True, "SwapLimit": True, "CgroupVersion": "2"}, Mark.OK, "cgroup v2"),
        ({"SwapLimit": False}, Mark.OK, "swap is not counted"),
        ({"MemoryLimit": False}, Mark.FAIL, "memory"),
        ({"PidsLimit": False}, Mark.FAIL, "pids"),
        ({"CpuCfsQuota": False}, Mark.FAIL, "cpu"),
    ],
)
def test_limits_that_the_engine_cannot_hold_are_failures(info: dict, mark: Mark, word: str) -> None:
    found = engine._abilities(info)
    assert found.mark is mark
    assert word in found.text


@pytest.mark.parametrize(
    ("seen", "mark"),
    [
        ({"Seccomp": "2", "io_uring": "EPERM", "NoNewPrivs": "1"}, Mark.OK),
        ({"Seccomp": "2", "io_uring": "EFAULT"}, Mark.WARN),
        ({"Seccomp": "0", "io_uring": "EFAULT"}, Mark.WARN),
        ({"Seccomp": "\x1b[2J", "io_uring": "EPERM"}, Mark.WARN),
        ({}, Mark.WARN),
        (None, Mark.WARN),
    ],
)
def test_the_filter_is_told_as_seen_from_inside(seen: dict | None, mark: Mark) -> None:
    ran, inside = Trial(
        backend="bubblewrap", problem=None, memory_limit="watcher", seen=seen
    ).findings()
    assert (ran.mark, inside.mark) == (Mark.OK, mark)
    assert "best effort" in ran.text
    assert "\x1b" not in Diagnosis(findings=(ran, inside), works=True).render()


def test_a_backend_that_fails_keeps_its_hint_below_the_table() -> None:
    failed = Trial(backend="docker", problem="no daemon\nHint: start it\nor not").findings()
    text = Diagnosis(findings=(*failed,), works=False).render()
    assert text == "FAIL docker  no daemon\n\nHints\ndocker: start it\n  or not"


def test_destructive_tools_that_nobody_is_asked_about_are_listed() -> None:
    policy = PolicySection(unconfirmed_destructive=["shop.drop"])
    (found,) = _about_policy(Configuration(policy=policy))
    assert "shop.drop" in found.text
    assert _about_policy(Configuration()) == []


def test_it_works_when_what_is_configured_works() -> None:
    inside = Trial(backend="bubblewrap", problem=None)
    outside = Trial(backend="docker", problem="no")
    auto = _choice(Configuration(), [inside, outside], True)
    assert auto.values == {"configured": "auto", "chosen": "bubblewrap"}
    both = _choice(Configuration(), [inside, Trial(backend="docker", problem=None)], True)
    assert both.values["chosen"] == "docker"
    configured = _choice(Configuration(backend="docker"), [inside, outside], False)
    assert (configured.mark, configured.values["chosen"]) == (Mark.FAIL, None)


def _doctor(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "limbeck", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def _documented() -> dict[str, set[str]]:
    """Finding to its keys, as docs/operating.md has them."""
    text = (Path(__file__).parent.parent / "docs/operating.md").read_text()
    rows = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| `")]
    return {name.strip(" `"): set(re.findall(r"`(\w+)`", keys)) for name, keys in rows}


def test_the_json_has_its_documented_shape() -> None:
    done = _doctor("--json")
    assert done.returncode == 0, done.stdout
    data = json.loads(done.stdout)
    assert set(data) == {"format", "works", "findings"}
    assert (data["format"], data["works"]) == (1, True)
    for one in data["findings"]:
        assert set(one) == {"name", "status", "text", "hint", "values"}
        assert one["status"] in set(Mark)
        assert one["hint"] is None or one["hint"]
    named = {one["name"]: one for one in data["findings"]}
    assert len(named) == len(data["findings"])
    documented = (Path(__file__).parent.parent / "docs/operating.md").read_text()
    documented = _documented()
    for name, one in named.items():
        if name != "user namespaces":  # as many as the kernel has
            assert set(one["values"]) == documented[name], name
    assert named["bubblewrap"]["status"] == "ok"
    assert named["bubblewrap"]["values"]["memory_limit"] == BACKEND_LIMIT
    assert named["bubblewrap seccomp"]["values"]["no_new_privileges"] is True
    assert named["user"]["values"] == {"euid": os.geteuid()}


BACKEND_LIMIT = BACKEND._hierarchies.kind if BACKEND._hierarchies is not None else "watcher"


@needs_docker
def test_docker_s_findings_are_there() -> None:
    named = {one["name"]: one for one in json.loads(_doctor("--json").stdout)["findings"]}
    assert named["docker"]["status"] == "ok"
    assert named["docker seccomp"]["values"]["mode"] == 2
    assert holes.parse(named["engine"]["values"]["version"]) is not None
    assert named["image"]["values"]["matches"] is True
    assert named["image"]["values"]["abi"] == prepare_runtime().root.name


def test_the_configured_backend_decides_the_exit_code(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('backend = "bubblewrap"\npython = "/nonexistent"\n')
    done = _doctor("--config", str(file))
    assert done.returncode == 5
    assert "FAIL bubblewrap" in done.stdout
    assert "FAIL backend" in done.stdout


def test_a_finding_is_frozen_data() -> None:
    with pytest.raises(AttributeError):
        Finding(name="x", text="y").text = "z"
