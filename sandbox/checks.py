"""Settings as they are given, checked: each fault names its key and a mend."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from ..bridge.policy import Policy
from ..bridge.session import Principal
from ..runtime.errors import ConfigurationError
from ..stubs.catalog import Catalog
from .backend import LONGEST_LIFE, Limits


def checked_scopes(catalog: Catalog, scopes: Collection[str]) -> frozenset[str]:
    """Scopes that cover what the tools need."""
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


def checked_policy(policy: Policy, catalog: Catalog) -> Policy:
    """A policy whose names exist."""
    for name in sorted(policy.unconfirmed_destructive):
        if catalog.get(name) is None:
            near = ", ".join(catalog.near(name))
            raise ConfigurationError(
                "policy.unconfirmed_destructive",
                f"there is no tool {name!r}",
                f"did you mean {near}?" if near else "",
            )
    return policy


def checked_limits(limits: Limits | Mapping[str, Any] | None) -> Limits:
    """Limits, whole or as those that differ."""
    if isinstance(limits, Limits):
        return limits
    return Limits().with_values(limits or {})


def checked_warm(warm: int) -> int:
    """How many sandboxes wait."""
    if isinstance(warm, bool) or not isinstance(warm, int) or not 0 <= warm <= 64:
        raise ConfigurationError("warm", f"{warm!r} is not a whole number from 0 to 64")
    return warm


def checked_quota(quota: int) -> int:
    """A number of bytes."""
    if isinstance(quota, bool) or not isinstance(quota, int) or quota < 0:
        raise ConfigurationError("spool_quota", f"{quota!r} is not a whole number of bytes")
    return quota


def is_gate_on(gate: str) -> bool:
    """The word as a truth."""
    if gate not in ("on", "off"):
        raise ConfigurationError("gate", f"{gate!r} is neither 'on' nor 'off'")
    return gate == "on"


def checked_kept(most: int) -> int:
    """How many sandboxes may stand still."""
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= 4096:
        raise ConfigurationError("max_kept", f"{most!r} is not a whole number from 1 to 4096")
    return most


def checked_seconds(key: str, seconds: float) -> float:
    """How long a session's sandbox may be idle, or live."""
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not math.isfinite(seconds) or not 0 < seconds <= LONGEST_LIFE:
        raise ConfigurationError(
            key, f"{seconds!r} is no number of seconds above 0, up to {LONGEST_LIFE:g}"
        )
    return float(seconds)


def checked_principal(
    principal: Principal | None, user: str | None, tenant: str | None
) -> Principal:
    """One principal, given whole or by its parts."""
    if principal is None:
        return Principal(user=user, tenant=tenant)
    if user is not None or tenant is not None:
        raise ConfigurationError(
            "principal", "user or tenant are given beside it", "give one or the other."
        )
    return principal


def narrowed_scopes(scopes: Collection[str] | None, most: frozenset[str]) -> frozenset[str] | None:
    """The scopes of a session: none may be beyond the executor's. None: these very ones."""
    if scopes is None:
        return None
    if isinstance(scopes, str):
        raise ConfigurationError("scopes", "a single text", f"write {{{scopes!r}}}.")
    beyond = sorted(set(scopes) - most)
    if beyond and "*" not in most:
        raise ConfigurationError(
            "scopes",
            f"the executor does not have {', '.join(map(repr, beyond))}",
            "give a session some of the executor's scopes.",
        )
    return frozenset(scopes)


def narrowed_limits(
    most: Limits,
    wall: float | None,
    limits: Mapping[str, Any] | None,
    *,
    fixed: Collection[str] = (),
) -> Limits:
    """Limits of which none is above `most`; of the `fixed` ones none differs."""
    values = dict(limits or {}) | ({} if wall is None else {"wall": wall})
    narrowed = most.with_values(values)
    for key in (item.name for item in fields(Limits)):
        name = "cpu_budget" if key == "cpu_seconds" else key
        wanted, limit = getattr(narrowed, name), getattr(most, name)
        if key in fixed and wanted != limit:
            raise ConfigurationError(
                f"limits.{key}",
                "it is fixed for the whole session",
                "give it to executor.session(limits=...).",
            )
        if wanted > limit:
            raise ConfigurationError(
                f"limits.{key}",
                f"{wanted!r} is above the executor's limit of {limit:g}",
                "give the executor a higher limit.",
            )
    return narrowed
