"""Agent cards: who a sub-agent is. A Markdown file with front matter; the text below it is the system prompt (docs/agents.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from cru.core.agents import BadCard, CardOrigin
from cru.core.base.config.check import in_plain_words
from cru.core.base.config.closest import closest, did_you_mean
from cru.core.base.files.front_matter import BadFrontMatter, FrontMatter, read_front_matter
from cru.core.base.files.glob import matches_identifier
from cru.core.guard.rules.modes import MODES, stricter
from cru.core.tools.builtin import TABLE
from cru.core.tools.protocol import AGENT_ALIASES

LIMIT_BYTES = 64 * 1024
MOST_FUEL = 1_000_000
NAME = re.compile(r"[^\W_](?:[\w .-]{0,62}[\w.-])?")
INHERIT = "inherit"

TOOL_NAMES: Mapping[str, tuple[str, ...]] = {
    "Read": ("read", "ls"), "Write": ("write",), "Edit": ("edit",), "MultiEdit": ("edit",), "NotebookEdit": ("edit",), "Glob": ("glob",),
    "Grep": ("grep",), "LS": ("ls",), "Bash": ("bash", "task_output", "task_cancel"), "BashOutput": ("task_output",),
    "KillShell": ("task_cancel",), "KillBash": ("task_cancel",), "WebFetch": ("fetch",), "TodoWrite": ("update_todos",),
    "Task": ("task",), "Agent": ("task",),
    "read_file": ("read",), "write_file": ("write",), "edit_file": ("edit",),
}  # fmt: skip
"""What Claude Code and Crucible call our tools in their cards."""
_BY_FOLDED_NAME = {name.casefold(): name for name in (*TOOL_NAMES, *TABLE)}
PERMISSION_MODES: Mapping[str, str] = {
    "default": "ask", "normal": "ask", "acceptEdits": "auto", "plan": "plan", "bypassPermissions": "trust", "dontAsk": "trust",
    "auto": "auto", "ask": "ask", "trust": "trust",
}  # fmt: skip
_MEANINGLESS = (
    "version", "color", "tags", "specialty", "skills", "mcpServers", "mcps", "memory", "background", "effort", "provider",
    "max_tokens", "initialPrompt", "autoCompactWindow", "omitClaudeMd", "observer", "observerMessage", "observeSubagents",
    "observeToolResults", "experimental", "metadata", "author", "license",
)  # fmt: skip
"""Keys of other programs' cards that have no meaning here."""


class Isolation(StrEnum):
    NONE = ""
    WORKTREE = "worktree"


class AgentCard(Struct, frozen=True, kw_only=True):
    """One kind of sub-agent.

    prompt: its system prompt
    tools: globs of those that it may call, None: all of its parent's; `denied` are taken from them
    model: or a category, "": that of its parent
    temperature: None: as the model's
    mode: it works in the stricter of this and its parent's, "": its parent's
    fuel, timeout: its limits (batches of calls, seconds), 0: as the settings say
    file: None for one that comes with cru
    problems: what of the card has no effect
    misspelt: names that are nearly those of tools, a sentence each
    """

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    denied: tuple[str, ...] = ()
    model: str = ""
    temperature: float | None = None
    mode: str = ""
    fuel: int = 0
    timeout: float = 0
    isolation: Isolation = Isolation.NONE
    file: Path | None = None
    origin: CardOrigin = CardOrigin.USER
    problems: tuple[str, ...] = ()
    misspelt: tuple[str, ...] = ()

    def narrowed_to(self, tools: tuple[str, ...] | None) -> Callable[[str], bool]:
        """Which tools it may call, if the call that starts it names these; None: as the card says."""

        def allows(name: str) -> bool:
            return (
                (self.tools is None or _matches_any(self.tools, name))
                and (tools is None or _matches_any(tools, name))
                and not _matches_any(self.denied, name)
            )

        return allows


def _matches_any(globs: tuple[str, ...], name: str) -> bool:
    return any(matches_identifier(glob, name) for glob in globs)


