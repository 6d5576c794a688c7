"""As an ordinary user: no uid to drop, no cgroup, the watcher holds memory."""

import os
import subprocess
from pathlib import Path

import pytest
from kit.sandboxed import execute

from limbeck.runtime.errors import ConfigurationError
from limbeck.sandbox.provision import reachable_python

ROOT = Path(__file__).parent.parent
USER = 65_534
SCRIPTS = {
    "import os\nprint(os.getuid())": f"{USER}\n",
    "print(open('/proc/self/status').read().count('CapEff:\\t0000000000000000'))": "1\n",
}


def _reachable(path: Path) -> bool:
    return all(folder.stat().st_mode & 0o005 == 0o005 for folder in [path, *path.parents])


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    if os.geteuid() != 0:
        pytest.skip("only root becomes another user; as a user every other test is this one")
    try:
        reachable_python()
    except ConfigurationError as error:
        pytest.skip(str(error))
    if not _reachable(ROOT):
        pytest.skip("the checkout is closed to other users")
    home = tmp_path_factory.mktemp("user")
    for folder in (home, *home.parents):
        if folder.stat().st_uid == 0 and str(folder) != "/":
            folder.chmod(folder.stat().st_mode | 0o055)
    (home / "lib").mkdir()
    (home / "lib" / "limbeck").symlink_to(ROOT)
    os.chown(home, USER, USER)
    return home


def _limbeck(home: Path, *arguments: str, script: str = "") -> subprocess.CompletedProcess[str]:
    (packages,) = (ROOT / ".venv/lib").glob("python3*/site-packages")
    return subprocess.run(
        [
            "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
            reachable_python(), "-m", "limbeck", *arguments,
        ],
        input=script, capture_output=True, text=True, cwd=home, timeout=120,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": f"{home}/lib:{packages}"},
    )  # fmt: skip


@pytest.mark.skipif(not (ROOT / ".venv").is_dir(), reason="run by make test, in its own venv")
def test_a_user_s_scripts_run_watched(home: Path) -> None:
    execute("1")  # root's cgroups and folders are there too, and are not the user's
    done = _limbeck(home, "doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "watcher" in done.stdout
    for script, printed in SCRIPTS.items():
        done = _limbeck(home, "run", "-", "--gate", "off", "--backend", "bubblewrap", script=script)
        assert (done.returncode, done.stdout) == (0, printed), done.stderr
    grow = "import mmap\nm = mmap.mmap(-1, 1 << 30)\nfor i in range(0, 1 << 30, 4096): m[i] = 1"
    done = _limbeck(home, "run", "-", "--gate", "off", "--backend", "bubblewrap", script=grow)
    assert done.returncode == 4
    assert "[memory]" in done.stderr
    (home / "c.toml").write_text("require_hard_limits = true\nbackend = 'bubblewrap'\n")
    done = _limbeck(home, "run", "-", "--config", "c.toml", script="print(1)")
    assert done.returncode == 5
    assert "require_hard_limits" in done.stderr
    assert [path.name for path in Path(f"/tmp/limbeck-{USER}").iterdir()] == []
