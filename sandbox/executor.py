"""The two faces of one core: `AsyncExecutor` for a program with a loop, `Executor` for one without.

with Executor([orders], scopes={"orders:read"}) as executor:
    result = executor.execute_code("from tools import orders\\nprint(orders.get_order(4521))")
    print(result.for_model())
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import os
import threading
import weakref
from collections.abc import Callable, Collection, Mapping
from queue import SimpleQueue
from typing import Any, Self

from ..bridge.audit import AuditEvent
from ..bridge.policy import Policy
from ..bridge.session import Principal
from ..runtime.errors import ConfigurationError
from ..stubs.catalog import Catalog
from ..stubs.tool import Toolset
from .backend import Backend, Limits
from .choice import BackendOptions, DockerOptions, checked_open_modules
from .core import Core, Request, Settings
from .inputs import check_inputs
from .loop import LoopThread, own_loop, tool_loop
from .output import OnOutput
from .pool import PoolStatistics
from .printout import QUOTA_BYTES
from .result import ExecutionResult
from .uids import BASE as UID_BASE

CLOSE_SECONDS = 10.0

Data = Collection[str | os.PathLike[str]] | Mapping[str, str | os.PathLike[str] | bytes]

_open: weakref.WeakSet[_Face] = weakref.WeakSet()


class _Face:
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

        Raises:
            ConfigurationError: A setting that cannot work; it names the key.
        """
        catalog = toolsets if isinstance(toolsets, Catalog) else Catalog.of(*toolsets)
        self._settings = Settings(
            whole=catalog,
            scopes=_checked_scopes(catalog, scopes),
            backend=BackendOptions(
                python=python,
                bwrap=bwrap,
                require_hard_limits=require_hard_limits,
                packages=packages,
                open_modules=checked_open_modules(open_modules),
                uid_base=uid_base,
                docker=docker or DockerOptions(),
            ).choose(backend),
            limits=_limits(limits),
            policy=_checked_policy(policy or Policy(), catalog),
            gate=_is_gate_on(gate),
            open_modules=checked_open_modules(open_modules),
            warm=_checked_warm(warm),
            spool_quota=_checked_quota(spool_quota),
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
        most = self._settings.limits
        values = dict(limits or {}) | ({} if wall is None else {"wall": wall})
        narrowed = most.with_values(values)
        for key in values:
            name = "cpu_budget" if key == "cpu_seconds" else key
            if getattr(narrowed, name) > getattr(most, name):
                raise ConfigurationError(
                    f"limits.{key}",
                    f"{values[key]!r} is above the executor's limit of {getattr(most, name):g}",
                    "give the executor a higher limit.",
                )
        return narrowed


class Executor(_Face):
    """Runs scripts for a program without an event loop; any thread may use it."""

    def execute_code(
        self,
        script: str,
        *,
        wall: float | None = None,
        limits: Mapping[str, Any] | None = None,
        data: Data = (),
        user: str | None = None,
        tenant: str | None = None,
        on_output: OnOutput | None = None,
    ) -> ExecutionResult:
        """Run one script to its end, whatever that is.

        Args:
            script: Python source, or Markdown with one fenced block of it.
            wall: Seconds; the same as `limits={"wall": ...}`.
            limits: Limits of this execution that are lower than the executor's own.
            data: Files and folders that the script reads under /data: paths, or a mapping of names
                to paths or to bytes. They are copied.
            user: On whose behalf; handlers see it in their ToolContext.
            tenant: Likewise.
            on_output: Called in this thread with ("stdout" | "stderr" | "progress", text) while
                the script runs; what it raises cancels the execution and is raised here.

        Raises:
            ConfigurationError: Called from a running event loop, after a fork, or when closed.
        """
        _refuse_running_loop()
        narrowed, inputs = self._narrowed(wall, limits), check_inputs(data)
        thread, core = self._ready()
        # Results and printed text take one way, so that text never comes after its result.
        inbox: SimpleQueue[Any] = SimpleQueue()
        cancel = asyncio.Event()
        request = Request(
            script=script,
            tool_loop=tool_loop().loop,
            cancel=cancel,
            limits=narrowed,
            inputs=inputs,
            principal=Principal(user=user, tenant=tenant),
            on_output=(lambda stream, text: inbox.put((stream, text))) if on_output else None,
        )
        future = thread.submit(core.execute(request))
        future.add_done_callback(inbox.put)
        try:
            while (item := inbox.get()) is not future:
                assert on_output is not None
                on_output(*item)
        except BaseException:
            thread.loop.call_soon_threadsafe(cancel.set)
            concurrent.futures.wait([future], timeout=CLOSE_SECONDS)
            raise
        result: ExecutionResult = future.result()
        return result

    def close(self) -> None:
        """Cancel what runs and release everything."""
        future = self._submit_close()
        if future is not None:
            future.result(timeout=CLOSE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncExecutor(_Face):
    """Runs scripts for a program with an event loop; its coroutine tools run on that loop."""

    async def execute_code(
        self,
        script: str,
        *,
        wall: float | None = None,
        limits: Mapping[str, Any] | None = None,
        data: Data = (),
        user: str | None = None,
        tenant: str | None = None,
        on_output: OnOutput | None = None,
    ) -> ExecutionResult:
        """Run one script to its end, as `Executor.execute_code` does.

        `on_output` is called on this loop. Cancelling the await kills the sandbox first, and waits
        until nothing of it runs.
        """
        narrowed, inputs = self._narrowed(wall, limits), check_inputs(data)
        thread, core = self._ready()
        loop = asyncio.get_running_loop()
        cancel = asyncio.Event()
        relay = _Relay(loop, on_output, lambda: thread.loop.call_soon_threadsafe(cancel.set))
        request = Request(
            script=script,
            tool_loop=loop,
            cancel=cancel,
            limits=narrowed,
            inputs=inputs,
            principal=Principal(user=user, tenant=tenant),
            on_output=relay if on_output is not None else None,
        )
        running = asyncio.wrap_future(thread.submit(core.execute(request)))
        try:
            result: ExecutionResult = await asyncio.shield(running)
        except asyncio.CancelledError:
            thread.loop.call_soon_threadsafe(cancel.set)
            await asyncio.wait([running], timeout=CLOSE_SECONDS)
            raise
        if relay.error is not None:
            raise relay.error
        return result

    async def close(self) -> None:
        """Cancel what runs and release everything."""
        future = self._submit_close()
        if future is not None:
            await asyncio.wait_for(asyncio.wrap_future(future), CLOSE_SECONDS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Relay:
    """Brings printed text to the caller's loop; what its callback raises cancels the execution."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_output: OnOutput | None,
        cancel: Callable[[], object],
    ) -> None:
        self._loop = loop
        self._on_output = on_output
        self._cancel = cancel
        self.error: BaseException | None = None

    def __call__(self, stream: str, text: str) -> None:
        self._loop.call_soon_threadsafe(self._deliver, stream, text)

    def _deliver(self, stream: str, text: str) -> None:
        if self._on_output is None or self.error is not None:
            return
        try:
            self._on_output(stream, text)
        except Exception as error:
            self.error = error
            self._cancel()


async def _make(settings: Settings) -> Core:
    return Core(settings)


def _refuse_running_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise ConfigurationError(
        "executor",
        "Executor.execute_code would block the event loop that runs here",
        "use AsyncExecutor and await it.",
    )


def _checked_scopes(catalog: Catalog, scopes: Collection[str]) -> frozenset[str]:
    if isinstance(scopes, str):
        raise ConfigurationError("scopes", "a single text", f"write {{{scopes!r}}}.")
    needed = catalog.required_scopes()
    if needed and not scopes:
        raise ConfigurationError(
            "scopes",
            f"the tools need scopes and none are given: {', '.join(sorted(needed))}",
            'name those that the scripts may use, or "*" for all.',
        )
    return frozenset(scopes)


def _checked_policy(policy: Policy, catalog: Catalog) -> Policy:
    for name in sorted(policy.unconfirmed_destructive):
        if catalog.get(name) is None:
            near = ", ".join(catalog.near(name))
            raise ConfigurationError(
                "policy.unconfirmed_destructive",
                f"there is no tool {name!r}",
                f"did you mean {near}?" if near else "",
            )
    return policy


def _limits(limits: Limits | Mapping[str, Any] | None) -> Limits:
    if isinstance(limits, Limits):
        return limits
    return Limits().with_values(limits or {})


def _checked_warm(warm: int) -> int:
    if isinstance(warm, bool) or not isinstance(warm, int) or not 0 <= warm <= 64:
        raise ConfigurationError("warm", f"{warm!r} is not a whole number from 0 to 64")
    return warm


def _checked_quota(quota: int) -> int:
    if isinstance(quota, bool) or not isinstance(quota, int) or quota < 0:
        raise ConfigurationError("spool_quota", f"{quota!r} is not a whole number of bytes")
    return quota


def _is_gate_on(gate: str) -> bool:
    if gate not in ("on", "off"):
        raise ConfigurationError("gate", f"{gate!r} is neither 'on' nor 'off'")
    return gate == "on"


@atexit.register
def _close_all() -> None:
    """Leave nothing behind when the program forgot to close; bounded, for a process that ends."""
    futures = [face._submit_close() for face in list(_open)]
    concurrent.futures.wait([future for future in futures if future], timeout=CLOSE_SECONDS)
