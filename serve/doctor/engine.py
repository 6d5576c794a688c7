"""The Docker Engine and its parts, as the daemon tells them, and the image that it has of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...sandbox import image
from ...sandbox.docker import DaemonError, DockerBackend
from ...sandbox.provision import prepare_runtime
from .finding import Finding, Mark
from .holes import holes_of
from .trial import Trial

_COMPONENTS = ("engine", "containerd", "runc")
_ABILITIES = {
    "MemoryLimit": "memory",
    "SwapLimit": "swap",
    "CpuCfsQuota": "cpu",
    "PidsLimit": "pids",
}


async def findings(backend: DockerBackend, trial: Trial) -> list[Finding]:
    """Nothing when the daemon does not answer: the backend's own finding says why."""
    await backend.daemon.connect()
    versions = await backend.daemon.ask("version")
    info = await backend.daemon.ask("info")
    return [
        *(_of_component(name, versions, trial) for name in _COMPONENTS),
        _abilities(info),
        await _image(backend),
    ]


def _of_component(name: str, versions: Mapping[str, Any], trial: Trial) -> Finding:
    version = next(
        (
            str(one.get("Version", ""))
            for one in versions.get("Components") or ()
            if str(one.get("Name", "")).lower() == name
        ),
        "",
    )
    known = holes_of(name, version)
    open_holes = [hole for hole in known if not (hole.component == "engine" and _is_closed(trial))]
    values = {"version": version, "holes": [hole.name for hole in open_holes]}
    if not open_holes:
        return Finding(name=name, text=version or "unknown", values=values)
    told = "; ".join(f"{hole.name}: {hole.text}" for hole in open_holes)
    fixed = "; ".join(f"{hole.name} in {', '.join(hole.fixed)}" for hole in open_holes)
    return Finding(
        name=name,
        mark=Mark.WARN,
        text=f"{version or 'unknown'}, by its number with {told}",
        hint=f"fixed: {fixed}; or see whether your distribution's package has the fix already.",
        values=values,
    )


def _is_closed(trial: Trial) -> bool:
    """The engine's own profile does not matter where a sandbox was seen not to reach the calls."""
    return trial.reaches_io_uring is False


def _abilities(info: Mapping[str, Any]) -> Finding:
    """SAFETY: an engine takes a limit that its kernel cannot hold, and only mutters about it."""
    missing = [limit for key, limit in _ABILITIES.items() if info.get(key) is False]
    options = [str(one) for one in info.get("SecurityOptions") or ()]
    driver = str(info.get("CgroupDriver", "unknown"))
    version = str(info.get("CgroupVersion", "unknown"))
    values = {
        "cgroup_version": version,
        "cgroup_driver": driver,
        "not_limited": missing,
        "rootless": any("rootless" in one for one in options),
        "security": options,
    }
    text = f"cgroup v{version} by {driver}"
    if "swap" in missing and "memory" not in missing:
        text += "; swap is not counted"
    if set(missing) - {"swap"}:
        return Finding(
            name="engine limits",
            mark=Mark.FAIL,
            text=f"{text}; it cannot limit {', '.join(missing)}",
            hint="give the kernel these cgroup controllers, or use the bubblewrap backend.",
            values=values,
        )
    return Finding(name="engine limits", mark=Mark.OK, text=text, values=values)


async def _image(backend: DockerBackend) -> Finding:
    runtime = prepare_runtime()
    name = backend.image or image.tag(image.load_declaration(), runtime)
    wanted = image.abi(runtime)
    values = {"name": name, "abi": wanted, "found": None, "matches": False}
    mend = "limbeck image build --offline"
    try:
        found = await backend.daemon.ask("inspect_image", name)
    except DaemonError as error:
        if error.status != 404:
            raise
        return Finding(
            name="image",
            mark=Mark.FAIL,
            text=f"there is no {name}; this version's ABI is {wanted}",
            hint=mend,
            values=values,
        )
    label = (found["Config"].get("Labels") or {}).get(image.ABI_LABEL)
    values |= {"found": label, "matches": label == wanted, "bytes": found.get("Size")}
    if label != wanted:
        return Finding(
            name="image",
            mark=Mark.FAIL,
            text=f"{name} has ABI {label}, this version's is {wanted}",
            hint=mend,
            values=values,
        )
    return Finding(name="image", mark=Mark.OK, text=f"{name}, ABI {wanted}", values=values)
