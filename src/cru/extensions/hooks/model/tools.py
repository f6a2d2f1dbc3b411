"""Tools and their arguments in the words of another system: what matchers are tested against, what scripts read, what they give back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

PATH_ARGUMENTS = ("file_path", "path")


def _same(value: Any) -> Any:
    return value


class ArgumentMapping(Struct, frozen=True):
    """One of our arguments in a dialect.

    name: what it is called there
    to_foreign, to_own: its value on the way out, and back
    """

    name: str
    to_foreign: Callable[[Any], Any] = _same
    to_own: Callable[[Any], Any] = _same


def number_argument(
    name: str, to_foreign: Callable[[float], float], to_own: Callable[[float], float]
) -> ArgumentMapping:
    """An argument that counts in another unit; what is no number goes through as it is, and the tool's own check speaks."""

    def numbers(change: Callable[[float], float]) -> Callable[[Any], Any]:
        return lambda value: change(value) if isinstance(value, int | float) and not isinstance(value, bool) else value

    return ArgumentMapping(name, numbers(to_foreign), numbers(to_own))


MILLISECONDS = number_argument("timeout", lambda s: int(s * 1000), lambda ms: ms / 1000)


class ToolMapping(Struct, frozen=True, kw_only=True):
    """Our tools in the words of a dialect.

    tools: ours → its names there, of which scripts see the first; a tool that is not here keeps its name
    arguments: ours → our argument → theirs, where they differ
    dropped: ours → arguments of theirs that our tool has no use for
    absolute_paths: whether scripts read absolute paths
    """

    tools: Mapping[str, tuple[str, ...]] = {}
    arguments: Mapping[str, Mapping[str, ArgumentMapping]] = {}
    dropped: Mapping[str, tuple[str, ...]] = {}
    absolute_paths: bool = False

    def names(self, tool: str) -> tuple[str, ...]:
        """Every name that a matcher may know the tool by, ours among them; the first is theirs."""
        return tuple(dict.fromkeys((*self.tools.get(tool, ()), tool)))

    def foreign_name(self, tool: str) -> str:
        return self.names(tool)[0]

    def own_name(self, name: str) -> str:
        """Our tool for a name of theirs; the name itself if it is nobody's."""
        return next((tool for tool, names in self.tools.items() if name in names), name)

    def to_foreign(self, tool: str, args: Mapping[str, Any], cwd: Path) -> dict[str, Any]:
        """Our arguments in their words; relative paths against `cwd` where scripts expect absolute ones."""
        mappings = self.arguments.get(tool, {})
        out: dict[str, Any] = {}
        for name, value in args.items():
            if self.absolute_paths and name in PATH_ARGUMENTS and isinstance(value, str) and value:
                value = str(cwd / Path(value).expanduser())
            mapping = mappings.get(name)
            out[mapping.name if mapping else name] = mapping.to_foreign(value) if mapping else value
        return out

    def to_own(self, tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """What a script gave back, in our words; arguments that only the dialect's own tool has are left out."""
        mappings = {mapping.name: (name, mapping) for name, mapping in self.arguments.get(tool, {}).items()}
        dropped = self.dropped.get(tool, ())
        out: dict[str, Any] = {}
        for name, value in args.items():
            if name in mappings:
                own, mapping = mappings[name]
                out[own] = mapping.to_own(value)
            elif name not in dropped:
                out[name] = value
        return out
