"""The docker backend: one container a sandbox, through the docker SDK, never through a shell.

Everything that is asked of the daemon runs in daemon threads with a deadline of ours: a daemon that
hangs gives a true status in bounded time.
"""

from __future__ import annotations

import asyncio
import functools
import os
import socket
import time
from collections.abc import Callable, Collection, Hashable, Mapping
from pathlib import Path
from typing import Any

from ..bridge.threads import DaemonPool
from ..runtime.errors import ConfigurationError, SandboxUnavailable
from . import image, image_build, seccomp, uids
from .backend import Leftover, Limits
from .docker_sandbox import DEADLINE_LABEL, OWNER_LABEL, DockerSandbox
from .leftovers import reap_host
from .owner import is_alive
from .packages import PackagesFolder, find_packages
from .provision import RuntimeFolder, examine, prepare_runtime, reachable_python

CALL_SECONDS = 30.0
"""For one answer of the daemon."""

_DEFAULT_URL = "unix:///var/run/docker.sock"
_MEND = "start it (systemctl start docker), or use the bubblewrap backend."


class Daemon:
    """The Docker Engine, asked from daemon threads, each answer with a deadline."""

    def __init__(self, base_url: str | None) -> None:
        self._base_url = base_url
        self._pool = DaemonPool("limbeck-docker", 16)
        self._client: Any = None

    async def connect(self) -> None:
        """Connect once. Raises SandboxUnavailable with the mend."""
        if self._client is None:
            self._client = await self._bounded(self._make_client)

    async def ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        """One call of the SDK's low-level client. Raises DaemonError or SandboxUnavailable."""
        call = functools.partial(getattr(self._client, method), *arguments, **options)
        return await self._bounded(call)

    async def run(self, call: Callable[[], Any]) -> Any:
        """Something slow of ours, in the same threads, without a deadline."""
        return await self._pool.run(call)

    async def follow(self, options: dict[str, Any], python_image: str) -> None:
        """A build of the engine's, to its end. Raises SandboxUnavailable."""

        def build() -> None:
            image_build.follow(self._client.build(**options), python_image)

        try:
            await self.run(build)
        except SandboxUnavailable:
            raise
        except Exception as error:
            raise _translated(error) from error

    async def _bounded(self, call: Callable[[], Any]) -> Any:
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await self._pool.run(call)
        except TimeoutError:
            text = f"the daemon gave no answer within {CALL_SECONDS:g} s.\nHint: {_MEND}"
            raise SandboxUnavailable({"docker": text}) from None
        except SandboxUnavailable:
            raise
        except Exception as error:
            raise _translated(error) from error

    def _make_client(self) -> Any:
        try:
            import docker
        except ImportError:
            raise SandboxUnavailable(
                {"docker": "its SDK is missing.\nHint: pip install 'limbeck[docker]'."}
            ) from None
        url = self._base_url or os.environ.get("DOCKER_HOST") or _DEFAULT_URL
        if url.startswith("unix://"):
            _check_socket(url.removeprefix("unix://"))
        try:
            return docker.APIClient(
                base_url=url,
                version="auto",
                timeout=int(CALL_SECONDS),
            )
        except docker.errors.DockerException as error:
            text = f"the daemon does not answer ({_short(error)}).\nHint: {_MEND}"
            raise SandboxUnavailable({"docker": text}) from None


class DaemonError(SandboxUnavailable):
    """The daemon refused a request; `status` is its HTTP status, or None."""

    def __init__(self, text: str, status: int | None) -> None:
        super().__init__({"docker": text})
        self.status = status


