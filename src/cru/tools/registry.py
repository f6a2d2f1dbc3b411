"""All tools of a session, by name, in an order that never changes: requests stay byte-stable."""

from __future__ import annotations

from collections.abc import Iterable

from cru.tools.protocol import Tool, ToolSource
from cru.values.messages import ToolSpec


class ToolRegistry:
    """The tools of several sources. A name given twice goes to the later source, in the place of the first, and is
    mentioned in `problems`. A tool with a true `hidden` attribute can be called but is not offered to the model."""

    def __init__(self, sources: Iterable[ToolSource]) -> None:
        self.problems: list[str] = []
        self._tools: dict[str, Tool] = {}
        self._under: dict[str, Tool] = {}
        self._specs: dict[frozenset[str] | None, tuple[ToolSpec, ...]] = {}
        for source in sources:
            for tool in source.tools():
                self._add(tool)
        self._offer()

    def add(self, tool: Tool) -> str:
        """One more tool, from a plugin; the problem ("" = none): a name that is taken stays with whom it belongs to, but for a hidden
        tool, which comes back when the plugin's is dropped."""
        taken = self._tools.get(tool.spec.name)
        if taken is not None and _is_hidden(taken) and tool.spec.name not in self._under:
            self._under[tool.spec.name] = taken
        elif taken is not None:
            whose = "cru itself" if taken.source == "built-in" else taken.source
            return f"the tool {tool.spec.name} of {tool.source} is left out: {whose} has one of that name"
        self._add(tool)
        self._offer()
        return ""

    def drop_source(self, source: str) -> int:
        """Take away everything of a source; how many tools."""
        gone = [name for name, tool in self._tools.items() if tool.source == source]
        for name in gone:
            del self._tools[name]
            if name in self._under:
                self._tools[name] = self._under.pop(name)
        self._offer()
        return len(gone)

    def _offer(self) -> None:
        self._specs.clear()
        self._offered = tuple(name for name, tool in self._tools.items() if not _is_hidden(tool))

    def _add(self, tool: Tool) -> None:
        name = tool.spec.name
        old = self._tools.get(name)
        if old is not None and not _is_hidden(old):
            self.problems.append(f"tool `{name}` of {old.source} is replaced by the one of {tool.source}")
        self._tools[name] = tool

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def closest(self, name: str) -> str | None:
        """The offered name most like `name`, if any is."""
        from cru.config.closest import closest

        return closest(name, self._offered)

    def names(self) -> tuple[str, ...]:
        """The names of the offered tools, in their fixed order."""
        return self._offered

    def specs(self, names: Iterable[str] | None = None) -> tuple[ToolSpec, ...]:
        """The specs of the offered tools (of those in `names`), in the fixed order; equal calls give the same tuple."""
        key = None if names is None else frozenset(names)
        specs = self._specs.get(key)
        if specs is None:
            chosen = self._offered if key is None else (name for name in self._offered if name in key)
            specs = self._specs[key] = tuple(self._tools[name].spec for name in chosen)
        return specs


def _is_hidden(tool: Tool) -> bool:
    return bool(getattr(tool, "hidden", False))