class _Keys(Struct):
    """The keys that count, under all their names."""

    name: str = ""
    description: str = ""
    tools: str | list[str] | None = None
    allowed_tools: str | list[str] | None = field(name="allowed-tools", default=None)
    disallowed: str | list[str] | None = field(name="disallowedTools", default=None)
    denied_tools: str | list[str] | None = None
    model: str = ""
    category: str = ""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    mode: str = ""
    permission_mode: str = field(name="permissionMode", default="")
    max_turns: Annotated[int, Meta(ge=0, le=MOST_FUEL)] = 0
    max_turns_claude: Annotated[int, Meta(ge=0, le=MOST_FUEL)] = field(name="maxTurns", default=0)
    fuel: Annotated[int, Meta(ge=0, le=MOST_FUEL)] = 0
    timeout: Annotated[float, Meta(ge=0)] = 0
    isolation: Literal["", "worktree", "none"] = ""


_FIELDS = {known.encode_name: known for known in msgspec.structs.fields(_Keys)}
_LISTS = ("tools", "allowed-tools")
"""Without a value they name no tool, as in Claude Code."""


class _CardReader:
    """Reads one file; what is wrong with it is gathered, so that all of it can be told at once."""

    def __init__(self, where: str, front: FrontMatter) -> None:
        self._where = where
        self._front = front
        self.faults: list[str] = []
        self.problems: list[str] = []

    def fault(self, key: str, text: str) -> None:
        self.faults.append(f"{self._place(key)}: {text}")

    def _place(self, key: str) -> str:
        line = self._front.line(key)
        return f"{self._where}:{line}" if line else self._where

    def keys(self) -> _Keys:
        """Those that can be understood."""
        values: dict[str, Any] = {}
        for key, value in self._front.keys.items():
            known = _FIELDS.get(key) if isinstance(key, str) else None
            if known is None:
                self._note_unknown(key)
            elif value is None:
                if key in _LISTS:
                    values[known.name] = []
            else:
                try:
                    values[known.name] = msgspec.convert(value, known.type, strict=False)
                except msgspec.ValidationError as error:
                    self.fault(key, f"{key}: {_describe_value(error, key, value)}")
        return _Keys(**values)

    def _note_unknown(self, key: object) -> None:
        name = key if isinstance(key, str) else type(key).__name__
        if name != "hooks" and name not in _MEANINGLESS:
            hint = did_you_mean(name, _FIELDS)
            self.problems.append(f"{self._place(name)}: unknown key `{name}`" + (f" ({hint})" if hint else ""))

    def note_hooks(self, judges_calls: Callable[[str], bool]) -> None:
        """Hooks of a card do not run here; without those that guard calls the agent could do what its author has ruled out."""
        hooks = self._front.keys.get("hooks")
        guards = [str(event) for event in hooks if judges_calls(str(event))] if isinstance(hooks, dict) else []
        if guards:
            text = f"hooks of a card do not run here, so its {' and '.join(guards)} would guard nothing"
            self.fault("hooks", f"{text} (hooks of settings hear sub-agents, too: put them there)")
        elif hooks:
            self.problems.append(f"{self._place('hooks')}: hooks of a card do not run here (those of settings do)")

    def name(self, written: str, default: str) -> str:
        name = written.strip() or default
        name = AGENT_ALIASES.get(name, name)
        if not NAME.fullmatch(name):
            self.fault(
                "name", f"{name!r} is no name for an agent (letters, digits, spaces, `_`, `-` and `.`, 64 at most)"
            )
        return name

    def mode(self, keys: _Keys) -> str:
        """The strictest of those that are named."""
        modes = []
        for key, word in (("permissionMode", keys.permission_mode), ("mode", keys.mode)):
            if word and word not in PERMISSION_MODES:
                hint = did_you_mean(word, MODES) or f"modes are {', '.join(MODES)}"
                self.fault(key, f"unknown mode `{word}` ({hint})")
            elif word:
                modes.append(PERMISSION_MODES[word])
        return reduce(stricter, modes) if modes else ""

    def finish(self, card: AgentCard) -> AgentCard:
        """The card with what of it has no effect. Raises BadCard with all that is wrong."""
        misspelt = tuple(self._misspelt_tools(card))
        if card.tools and all(_misspelt(name) for name in card.tools):
            self.faults += misspelt
            self.fault("tools", "`tools` names no tool that there is, and so the agent would have none")
        if self.faults:
            raise BadCard(card.name, tuple(dict.fromkeys((*self.faults, *self.problems, *misspelt))))
        return replace(card, problems=tuple(self.problems), misspelt=misspelt)

    def _misspelt_tools(self, card: AgentCard) -> Iterator[str]:
        """Names that are nearly those of tools: what was to be withheld would not be. Plugins may bring any other name."""
        for key, names in (("tools", card.tools or ()), ("denied_tools", card.denied)):
            for name in names:
                if near := _misspelt(name):
                    yield f"{self._place(key)}: there is no tool `{name}` (did you mean `{near}`?)"


