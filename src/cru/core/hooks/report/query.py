"""Events and tools in anybody's words: what a person types is found whatever system its name comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.config.closest import did_you_mean
from cru.core.events.catalog import ALIASES, BY_NAME
from cru.core.hooks.dialects import load_dialects
from cru.core.hooks.errors import HookError
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.mapping import Dialect
from cru.core.plugins.executables.executable import HOOKS
from cru.core.plugins.executables.hooks.table import BY_NAME as PROGRAMS


class NoSuchName(HookError):
    pass


class HookQuery(Struct, frozen=True):
    """What is asked about; empty: all.

    word: as typed
    ours: events of the catalog
    foreign: (dialect, event)
    tool: in our words
    program: a hook of plugins that are programs
    """

    word: str = ""
    ours: frozenset[str] = frozenset()
    foreign: frozenset[tuple[str, str]] = frozenset()
    tool: str = ""
    program: str = ""

    @property
    def first(self) -> str:
        """The one of `ours` that stands first in the catalog; "" if there are none."""
        return next((name for name in BY_NAME if name in self.ours), "")

    def event(self, name: str) -> bool:
        return name in self.ours or not self.word

    def entry(self, entry: HookEntry, dialect: Dialect) -> bool:
        """Whether it listens to what is asked about."""
        if (entry.dialect, entry.event) in self.foreign:
            return True
        events = {mapping.event for mapping in dialect.events.get(entry.event, ())}
        if self.tool and not any(name.startswith(("tool:", "permission:")) for name in events):
            return False
        return not self.word or not events.isdisjoint(self.ours)


def find_event(word: str, dialects: Mapping[str, Dialect]) -> HookQuery | None:
    """An event by its name in any system, however it is written (`PreToolUse`, `pre_tool_use`, `tool:before_call`)."""
    plain = _plain(word)
    ours = {name for name in BY_NAME if _plain(name) == plain}
    ours |= {name for alias, (name, _) in ALIASES.items() if _plain(alias) == plain}
    foreign = {
        (dialect.name, name) for dialect in dialects.values() for name in dialect.events if _plain(name) == plain
    }
    if not ours and not foreign:
        return None
    mapped = {mapping.event for dialect, name in foreign for mapping in dialects[dialect].events[name] if mapping.event}
    same = {
        (dialect.name, name)
        for dialect in dialects.values()
        for name, mappings in dialect.events.items()
        if any(mapping.event in ours for mapping in mappings)
    }
    return HookQuery(word, frozenset(ours | mapped), frozenset(foreign | same))


def find_event_or_program_hook(word: str, dialects: Mapping[str, Dialect]) -> HookQuery | None:
    """The same, or a hook of plugins that are programs (`pre_shell_exec`)."""
    query = find_event(word, dialects)
    hook = next((hook for name, hook in PROGRAMS.items() if _plain(name) == _plain(word)), None)
    if hook is None:
        return query
    query = query or HookQuery(word)
    return replace(query, ours=query.ours.union(hook.events), program=hook.name)


def find_tool(word: str, known: Iterable[str] = ()) -> str:
    """Our tool by its name in any system; "" if nobody has one of that name. `known`: names beside those of the tables."""
    own = own_tools()
    if word in own or word in known:
        return word
    for tool in own:
        if any(word in dialect.tools.names(tool) for dialect in load_dialects().values()):
            return tool
    return word if word.startswith("mcp") else ""


def parse_query(words: list[str], dialects: Mapping[str, Dialect], known: Iterable[str] = ()) -> HookQuery:
    """`[EVENT] [TOOL]` as typed; EVENT may be a hook of programs. Raises NoSuchName."""
    query = HookQuery()
    for word in words:
        of_event = find_event_or_program_hook(word, dialects) if not query.word else None
        if of_event is not None:
            query = replace(of_event, tool=query.tool)
        elif not query.tool and find_tool(word, known):
            query = replace(query, tool=find_tool(word, known))
        else:
            raise unknown_name(word, dialects, (*known, *HOOKS))
    return query


def unknown_name(word: str, dialects: Mapping[str, Dialect], known: Iterable[str] = ()) -> NoSuchName:
    events = [*BY_NAME, *ALIASES, *dict.fromkeys(name for dialect in dialects.values() for name in dialect.events)]
    hint = did_you_mean(word, [*events, *list_tools(known)])
    return NoSuchName(f"there is no event and no tool {word}", hint or "docs/events.md and docs/hooks.md list them")


def list_tools(known: Iterable[str] = ()) -> list[str]:
    """Every name of a tool in any system, ours first."""
    dialects, own = load_dialects().values(), own_tools()
    return [*own, *known, *(name for tool in own for dialect in dialects for name in dialect.tools.tools.get(tool, ()))]


def own_tools() -> list[str]:
    """Our tools that other systems have, too."""
    return list(dict.fromkeys(tool for dialect in load_dialects().values() for tool in dialect.tools.tools))


def _plain(word: str) -> str:
    return "".join(char for char in word.lower() if char.isalnum())
