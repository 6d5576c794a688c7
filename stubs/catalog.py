"""The seam of the catalog: one immutable snapshot of the tools, per session and execution."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass

from ..runtime.errors import ConfigurationError, UnknownTool
from .tool import Tool, Toolset


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetView:
    """A toolset as it was when the catalog was made."""

    name: str
    description: str
    tools: tuple[Tool, ...]


class Catalog:
    """Toolsets by name, tools by qualified name. What is listed is what can be called."""

    def __init__(self, toolsets: Collection[ToolsetView]) -> None:
        self.toolsets = tuple(toolsets)
        self._tools = {tool.spec.qualified: tool for view in self.toolsets for tool in view.tools}
        self._fingerprint = ""

    @classmethod
    def of(cls, *toolsets: Toolset) -> Catalog:
        """A snapshot of toolsets. Raises ConfigurationError when two have one name."""
        views: dict[str, ToolsetView] = {}
        for toolset in toolsets:
            view = ToolsetView(
                name=toolset.name, description=toolset.description, tools=toolset.tools
            )
            if view.name in views:
                both = " and ".join(_origins(one) for one in (views[view.name], view))
                raise ConfigurationError(
                    f"toolset {view.name!r}", f"two toolsets have this name: {both}"
                )
            views[view.name] = view
        return cls(list(views.values()))

    def get(self, qualified: str) -> Tool | None:
        """The tool of a name, or None."""
        return self._tools.get(qualified)

    def tool(self, qualified: str) -> Tool:
        """The tool of a name. Raises UnknownTool with near names of this catalog."""
        tool = self._tools.get(qualified)
        if tool is None:
            raise UnknownTool(qualified, self.near(qualified))
        return tool

    def near(self, name: str) -> list[str]:
        """Up to three names of this catalog that `name` may have meant."""
        return difflib.get_close_matches(name[:200], self._tools, n=3, cutoff=0.6)

    def visible(self, scopes: Collection[str]) -> Catalog:
        """What a session with these scopes sees; `"*"` stands for all."""
        if "*" in scopes:
            return self
        granted = frozenset(scopes)
        views = [
            ToolsetView(name=view.name, description=view.description, tools=tools)
            for view in self.toolsets
            if (tools := tuple(tool for tool in view.tools if tool.spec.scopes <= granted))
            or not view.tools
        ]
        return Catalog(views)

    def required_scopes(self) -> frozenset[str]:
        """Every scope that some tool needs."""
        return frozenset().union(*(tool.spec.scopes for tool in self))

    @property
    def fingerprint(self) -> str:
        """SHA-256 over every contract, in hexadecimal: the same for the same tools."""
        if not self._fingerprint:
            parts = [
                [view.name, view.description, [_plain(tool) for tool in view.tools]]
                for view in self.toolsets
            ]
            text = json.dumps(parts, sort_keys=True, default=sorted)
            self._fingerprint = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        return self._fingerprint

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)


def _plain(tool: Tool) -> dict[str, object]:
    return asdict(tool.spec)


def _origins(view: ToolsetView) -> str:
    names = ", ".join(tool.spec.name for tool in view.tools[:3])
    return f"one with {names or 'no tools'}"
