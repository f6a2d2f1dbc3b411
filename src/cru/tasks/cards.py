"""Agent cards: who a sub-agent is. A Markdown file with front matter; the text below it is the system prompt (docs/agents.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import reduce
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from cru.config.closest import closest, did_you_mean
from cru.permissions.modes import MODES, stricter
from cru.tasks import BadCard, CardOrigin
from cru.tools.builtin import TABLE
from cru.tools.protocol import AGENT_ALIASES

LIMIT_BYTES = 64 * 1024
MOST_FUEL = 1_000_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
INHERIT = "inherit"
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)(?:^|\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)

TOOL_NAMES: Mapping[str, tuple[str, ...]] = {
    "Read": ("read", "ls"), "Write": ("write",), "Edit": ("edit",), "MultiEdit": ("edit",), "NotebookEdit": ("edit",), "Glob": ("glob",),
    "Grep": ("grep",), "LS": ("ls",), "Bash": ("bash", "task_output", "task_input", "task_cancel"), "BashOutput": ("task_output",),
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
    "version", "color", "tags", "specialty", "skills", "mcpServers", "mcps", "hooks", "memory", "background", "effort", "provider",
    "max_tokens", "initialPrompt",
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

    def narrowed_to(self, tools: tuple[str, ...]) -> Callable[[str], bool]:
        """Which tools it may call, if the call that starts it names these; () = as the card says."""

        def allows(name: str) -> bool:
            return (
                (self.tools is None or _matches_any(self.tools, name))
                and (not tools or _matches_any(tools, name))
                and not _matches_any(self.denied, name)
            )

        return allows


def _matches_any(globs: tuple[str, ...], name: str) -> bool:
    from cru.files.glob import matches_identifier

    return any(matches_identifier(glob, name) for glob in globs)


class _FrontMatter(Struct):
    """The keys that count, under all their names."""

    name: str = ""
    description: str = ""
    tools: str | list[str] | None = None
    allowed_tools: str | list[str] | None = field(name="allowed-tools", default=None)
    disallowed: str | list[str] | None = field(name="disallowedTools", default=None)
    denied_tools: str | list[str] | None = None
    model: str | None = ""
    category: str = ""
    temperature: float | None = None
    mode: str = ""
    permission_mode: str = field(name="permissionMode", default="")
    max_turns: int = 0
    max_turns_claude: int = field(name="maxTurns", default=0)
    fuel: int = 0
    timeout: float = 0
    isolation: Literal["", "worktree", "none"] | None = ""


_KEYS = tuple(known.encode_name for known in msgspec.structs.fields(_FrontMatter))


def parse_card(text: str, file: Path | None, origin: CardOrigin, default_name: str) -> AgentCard:
    """Raises BadCard with the file and the key."""
    where = str(file or default_name)
    head, body = _split(text, where)
    try:
        front = msgspec.convert({k: v for k, v in head.items() if isinstance(k, str) and v is not None}, _FrontMatter)
    except msgspec.ValidationError as error:
        raise BadCard(f"{where}: {str(error)[:1].lower()}{str(error)[1:]}") from error
    problems = [
        f"{where}: unknown key `{key}`" + (f" ({hint})" if (hint := did_you_mean(key, _KEYS)) else "")
        for key in (key if isinstance(key, str) else type(key).__name__ for key in head)
        if key not in _KEYS and key not in _MEANINGLESS
    ]
    name = front.name or default_name
    name = AGENT_ALIASES.get(name, name)
    if not NAME.fullmatch(name):
        raise BadCard(f"{where}: {name!r} is no name for an agent", "letters, digits, - and _, 64 at most")
    if not front.description.strip():
        raise BadCard(f"{where}: `description` is missing", "it tells the model what the agent is for")
    card = AgentCard(
        name=name, description=_one_line(front.description), prompt=body.strip(), file=file, origin=origin,
        tools=_tools(front.tools if front.tools is not None else front.allowed_tools),
        denied=(*(_tools(front.disallowed) or ()), *(_tools(front.denied_tools) or ())),
        model=_model(front), temperature=front.temperature, mode=_mode(front, where), fuel=_limit(front, where),
        timeout=front.timeout, isolation=Isolation.WORKTREE if front.isolation == "worktree" else Isolation.NONE,
    )  # fmt: skip
    card = replace(card, problems=(*problems, *_misspelt_tools(card, where)))
    if not card.timeout >= 0 or (card.temperature is not None and not 0 <= card.temperature <= 2):
        raise BadCard(f"{where}: temperature is 0 to 2, timeout not below 0")
    return card


def _one_line(text: str) -> str:
    """Without what no text may have: `\\ud800` in YAML is half a character."""
    return " ".join(text.encode("utf-8", "replace").decode().split())


def _split(text: str, where: str) -> tuple[dict[Any, Any], str]:
    """The front matter and the text below it. Raises BadCard."""
    text = text.removeprefix("\ufeff")
    front = _FRONT.match(text)
    if front is None:
        raise BadCard(
            f"{where}: no front matter", "begin with `---`, the keys (name, description, tools, …), and `---`"
        )
    from cru.files.yaml_text import BadYaml, parse_yaml

    try:
        head = parse_yaml(front[1])
    except BadYaml as error:
        raise BadCard(f"{where}{f':{error.line + 1}' if error.line else ''}: not YAML: {error.problem}") from error
    if head is not None and not isinstance(head, dict):
        raise BadCard(f"{where}: the front matter is not a table of keys")
    return head or {}, text[front.end() :]


def _tools(value: str | list[str] | None) -> tuple[str, ...] | None:
    """Globs of our names. `*` and nothing: all; what an argument pattern (`Bash(git *)`) narrows is narrowed by rules, not by cards."""
    if value is None:
        return None
    names = [name.strip() for name in (re.split(r"[,\s]+(?![^(]*\))", value) if isinstance(value, str) else value)]
    return canonical_globs(names)


def canonical_globs(names: Iterable[str]) -> tuple[str, ...]:
    """Globs of our tools, for names of ours or of other programs."""
    return tuple(dict.fromkeys(glob for name in names if name for glob in _globs(name)))


def _misspelt_tools(card: AgentCard, where: str) -> Iterator[str]:
    """Names that are nearly those of tools: what was to be withheld would not be. Plugins may bring any other name."""
    for name in (*(card.tools or ()), *card.denied):
        near = closest(name, TABLE) if name not in TABLE and name.replace("_", "").isalnum() else None
        if near is not None:
            yield f"{where}: there is no tool `{name}` (did you mean `{near}`?)"


def _globs(name: str) -> tuple[str, ...]:
    plain = name.partition("(")[0]
    if plain not in TOOL_NAMES:
        plain = _BY_FOLDED_NAME.get(plain.casefold(), plain)
    if plain.startswith("mcp__"):
        server, _, tool = plain.removeprefix("mcp__").partition("__")
        return (f"mcp_{server}_{tool or '*'}",)
    return TOOL_NAMES.get(plain, (plain,))


def _model(front: _FrontMatter) -> str:
    model = front.category or front.model or ""
    return "" if model == INHERIT else model


def _mode(front: _FrontMatter, where: str) -> str:
    words = [word for word in (front.permission_mode, front.mode) if word]
    for word in words:
        if word not in PERMISSION_MODES:
            hint = did_you_mean(word, MODES) or f"modes are {', '.join(MODES)}"
            raise BadCard(f"{where}: unknown mode `{word}`", hint)
    return reduce(stricter, [PERMISSION_MODES[word] for word in words]) if words else ""


def _limit(front: _FrontMatter, where: str) -> int:
    fuel = front.fuel or front.max_turns or front.max_turns_claude
    if not 0 <= fuel <= MOST_FUEL:
        raise BadCard(f"{where}: a limit is 0 to {MOST_FUEL}")
    return fuel
