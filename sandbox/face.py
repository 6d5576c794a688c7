"""What both executors share: settings, the core on limbeck's loop, closing."""

from __future__ import annotations

import atexit
import concurrent.futures
import threading
import weakref
from collections.abc import Collection, Mapping
from typing import Any

from ..bridge.audit import AuditEvent
from ..bridge.policy import Policy
from ..bridge.session import Principal
from ..runtime.errors import ConfigurationError
from ..stubs.catalog import Catalog
from ..stubs.tool import Toolset
from .backend import Backend, Limits
from .checks import (
    checked_kept,
    checked_limits,
    checked_policy,
    checked_principal,
    checked_quota,
    checked_scopes,
    checked_seconds,
    checked_warm,
    is_gate_on,
    narrowed_limits,
    narrowed_scopes,
)
from .choice import BackendOptions, DockerOptions, checked_open_modules
from .core import Core, Settings
from .loop import LoopThread, own_loop
from .pool import PoolStatistics
from .printout import QUOTA_BYTES
from .sessions import IDLE_SECONDS, LIFE_SECONDS
from .uids import BASE as UID_BASE

CLOSE_SECONDS = 10.0

_open: weakref.WeakSet[Face] = weakref.WeakSet()


class Face:
    """What both executors share: settings, the core on limbeck's loop, closing."""

    def __init__(
        self,
        toolsets: Collection[Toolset] | Catalog = (),
        *,
        scopes: Collection[str] = (),
        limits: Limits | Mapping[str, Any] | None = None,
        policy: Policy | None = None,
        gate: str = "on",
        open_modules: Collection[str] = (),
        packages: str | None = None,
        backend: str | Backend = "auto",
        python: str | None = None,
        bwrap: str | None = None,
        require_hard_limits: bool = False,
        uid_base: int = UID_BASE,
        docker: DockerOptions | None = None,
        warm: int = 0,
        spool_quota: int = QUOTA_BYTES,
        session_idle: float = IDLE_SECONDS,
        session_life: float = LIFE_SECONDS,
        max_kept: int | None = None,
    ) -> None:
        """Make an executor; nothing starts before the first script.

        Args:
            toolsets: The tools that scripts may call.
            scopes: What the scripts may do; a tool is seen when all its scopes are here. `"*"`
                stands for all and must be written.
            limits: Limits of one execution, whole or as a mapping of those that differ.
            policy: What the operator decides about calls.
            gate: "on", or "off" to run scripts that the language gate would refuse.
            open_modules: Packages that gated scripts import as they are, "numpy" for one. The gate
                promises nothing about what a script does through them; the sandbox still holds.
            packages: A virtual environment that has them: its packages are copied for the embedded
                sandbox, and name the image for docker.
            backend: "auto", "docker", "bubblewrap", or a Backend.
            python: Interpreter for the sandbox; by default one is looked for.
            bwrap: The bubblewrap program; by default one is looked for.
            require_hard_limits: Refuse to run where memory can only be watched.
            uid_base: First uid of the range from which root gives each sandbox one.
            docker: The docker backend's image, OCI runtime and address.
            warm: Sandboxes that are kept ready, from the first script on: a script then starts in
                a few milliseconds. Each is used once.
            spool_quota: Bytes of the long printouts kept on disk, of all together; the oldest go
                first.
            session_idle: Seconds after which a session that nobody uses loses its state.
            session_life: Seconds after which any session does, between two scripts.
            max_kept: Sandboxes of sessions that stand still at a time; one more ends the longest
                idle one. By default 8 for each core.

        Raises:
            ConfigurationError: A setting that cannot work; it names the key.
        """
        catalog = toolsets if isinstance(toolsets, Catalog) else Catalog.of(*toolsets)
        self._settings = Settings(
            whole=catalog,
            scopes=checked_scopes(catalog, scopes),
            backend=BackendOptions(
                python=python,
                bwrap=bwrap,
                require_hard_limits=require_hard_limits,
                packages=packages,
                open_modules=checked_open_modules(open_modules),
                uid_base=uid_base,
                docker=docker or DockerOptions(),
            ).choose(backend),
            limits=checked_limits(limits),
            policy=checked_policy(policy or Policy(), catalog),
            gate=is_gate_on(gate),
            open_modules=checked_open_modules(open_modules),
            warm=checked_warm(warm),
            spool_quota=checked_quota(spool_quota),
            session_idle=checked_seconds("session_idle", session_idle),
            session_life=checked_seconds("session_life", session_life),
            **({} if max_kept is None else {"max_kept": checked_kept(max_kept)}),
        )
        self._thread: LoopThread | None = None
        self._core: Core | None = None
        self._closed = False
        self._making = threading.Lock()

    @property
    def catalog(self) -> Catalog:
        """What scripts see: the tools that the scopes allow."""
        return self._settings.whole.visible(self._settings.scopes)

    @property
    def settings(self) -> Settings:
        """What the executor was made of."""
        return self._settings

    def audit_events(self) -> list[AuditEvent]:
        """The latest tool calls, oldest first: a bounded ring in memory."""
        return self._core.audit.events() if self._core is not None else []

    def statistics(self) -> PoolStatistics | None:
        """What the warm pool has and did; None before the first script."""
        return self._core.statistics() if self._core is not None else None

    def _ready(self) -> tuple[LoopThread, Core]:
        if self._closed:
            raise ConfigurationError("executor", "it is closed", "make a new one.")
        with self._making:
            if self._thread is None:
                thread = own_loop()
                self._core = thread.submit(_make(self._settings)).result()
                self._thread = thread
                _open.add(self)
        self._thread.check_process()
        assert self._core is not None
        return self._thread, self._core

    def _submit_close(self) -> concurrent.futures.Future[Any] | None:
        self._closed = True
        _open.discard(self)
        if self._thread is None or self._core is None:
            return None
        return self._thread.submit(self._core.close())

    def _narrowed(self, wall: float | None, limits: Mapping[str, Any] | None) -> Limits:
        """The limits of one execution: none may be above the executor's."""
        return narrowed_limits(self._settings.limits, wall, limits)

    def _session_options(
        self,
        principal: Principal | None,
        user: str | None,
        tenant: str | None,
        scopes: Collection[str] | None,
        limits: Mapping[str, Any] | None,
        idle: float | None,
        life: float | None,
    ) -> dict[str, Any]:
        """What a session is made of. Raises ConfigurationError."""
        settings = self._settings
        return {
            "principal": checked_principal(principal, user, tenant),
            "scopes": narrowed_scopes(scopes, settings.scopes),
            "limits": self._narrowed(None, limits),
            "idle": checked_seconds("idle", settings.session_idle if idle is None else idle),
            "life": checked_seconds("life", settings.session_life if life is None else life),
        }


async def _make(settings: Settings) -> Core:
    return Core(settings)


@atexit.register
def _close_all() -> None:
    """Leave nothing behind when the program forgot to close; bounded, for a process that ends."""
    futures = [face._submit_close() for face in list(_open)]
    concurrent.futures.wait([future for future in futures if future], timeout=CLOSE_SECONDS)