def _misspelt(name: str) -> str:
    """The tool of cru's that was probably meant, "": it is one, or may be somebody else's."""
    return "" if name in TABLE or not is_plain(name) else closest(name, TABLE) or ""


def is_plain(name: str) -> bool:
    """Whether a glob is the name of one tool."""
    return name.replace("_", "").isalnum()


def _describe_value(error: msgspec.ValidationError, key: str, value: object) -> str:
    if key == "isolation" and isinstance(value, str):
        return f"`{value}` is none: it may be worktree or none"
    return in_plain_words(str(error))


def parse_card(
    text: str, file: Path | None, origin: CardOrigin, default_name: str, judges_calls: Callable[[str], bool] = bool
) -> AgentCard:
    """Raises BadCard with all that is wrong.

    judges_calls: as of CardPlaces
    """
    where = str(file or default_name)
    try:
        front = read_front_matter(text)
    except BadFrontMatter as error:
        fault = error.fault
        place = f"{where}:{fault.line}" if fault.line else where
        raise BadCard(default_name, (f"{place}: {fault.text}" + (f" ({fault.hint})" if fault.hint else ""),)) from error
    reader = _CardReader(where, front)
    keys = reader.keys()
    reader.note_hooks(judges_calls)
    name = reader.name(keys.name, default_name)
    if not keys.description.strip() and not any(": description: " in fault for fault in reader.faults):
        reader.fault("description", "`description` is missing: it tells the model what the agent is for")
    card = AgentCard(
        name=name, description=_one_line(keys.description), prompt=front.body.strip(), file=file, origin=origin,
        tools=_tools(keys.tools if keys.tools is not None else keys.allowed_tools),
        denied=(*(_tools(keys.disallowed) or ()), *(_tools(keys.denied_tools) or ())),
        model=_model(keys), temperature=keys.temperature, mode=reader.mode(keys),
        fuel=keys.fuel or keys.max_turns or keys.max_turns_claude, timeout=keys.timeout,
        isolation=Isolation.WORKTREE if keys.isolation == "worktree" else Isolation.NONE,
    )  # fmt: skip
    return reader.finish(card)


def _one_line(text: str) -> str:
    """Without what no text may have: `\\ud800` in YAML is half a character."""
    return " ".join(text.encode("utf-8", "replace").decode().split())


def _tools(value: str | list[str] | None) -> tuple[str, ...] | None:
    """Globs of our names. `*` and nothing: all; what an argument pattern (`Bash(git *)`) narrows is narrowed by rules, not by cards."""
    if value is None:
        return None
    names = [name.strip() for name in (re.split(r"[,\s]+(?![^(]*\))", value) if isinstance(value, str) else value)]
    return canonical_globs(names)


def canonical_globs(names: Iterable[str]) -> tuple[str, ...]:
    """Globs of our tools, for names of ours or of other programs."""
    return tuple(dict.fromkeys(glob for name in names if name for glob in _globs(name)))


def _globs(name: str) -> tuple[str, ...]:
    plain = name.partition("(")[0]
    if plain not in TOOL_NAMES:
        plain = _BY_FOLDED_NAME.get(plain.casefold(), plain)
    if plain.startswith("mcp__"):
        server, _, tool = plain.removeprefix("mcp__").partition("__")
        return (f"mcp_{server}_{tool or '*'}",)
    return TOOL_NAMES.get(plain, (plain,))


def _model(keys: _Keys) -> str:
    model = (keys.category or keys.model).strip()
    return "" if model.casefold() == INHERIT else model
