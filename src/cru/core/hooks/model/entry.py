"""One hook, whatever configuration it was written in: every dialect's file is flattened into these (docs/hooks.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

Kind = Literal["command", "lua", "python", "http", "mcp_tool", "prompt", "agent"]
Layer = Literal["system", "user", "project"]
LAYERS: tuple[Layer, ...] = ("system", "user", "project")
"""From the one that is trusted most."""
RUNNING: tuple[str, ...] = ("command", "lua", "python")
"""Kinds that can run; the others load, and `problem` says that they are not available yet."""


OWNER_PREFIX = "hook "


class HookSource(Struct, frozen=True):
    """A configuration file as it was read.

    own: it is cru's own file, not another program's
    """

    dialect: str
    layer: Layer
    path: Path
    text: str
    own: bool = False


class HookEntry(Struct, frozen=True, kw_only=True):
    """One handler of one event.

    event: in the dialect's own spelling (`PreToolUse`)
    line: 1-based, where it stands in its file
    command: shell source; for lua and python their code or file
    args: the exec form, which no shell reads
    shell: bash or powershell, "" = as the system has it
    matcher: as written
    condition: Claude's `if`, as written
    timeout: seconds
    env: variables beside those that it inherits
    asynchronous: it runs beside the session and decides nothing
    rewake: Claude's `asyncRewake`
    once: it runs once a session
    sequential: it runs after the one before it, and sees what that changed
    include_sub_agents: whether it hears sub-agents; None: as handlers of its event do
    on_error: what becomes of a gate if it fails, "" = nothing
    priority: lower ones run first
    definition: the entry as written, canonical JSON, which is what trust is given to
    problem: why it never runs, "" = it does
    cwd: where it runs, from the session's own folder
    equality_key: what its system tells equal entries by, "" = by all that they do
    off_by_user: a file of the user's, not its own, is why it is not enabled
    """

    id: str
    dialect: str
    event: str
    source: HookSource
    line: int
    kind: Kind = "command"
    name: str = ""
    command: str = ""
    args: tuple[str, ...] | None = None
    shell: str = ""
    matcher: str = ""
    condition: str = ""
    timeout: float = 30.0
    env: dict[str, str] = {}
    enabled: bool = True
    asynchronous: bool = False
    rewake: bool = False
    once: bool = False
    sequential: bool = False
    include_sub_agents: bool | None = None
    on_error: Literal["", "allow", "deny", "ask"] = ""
    priority: int = 100
    definition: str = ""
    problem: str = ""
    cwd: str = ""
    equality_key: str = ""
    off_by_user: bool = False

    @property
    def of_project(self) -> bool:
        """Whether the project brought it: it awaits trust, and gets no keys."""
        return self.source.layer == "project"

    @property
    def owner(self) -> str:
        """Who registers its handlers, for messages and the journal."""
        return f"{OWNER_PREFIX}{self.id}"

    @property
    def label(self) -> str:
        """What people call it: its name, else its command."""
        return self.name or self.command or " ".join(self.args or ())

    @property
    def where(self) -> str:
        return f"{self.source.path}:{self.line}"

    @property
    def identity(self) -> tuple[object, ...]:
        """Two entries that would do the same thing run once a firing; the first one is kept. What only looks alike, since it may decide
        less (beside the session, once, another way to fail), is another thing."""
        decides = (self.asynchronous, self.once, self.on_error)
        if self.equality_key:
            return (self.equality_key,)
        env = tuple(sorted(self.env.items()))
        return (self.kind, self.command, self.args, self.shell, self.cwd, self.condition, env, decides)


def hook_id(owner: str) -> str:
    """The id of the entry that registered a handler; "" if it is none's."""
    return owner.removeprefix(OWNER_PREFIX) if owner.startswith(OWNER_PREFIX) else ""


def is_lua_file(text: str) -> bool:
    """Whether `lua` names a file; else it is the code itself."""
    return text.endswith(".lua") and not any(char.isspace() for char in text)


def number_entries(entries: Sequence[HookEntry]) -> list[HookEntry]:
    """The same entries; those that share an id get a number each, so that no name means two things."""
    total = Counter(entry.id for entry in entries)
    counts: Counter[str] = Counter()
    numbered = []
    for entry in entries:
        counts[entry.id] += 1
        numbered.append(replace(entry, id=f"{entry.id}-{counts[entry.id]}") if total[entry.id] > 1 else entry)
    return numbered


LONGEST = 16 << 10
"""Bytes of what an entry runs, with its arguments and the values of `env`: all of it is read before it runs, and shown to a person."""


def too_long(entry: HookEntry) -> str:
    """Why it says more than is read; "" if it does not."""
    size = sum(
        len(text.encode("utf-8", "surrogatepass")) for text in (entry.command, *(entry.args or ()), *entry.env.values())
    )
    if size <= LONGEST:
        return ""
    return f"the command is too long: {size} bytes, and at most {LONGEST} are read: put it into a script"


class ProblemKind(Enum):
    """What a problem in a configuration means for its hooks."""

    ODDITY = "odd"
    """Everything counts all the same."""
    IGNORED = "ignored"
    """A setting that only widens has no effect here: told, also where the file has no hooks."""
    UNHELD = "unheld"
    """A setting that only tightens has no effect here."""
    UNKNOWN_EVENT = "unknown event"
    """Hooks of an event that nobody knows; another program may know it."""
    PART = "part"
    """Some of what the file says about hooks is left out."""
    WHOLE_FILE = "whole file"


class HookFileProblem(Struct, frozen=True):
    """Something wrong in a configuration.

    line: 1-based, 0: about the whole file
    hint: the next step
    key: of an entry, which the problem is about
    """

    path: Path
    line: int
    text: str
    hint: str = ""
    kind: ProblemKind = ProblemKind.ODDITY
    key: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" + (f" ({self.hint})" if self.hint else "")

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}" if self.line else str(self.path)

    @property
    def leaves_out(self) -> bool:
        """Whether the file, or a part of it, is left out for certain."""
        return self.kind in (ProblemKind.PART, ProblemKind.WHOLE_FILE)

    @property
    def loses_hooks(self) -> bool:
        """Whether hooks, or what else guards, may be among what does not count."""
        return self.kind not in (ProblemKind.ODDITY, ProblemKind.IGNORED)
