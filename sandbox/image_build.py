"""The image from a registry's Python: images/Dockerfile, run by the engine through the SDK.

The image says by its label that it has the host's runtime; so everything that the label stands for
is made sure of first: pinned base, the host's minor version, the host's versions of the packages.
"""

from __future__ import annotations

import importlib.metadata
import io
import re
import sys
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..runtime.errors import ConfigurationError, SandboxUnavailable

DOCKERFILE = "images/Dockerfile"
BUILD_SECONDS = 1800
"""Between two words of the engine."""

_ROOT = Path(__file__).resolve().parent.parent
_PINNED = re.compile(r"[\w./:-]+@sha256:[0-9a-f]{64}")
_PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def check_base(python_image: str) -> None:
    """Raises ConfigurationError unless the base is named by its digest."""
    if not _PINNED.fullmatch(python_image):
        raise ConfigurationError(
            "--python-image",
            f"{python_image} does not name its digest",
            "write NAME@sha256:DIGEST, as `docker pull NAME` prints it.",
        )


def check_lock(lock: Path = _ROOT / "images/requirements.lock") -> None:
    """Raises ConfigurationError unless the image's packages will be the host's."""
    for name, version in _PIN.findall(lock.read_text("utf-8")):
        installed = importlib.metadata.version(name)
        if installed != version:
            raise ConfigurationError(
                str(lock),
                f"pins {name} {version}, and limbeck runs with {installed}",
                f"pip install {name}=={version}, or write the lock again: python images/lock.py.",
            )


def context() -> bytes:
    """What the Dockerfile copies, as a tar archive."""
    files = [
        *(_ROOT / "images" / name for name in ("requirements.lock", "image.toml", "stage.py")),
        _ROOT / DOCKERFILE,
        *(_ROOT / "runtime").rglob("*.py"),
    ]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in sorted(files):
            item = archive.gettarinfo(path, str(path.relative_to(_ROOT)))
            item.mode = 0o644
            with path.open("rb") as file:
                archive.addfile(item, file)
    return buffer.getvalue()


def options(python_image: str, tag: str, abi: str) -> dict[str, Any]:
    """Keyword arguments for the SDK's `build`."""
    return {
        "fileobj": io.BytesIO(context()),
        "custom_context": True,
        "dockerfile": DOCKERFILE,
        "tag": tag,
        "buildargs": {
            "PYTHON": python_image,
            "ABI": abi,
            "MINOR": f"{sys.version_info.major}.{sys.version_info.minor}",
        },
        "rm": True,
        "forcerm": True,
        "decode": True,
        "timeout": BUILD_SECONDS,
    }


def follow(words: Iterable[Mapping[str, Any]], python_image: str) -> None:
    """Read what the engine says to its end. Raises SandboxUnavailable with its error."""
    said: list[str] = []
    for word in words:
        said = [*said, str(word.get("stream", "")).strip()][-20:]
        if "error" in word:
            told = "\n".join(filter(None, [*said, str(word["error"]).strip()]))[-2000:]
            raise SandboxUnavailable(
                {
                    "docker": f"the image could not be built: {told}\n"
                    f"Hint: the engine must reach the registry of {python_image} and a package "
                    "index; without them: limbeck image build --offline"
                }
            )
