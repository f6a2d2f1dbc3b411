"""What a dialect is: where its files lie, how an entry is read, when it fires, what it gets and what its output means; and tools and their
arguments in its words.

A dialect only translates: an event into stdin and environment, exit status and output into the one answer record. Running, order, trust and
records are the same for all.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from cru.core.base.values import mcp_names
from cru.core.events.catalog import BY_NAME
from cru.core.events.registry import HandlerFunction
from cru.core.events.stamp import Event
from cru.core.guard.rules import RuleLists
from cru.core.hooks import Footprint
from cru.core.hooks.errors import SlowRegex
from cru.core.hooks.model.entry import HookEntry, HookFileProblem, HookSource, Layer
from cru.core.hooks.model.facts import FactsOf, SessionFacts
from cru.core.hooks.model.result import HookResult, HookRun

PATH_ARGUMENTS = ("file_path", "path")


def _same(value: object) -> object:
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
    agents: kinds of sub-agents by our name → theirs
    has_double_names: whether tools of MCP servers are `mcp__server__tool` there; else they have our names
    """

    tools: Mapping[str, tuple[str, ...]] = {}
    arguments: Mapping[str, Mapping[str, ArgumentMapping]] = {}
    dropped: Mapping[str, tuple[str, ...]] = {}
    absolute_paths: bool = False
    agents: Mapping[str, str] = {}
    has_double_names: bool = False

    def agent_names(self, agent: str) -> tuple[str, ...]:
        """Every name that a matcher may know a kind of sub-agent by; the first is theirs."""
        return tuple(dict.fromkeys((self.agents.get(agent, agent), agent)))

    def foreign_agent(self, agent: str) -> str:
        return self.agent_names(agent)[0]

    def names(self, tool: str) -> tuple[str, ...]:
        """Every name that a matcher may know the tool by, ours among them; the first is theirs."""
        if self.has_double_names and tool.startswith("mcp_"):
            return tuple(dict.fromkeys((mcp_names.double_name(tool), tool)))
        return tuple(dict.fromkeys((*self.tools.get(tool, ()), tool)))

    def foreign_name(self, tool: str) -> str:
        return self.names(tool)[0]

    def own_name(self, name: str) -> str:
        """Our tool for a name of theirs, a glob for a whole MCP server; the name itself if it is nobody's."""
        if name.startswith("mcp__"):
            return mcp_names.own_name(name)
        return next((tool for tool, names in self.tools.items() if name in names), name)

    def to_foreign(self, tool: str, args: Mapping[str, object], root: Path) -> dict[str, object]:
        """Our arguments in their words. Paths are normalized, and absolute where scripts expect that; relative ones begin at `root`."""
        mappings = self.arguments.get(tool, {})
        out: dict[str, object] = {}
        for name, value in args.items():
            if (
                name in PATH_ARGUMENTS
                and isinstance(value, str)
                and value
                and (self.absolute_paths or tool in self.tools)
            ):
                value = self._path(value, str(root), tool in self.tools)
            mapping = mappings.get(name)
            out[mapping.name if mapping else name] = mapping.to_foreign(value) if mapping else value
        return out

    def _path(self, text: str, root: str, is_built_in: bool) -> str:
        """The path as scripts read it. Our own tools get it normalized, too. Other tools get it as the model wrote it: where a link before
        `..` makes that another file, scripts read where the path really leads."""
        from cru.core.tools.paths import normalize_path

        path = normalize_path(text, root)
        if self.absolute_paths:
            path = os.path.join(root, path)
        if not is_built_in and ".." in text:
            opened = os.path.realpath(os.path.join(root, os.path.expanduser(text)))
            return path if opened == os.path.realpath(path) else opened
        return path

    def to_own(self, tool: str, args: Mapping[str, object]) -> dict[str, object]:
        """What a script gave back, in our words; arguments that only the dialect's own tool has are left out."""
        mappings = {mapping.name: (name, mapping) for name, mapping in self.arguments.get(tool, {}).items()}
        dropped = self.dropped.get(tool, ())
        out: dict[str, object] = {}
        for name, value in args.items():
            if name in mappings:
                own, mapping = mappings[name]
                out[own] = mapping.to_own(value)
            elif name not in dropped:
                out[name] = value
        return out


