"""limbeck: code as action. One tool, execute_code; the rest is distilled.

The public names are loaded on first use (PEP 562), so that `import limbeck` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Activity": ".sandbox.activity",
    "AsyncExecutor": ".sandbox.executor",
    "AsyncSession": ".sandbox.session_faces",
    "Executor": ".sandbox.executor",
    "CodeTool": ".serve.definitions",
    "ExecutionResult": ".sandbox.result",
    "Limits": ".sandbox.backend",
    "Policy": ".bridge.policy",
    "Principal": ".bridge.session",
    "Session": ".sandbox.session_faces",
    "Effect": ".stubs.tool",
    "Tool": ".stubs.tool",
    "ToolContext": ".stubs.tool",
    "Toolset": ".stubs.tool",
    "tool": ".stubs.tool",
    "Catalog": ".stubs.catalog",
    "ConfigurationError": ".runtime.errors",
    "LimbeckError": ".runtime.errors",
    "ToolError": ".runtime.errors",
    "ToolFailed": ".runtime.errors",
}

__all__ = ["__version__", *sorted(_HOMES)]

if TYPE_CHECKING:
    from .bridge.policy import Policy as Policy
    from .bridge.session import Principal as Principal
    from .runtime.errors import ConfigurationError as ConfigurationError
    from .runtime.errors import LimbeckError as LimbeckError
    from .runtime.errors import ToolError as ToolError
    from .runtime.errors import ToolFailed as ToolFailed
    from .sandbox.activity import Activity as Activity
    from .sandbox.backend import Limits as Limits
    from .sandbox.executor import AsyncExecutor as AsyncExecutor
    from .sandbox.executor import Executor as Executor
    from .sandbox.result import ExecutionResult as ExecutionResult
    from .sandbox.session_faces import AsyncSession as AsyncSession
    from .sandbox.session_faces import Session as Session
    from .serve.definitions import CodeTool as CodeTool
    from .stubs.catalog import Catalog as Catalog
    from .stubs.tool import Effect as Effect
    from .stubs.tool import Tool as Tool
    from .stubs.tool import ToolContext as ToolContext
    from .stubs.tool import Toolset as Toolset
    from .stubs.tool import tool as tool


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'limbeck' has no attribute {name!r}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
