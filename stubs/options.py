"""What an author says of a tool besides its function, checked."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypedDict

from ..runtime.errors import ConfigurationError
from .effect import Effect

APPROVALS = ("default", "allow", "ask", "deny")


class Options(TypedDict, total=False):
    """The options of `Toolset.add` and of both `@tool` decorators."""

    name: str | None
    """When the function's own is not wanted."""
    description: str | None
    """When the docstring's is not wanted."""
    effect: Effect | str
    """read, write or destructive; what does not say is destructive."""
    scopes: Collection[str]
    """All that a session needs to see the tool."""
    approval: str
    """ask or deny, to ask for more than the effect does."""
    timeout: float | None
    """Seconds that the handler may take."""
    max_calls: int | None
    """Calls in one execution."""
    cooldown_seconds: float | None
    """Seconds that it rests between two calls of one principal."""
    side_effects: str
    """What it does besides; shown to the model."""
    version: str
    """Shown and audited."""
    idempotent: bool
    """A repeated call changes nothing more."""


def checked(options: Mapping[str, Any], tool: str) -> dict[str, Any]:
    """The options as a ToolSpec's fields. Raises ConfigurationError, which names the option."""
    for name in options:
        if name not in Options.__annotations__:
            near = difflib.get_close_matches(name, Options.__annotations__, n=1)
            known = ", ".join(Options.__annotations__)
            hint = f"did you mean {near[0]}?" if near else f"the options are: {known}."
            raise ConfigurationError(f"{tool}: {name}", "there is no such option", hint)
    return {
        name: _CHECKS[name](value, f"{tool}: {name}") if name in _CHECKS else value
        for name, value in options.items()
    }


def _effect(effect: Any, key: str) -> Effect:
    try:
        return Effect(effect)
    except ValueError:
        known = ", ".join(Effect)
        raise ConfigurationError(
            key, f"{effect!r} is not known", f"the effects are: {known}."
        ) from None


def _scopes(scopes: Any, key: str) -> frozenset[str]:
    if isinstance(scopes, str):
        raise ConfigurationError(key, "a single text", f"write {{{scopes!r}}}.")
    for scope in scopes:
        if not isinstance(scope, str) or not scope or scope == "*":
            raise ConfigurationError(key, f"{scope!r} is not a scope")
    return frozenset(scopes)


def _approval(approval: Any, key: str) -> str:
    if approval not in APPROVALS:
        raise ConfigurationError(key, f"{approval!r} is not known", "write ask or deny.")
    if approval == "allow":
        raise ConfigurationError(
            key,
            "a tool may only ask for more than its effect does",
            "the operator allows it in policy.unconfirmed_destructive.",
        )
    return str(approval)


def _positive(value: Any, key: str) -> float | None:
    if value is not None and not value > 0:
        raise ConfigurationError(key, f"{value!r} must be above 0")
    return value  # type: ignore[no-any-return]


_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "effect": _effect,
    "scopes": _scopes,
    "approval": _approval,
    "timeout": _positive,
    "cooldown_seconds": _positive,
}