System: TypeAlias = Literal["posix", "windows"]
AnswerReader: TypeAlias = Callable[[HookEntry, Event, HookRun, SessionFacts], HookResult]
FolderOf: TypeAlias = Callable[[HookEntry, SessionFacts], Path]
"""A folder that depends on where an entry stands."""


class EventMapping(Struct, frozen=True):
    """What an event of a dialect is among ours.

    name: in the dialect's spelling
    event: ours, "" if there is none
    unavailable: why there is none
    is_unguarded: whether what its hooks refuse happens in cru all the same: that they do not run is told
    accepts: which firings of ours are meant (a cause, a source); None: all
    subject: what a matcher looks at; None: matchers have no effect
    subjects: all that `subject` can be, where that is a closed list
    fields: what stdin has beside the common fields
    answer: what a run of a hook means
    scope: which agents its hooks hear, whatever the entry says; "": as the entry says
    """

    name: str
    event: str = ""
    unavailable: str = ""
    is_unguarded: bool = False
    accepts: Callable[[Event[Any], SessionFacts], bool] | None = None
    subject: Callable[[Event[Any]], str] | None = None
    subjects: tuple[str, ...] = ()
    fields: Callable[[Event[Any], SessionFacts], dict[str, Any]] | None = None
    answer: AnswerReader | None = None
    scope: Literal["", "main", "tree"] = ""


Events: TypeAlias = Mapping[str, Sequence[EventMapping]]
"""The events of a dialect by canonical name; one that is several of ours has several mappings."""


class ForeignSettings(Struct, frozen=True):
    """What another program's file says beside its hooks.

    env: variables of its hooks and of the agent's commands, as soon as a person accepts the file
    rules: in our writing; deny and ask only tighten, so they hold at once, allow when a person accepts the file
    folders: that count as part of the project then, too; absolute
    lines: of the rules in the file, by what they decide and their text
    """

    env: Mapping[str, str] = {}
    rules: RuleLists = RuleLists()
    folders: tuple[str, ...] = ()
    lines: Mapping[tuple[str, str], int] = {}

    @property
    def widens(self) -> bool:
        """Whether there is something that waits for a person."""
        return bool(self.env or self.rules.allow or self.folders)


class ParsedFile(Struct, frozen=True):
    """What a configuration says.

    entries: in the order of the file
    problems: what cannot be read, or is odd
    disables: in the dialect's words, what is off in the files of this dialect above it, too
    settings: what it says beside hooks
    """

    entries: list[HookEntry]
    problems: list[HookFileProblem]
    disables: frozenset[str] = frozenset()
    settings: ForeignSettings = ForeignSettings()


class ConfigFormat(Struct, frozen=True, kw_only=True):
    """How configurations of a dialect are read.

    read: a file, those below it, and the session; never raises, what cannot be read is a problem
    counts_milliseconds: whether time limits are written in milliseconds
    runs_equal_once: whether of two entries that do the same one runs
    must_hold: what an entry says so that its failure refuses what it guards, "" if there is no such word
    """

    read: Callable[[HookSource, Sequence[ParsedFile], SessionFacts], ParsedFile]
    counts_milliseconds: bool = False
    runs_equal_once: bool = True
    must_hold: str = ""


class Matching(Struct, frozen=True, kw_only=True):
    """Which firings an entry is for.

    matcher_fits: whether its matcher fits the subject (a tool's name in our words)
    condition_holds: whether its `if` does; None: entries have none
    condition_words: what an `if` may name beside tools
    """

    matcher_fits: Callable[[HookEntry, Event, str], bool]
    condition_holds: Callable[[HookEntry, Event, SessionFacts], bool] | None = None
    condition_words: tuple[str, ...] = ()


