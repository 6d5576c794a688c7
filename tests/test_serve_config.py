"""limbeck.toml: read, checked, each fault with its key."""

from pathlib import Path

import pytest

from limbeck.runtime.errors import ConfigurationError
from limbeck.sandbox.choice import DockerOptions
from limbeck.serve.config import Configuration, load, read_limit


def _load(tmp_path: Path, text: str) -> Configuration:
    path = tmp_path / "c.toml"
    path.write_text(text)
    return load(path)


def test_every_key(tmp_path: Path) -> None:
    configuration = _load(
        tmp_path,
        """
gate = "off"
backend = "bubblewrap"
python = "/usr/bin/python3"
bwrap = "/usr/bin/bwrap"
require_hard_limits = true
uid_base = 200_000
sessions = false
session_idle = 60
session_life = 90.5
max_kept = 3
limits = { wall = 5, memory = "512MiB", cpu = 0.5 }
[policy]
unconfirmed_destructive = ["a.b"]
[docker]
image = "registry/box:1"
runtime = "runsc"
url = "tcp://box:2375"
""",
    )
    options = configuration.executor_options()
    assert options["limits"].memory == 512 << 20
    assert options["limits"].wall == 5
    assert configuration.sessions is False
    assert [options[key] for key in ("session_idle", "session_life", "max_kept")] == [60, 90.5, 3]
    assert options["policy"].unconfirmed_destructive == {"a.b"}
    assert (options["gate"], options["backend"]) == ("off", "bubblewrap")
    assert options["require_hard_limits"] is True
    assert options["uid_base"] == 200_000
    assert options["docker"] == DockerOptions(
        image="registry/box:1", runtime="runsc", url="tcp://box:2375"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gate = 'maybe'", ["gate"]),
        ("gat = 'on'", ["gat", "the keys are: gate"]),
        ("require_hard_limits = 'yes'", ["require_hard_limits"]),
        ("[policy]\nunconfirmed = []", ["policy.unconfirmed", "unconfirmed_destructive"]),
        ("[policy]\nunconfirmed_destructive = 'a.b'", ["policy.unconfirmed_destructive"]),
        ("x = ", ["not TOML"]),
        ("[docker]\nimagename = 'x'", ["docker.imagename", "image, runtime, url"]),
        ("uid_base = '1'", ["uid_base"]),
    ],
)
def test_a_fault_names_its_key(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        _load(tmp_path, text)
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize("limits", ["wal = 1", "wall = 0", "memory = 'lots'", "pids = true"])
def test_a_limit_that_cannot_be_is_refused(tmp_path: Path, limits: str) -> None:
    with pytest.raises(ConfigurationError, match=r"limits\."):
        _load(tmp_path, f"[limits]\n{limits}").executor_options()


def test_sizes() -> None:
    assert read_limit("memory", "1GiB") == 1 << 30
    assert read_limit("memory", "1.5 KiB") == 1536
    assert read_limit("memory", "100") == 100
    assert read_limit("wall", "2.5") == 2.5
    with pytest.raises(ConfigurationError, match="wall"):
        read_limit("wall", "5MiB")


def test_the_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        load(tmp_path / "nowhere.toml")