class DockerBackend:
    """Makes sandboxes with the Docker Engine."""

    name = "docker"

    def __init__(
        self,
        *,
        image_name: str | None = None,
        oci_runtime: str | None = None,
        base_url: str | None = None,
        packages: str | None = None,
        open_modules: Collection[str] = (),
        uid_base: int = uids.BASE,
    ) -> None:
        """Nothing is looked for before `check`.

        Args:
            image_name: Image of the sandboxes; by default limbeck's own of this version.
            oci_runtime: Passed through to the engine: runsc, kata, ...
            base_url: The engine's address; by default DOCKER_HOST, or the usual socket.
            packages: A virtual environment; the image is the one that was built with its packages.
            open_modules: Packages that must be there.
            uid_base: First uid of the sandboxes' range, for root.
        """
        self._uid_base = uids.checked_base(uid_base)
        self._environment = packages
        self._open_modules = frozenset(open_modules)
        self._image = image_name or ""
        self._is_named = image_name is not None
        self._oci_runtime = oci_runtime
        self.daemon = Daemon(base_url)
        self._runtime: RuntimeFolder | None = None
        self._python = ""
        self._checked = False
        self._problem: str | None = None

    @property
    def image(self) -> str:
        """Name and tag of the image; known after `check`."""
        return self._image

    async def check(self) -> str | None:
        """None when the daemon answers and has our image; remembered once it works."""
        if not self._checked:
            try:
                self._problem = await self._try()
            except SandboxUnavailable as error:
                self._problem = error.reasons["docker"]
            except ConfigurationError as error:
                self._problem = str(error)
            self._checked = self._problem is None
        return self._problem

    def vetting(self) -> tuple[Path, Path]:
        """An interpreter of the host, and the runtime's folder."""
        assert self._runtime is not None, "check comes first"
        return Path(self._python), self._runtime.lib

    def shape(self, limits: Limits) -> Hashable:
        """Image, OCI runtime, and what the engine holds."""
        return (self.name, self._image, self._oci_runtime, limits.held)

    async def create(self, limits: Limits) -> DockerSandbox:
        """Reserve uid and folder. Raises SandboxUnavailable."""
        problem = await self.check()
        if problem is not None:
            raise SandboxUnavailable({self.name: problem})
        return DockerSandbox(
            daemon=self.daemon,
            image=self._image,
            oci_runtime=self._oci_runtime,
            limits=limits,
            uid_base=self._uid_base,
        )

    async def reap(self) -> list[Leftover]:
        """Remove containers whose owner is dead, then their folders."""
        await self.daemon.connect()
        found = await self.daemon.ask("containers", all=True, filters={"label": OWNER_LABEL})
        removed = [
            await self._remove_container(container)
            for container in found
            if _is_left_over(container["Labels"])
        ]
        return [*removed, *reap_host()]

    async def reap_images(self) -> list[Leftover]:
        """Remove images of ours that a later build has taken the name from."""
        await self.daemon.connect()
        filters = {"label": image.ABI_LABEL, "dangling": True}
        removed = []
        for found in await self.daemon.ask("images", filters=filters):
            gone = True
            try:
                await self.daemon.ask("remove_image", found["Id"])
            except DaemonError:  # a container of it is still there
                gone = False
            removed.append(Leftover("image", found["Id"].partition(":")[2][:12], gone))
        return removed

    async def _remove_container(self, container: dict[str, Any]) -> Leftover:
        name = (container.get("Names") or [container["Id"][:12]])[0].lstrip("/")
        try:
            await self.daemon.ask("remove_container", container["Id"], force=True, v=True)
        except DaemonError as error:
            # 404: another reaper was faster.
            return Leftover("container", name, removed=error.status == 404)
        return Leftover("container", name)

    async def build_image(self) -> dict[str, Any]:
        """Build the image without a registry and give it to the engine; what was built."""
        await self.daemon.connect()
        declaration = image.load_declaration()
        packages = await self._packages()
        build = functools.partial(_build, declaration, packages)
        runtime, layer = await self.daemon.run(build)
        self._image = self._image or image.tag(declaration, runtime, packages)
        repository, _, tag = self._image.partition(":")
        await self.daemon.ask(
            "import_image_from_data",
            layer,
            repository=repository,
            tag=tag or "latest",
            changes=image.changes(declaration, runtime, packages),
        )
        self._checked = False
        return {
            "image": self._image,
            "layer": image.digest(layer),
            "bytes": len(layer),
            "abi": image.abi(runtime),
        }

    async def build_image_from(self, python_image: str) -> dict[str, Any]:
        """Build the image on a registry's Python, NAME@sha256:DIGEST; what was built."""
        image_build.check_base(python_image)
        image_build.check_lock()
        await self.daemon.connect()
        runtime = await self.daemon.run(prepare_runtime)
        abi = image.abi(runtime)
        self._image = self._image or image.tag(image.load_declaration(), runtime)
        options = image_build.options(python_image, self._image, abi)
        await self.daemon.follow(options, python_image)
        self._checked = False
        problem = await self.check()
        if problem is not None:
            raise SandboxUnavailable({self.name: problem})
        found = await self.daemon.ask("inspect_image", self._image)
        (layer, *_) = found["RootFS"]["Layers"]
        return {"image": self._image, "layer": layer, "bytes": found["Size"], "abi": abi}

    async def _try(self) -> str | None:
        seccomp.filter_path()  # SAFETY: raises where there is none
        await self.daemon.connect()
        if not any("seccomp" in one for one in (await self.daemon.ask("info"))["SecurityOptions"]):
            return "the daemon cannot filter system calls.\nHint: use one with seccomp."
        self._runtime = await self.daemon.run(prepare_runtime)
        self._python = reachable_python()
        packages = await self._packages()
        self._image = self._image or image.tag(image.load_declaration(), self._runtime, packages)
        mend = "Hint: limbeck image build --offline"
        if self._environment is not None:
            mend += f" --packages {self._environment}"
        try:
            found = await self.daemon.ask("inspect_image", self._image)
        except DaemonError as error:
            if error.status == 404:
                return f"there is no image {self._image}.\n{mend}"
            raise
        label = (found["Config"].get("Labels") or {}).get(image.ABI_LABEL)
        if label != image.abi(self._runtime):
            return f"the image {self._image} is of another version of limbeck.\n{mend}"
        await self.reap()
        return None

    async def _packages(self) -> PackagesFolder | None:
        # An image that the operator names has what it has.
        wanted = self._open_modules if self._environment or not self._is_named else ()
        find = functools.partial(find_packages, self._environment, wanted)
        packages: PackagesFolder | None = await self.daemon.run(find)
        return packages


def _is_left_over(labels: Mapping[str, str]) -> bool:
    """Whether nobody can still want a container."""
    deadline = labels.get(DEADLINE_LABEL, "")
    overdue = deadline.isdigit() and int(deadline) < time.time()
    return overdue or not is_alive(labels.get(OWNER_LABEL, ""))


def _build(
    declaration: image.Declaration, packages: PackagesFolder | None
) -> tuple[RuntimeFolder, bytes]:
    runtime = prepare_runtime()
    interpreter = examine(reachable_python(), runtime)
    return runtime, image.build_layer(declaration, runtime, interpreter, packages)


def _translated(error: Exception) -> SandboxUnavailable:
    """The one place where the SDK's and its transport's errors become ours."""
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    return DaemonError(f"the daemon refused: {_short(error)}", status)


def _check_socket(path: str) -> None:
    """Connect once by ourselves: the SDK leaves its socket open when nobody listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.settimeout(CALL_SECONDS)
        try:
            one.connect(path)
        except OSError as error:
            text = f"no daemon listens on {path} ({error.strerror or error}).\nHint: {_MEND}"
            raise SandboxUnavailable({"docker": text}) from None


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