class LaunchRules(Struct, frozen=True, kw_only=True):
    """How commands of a dialect become processes.

    shells: by system, in order of preference (names as in launch/shells.py)
    end_signal: what asks a command to end at its time limit
    dispatches_paths: whether scripts run without execute bit, whatever their line ends, as in Crush
    variables: those that hold a path, and which fact of the session that is, or what tells it of an entry
    placeholders: variables whose `${NAME}` is replaced in the exec form, which no shell reads
    """

    shells: Mapping[System, tuple[str, ...]] = {}
    end_signal: signal.Signals = signal.SIGTERM
    dispatches_paths: bool = False
    variables: Mapping[str, Literal["root"] | FolderOf] = {}
    placeholders: tuple[str, ...] = ()

    def known_variables(self, entry: HookEntry, facts: SessionFacts) -> dict[str, str]:
        """The variables whose value is known before a command runs."""
        return {
            name: str(getattr(facts, fact) if isinstance(fact, str) else fact(entry, facts))
            for name, fact in self.variables.items()
        }


class Dialect(Struct, frozen=True, kw_only=True):
    """The command hooks of one system.

    name: that of its folder
    footprint: where its files lie, and its place in the composition
    events: its events among ours
    config: how its files are read
    matching: which firings an entry is for
    stdin: what a command reads
    extra_environment: what is set for a command beside `launch.variables`; None takes a variable away
    handlers: (event of ours, handler) of its own, in-process, as long as it has active entries
    tool_environment: variables of the tools' children, as long as it has active entries
    tools: tools and arguments in its words
    launch: how its commands become processes
    judges_ahead: whether its program decides all calls of a reply before any of them runs
    """

    name: str
    footprint: Footprint
    events: Events
    config: ConfigFormat
    matching: Matching
    stdin: Callable[[EventMapping, Event, SessionFacts], bytes]
    extra_environment: Callable[[HookEntry, EventMapping, Event, SessionFacts], Mapping[str, str | None]]
    handlers: Callable[[Sequence[HookEntry], FactsOf], list[tuple[str, HandlerFunction]]] | None = None
    tool_environment: Callable[[SessionFacts], Mapping[str, str]] | None = None
    tools: ToolMapping = ToolMapping()
    launch: LaunchRules
    judges_ahead: bool = False

    def places(self, facts: SessionFacts) -> list[tuple[Layer, Path]]:
        """Its configuration files, the lowest layer first; they need not exist."""
        return self.footprint.places(facts.locations)

    def parse(self, source: HookSource, facts: SessionFacts, below: Sequence[ParsedFile] = ()) -> ParsedFile:
        """What a file says. below: what files of lower layers say."""
        return self.config.read(source, below, facts)

    def can_refuse(self, entry: HookEntry) -> bool:
        """Whether a hook of its event can refuse something: it may be meant to guard."""
        mappings = self.events.get(entry.event, ())
        return any(m.is_unguarded or (m.event and BY_NAME[m.event].kind == "gate") for m in mappings)

    def may_fit(self, entry: HookEntry, event: Event, subject: str) -> bool:
        """Return whether the matcher fits; True if the search takes too long."""
        try:
            return self.matching.matcher_fits(entry, event, subject)
        except SlowRegex:
            return True

    def matches(self, entry: HookEntry, event: Event, subject: str, facts: SessionFacts) -> bool:
        """Return whether the entry's matcher and its `if` fit. Raises SlowRegex."""
        condition_holds = self.matching.condition_holds
        if not self.matching.matcher_fits(entry, event, subject):
            return False
        return not entry.condition or condition_holds is None or condition_holds(entry, event, facts)

    def environment(
        self, entry: HookEntry, mapping: EventMapping, event: Event, facts: SessionFacts
    ) -> dict[str, str | None]:
        """What is set for a command, or with None taken away, in the inherited environment."""
        return {**self.launch.known_variables(entry, facts), **self.extra_environment(entry, mapping, event, facts)}
