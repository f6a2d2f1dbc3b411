"""The built-in tools: one table of what they are called, take and may touch; their code is imported on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from os.path import expanduser

from msgspec import Struct

from cru.core.base.values.messages import ToolSpec
from cru.core.models.providers import file_of_model
from cru.core.tools import arguments as a
from cru.core.tools.arguments import SPECS
from cru.core.tools.protocol import (
    AGENT_ALIASES,
    Access,
    AgentRequest,
    Kind,
    Tool,
    ToolContext,
    ToolOptions,
    ToolResult,
    ToolServices,
    ToolSettings,
    ToolSource,
)


class ToolRow(Struct, frozen=True):
    """One built-in tool.

    arguments: their struct
    call: module.function in this room
    kind: what modes and rules call it
    subject: the argument that permission rules match
    access: what is done to the path in that argument
    default: the subject when the argument is left out
    parallel: several calls may run at the same time
    hidden: it is not offered to the model
    why_ask: why a call in which the argument of that name is true needs a rule or a person, whatever the mode; the last one is told
    receiver: the argument that names the task which gets what the call is about
    aliases: other names of what the subject names; calls have the one that rules know
    keeps_files: it hands what it replaces to `ToolServices.keep_file` itself
    of_context: the subject is a context, which may be another project's
    model: the argument that names a model
    """

    arguments: type[Struct]
    call: str
    kind: Kind
    subject: str = ""
    access: Access | None = None
    default: str = ""
    parallel: bool = False
    hidden: bool = False
    why_ask: Mapping[str, str] = {}
    receiver: str = ""
    aliases: Mapping[str, str] = {}
    keeps_files: bool = False
    of_context: bool = False
    model: str = ""


TABLE: dict[str, ToolRow] = {
    "read": ToolRow(a.Read, "files.read", "read", "file_path", "read", parallel=True),
    "write": ToolRow(a.Write, "files.write", "write", "file_path", "write", keeps_files=True),
    "edit": ToolRow(a.Edit, "files.edit", "write", "file_path", "write", keeps_files=True),
    "ls": ToolRow(a.Ls, "search.ls", "read", "path", "read", default=".", parallel=True),
    "glob": ToolRow(a.Glob, "search.glob", "read", "path", "read", default=".", parallel=True),
    "grep": ToolRow(a.Grep, "grep.grep", "read", "path", "read", default=".", parallel=True),
    "bash": ToolRow(
        a.Bash,
        "shell.bash",
        "shell",
        "command",
        why_ask={
            "detached": "the command would go on when cru has ended (`detached`)",
            "outside_sandbox": "the command would run outside of the sandbox, which only a rule `outside_sandbox:…` or a person allows",
        },
        receiver="input_to",
    ),
    "task_output": ToolRow(a.TaskOutput, "conversation.task_output", "flow", "id", parallel=True),
    "task_cancel": ToolRow(a.TaskCancel, "conversation.task_cancel", "flow", "id"),
    "fetch": ToolRow(a.Fetch, "web.fetch", "fetch", "url", parallel=True),
    "update_todos": ToolRow(a.Content, "conversation.update_todos", "memory"),
    "update_goals": ToolRow(a.Content, "conversation.update_goals", "memory"),
    "update_reflection": ToolRow(a.Content, "conversation.update_reflection", "memory"),
    "read_context": ToolRow(
        a.ReadContext, "conversation.read_context", "read", "context_name", parallel=True, of_context=True
    ),
    "send_message": ToolRow(a.SendMessage, "conversation.send_message", "message", "to"),
    "task": ToolRow(
        AgentRequest, "conversation.task", "flow", "agent", parallel=True, aliases=AGENT_ALIASES, model="model"
    ),
    "call_user": ToolRow(a.CallUser, "conversation.call_user", "flow"),
    "recurse": ToolRow(a.Recurse, "conversation.recurse", "flow", hidden=True),
}

OF_OTHERS = ("update_reflection", "read_context", "send_message")
"""Those that have to do with other conversations."""


class BuiltInTool:
    """One row of the table as a Tool."""

    source = "built-in"

    def __init__(self, name: str, row: ToolRow, options: ToolOptions) -> None:
        self.spec: ToolSpec = SPECS[name]
        self.kind: Kind = row.kind
        self.parallel: bool = row.parallel
        self.hidden = row.hidden
        self.keeps_files = row.keeps_files
        self.chooses_model = bool(row.model)
        self._row = row
        self._options = options

    def check(self, arguments: str | Mapping[str, object]) -> dict[str, object]:
        args = a.check_arguments(self._row.arguments, arguments)
        subject = args.get(self._row.subject)
        if subject in self._row.aliases:
            args[self._row.subject] = self._row.aliases[str(subject)]
        return args

    def subject(self, args: Mapping[str, object]) -> str:
        value = str(args.get(self._row.subject) or self._row.default)
        return _expand_home(value) if self._row.access else value

    def paths(self, args: Mapping[str, object]) -> Iterable[tuple[Access, str]]:
        if model := str(args.get(self._row.model) or ""):
            return [("read", file)] if (file := file_of_model(model)) else []
        return [(self._row.access, self.subject(args))] if self._row.access else []

    def preview(self, args: Mapping[str, object]) -> str:
        """What a question shows of the call, "" for most tools; `args` as `check` gave them."""
        from cru.core.tools.preview import preview_call

        return preview_call(self.spec.name, args)

    def why_ask(self, args: Mapping[str, object], services: ToolServices | None = None) -> str:
        """Why this call needs a rule or a person, whatever the mode; "" for most."""
        if self._row.of_context and services is not None and services.rules.why_foreign is not None:
            return services.rules.why_foreign(self.subject(args))
        if (
            (model := str(args.get(self._row.model) or ""))
            and services is not None
            and services.rules.why_model is not None
        ):
            return services.rules.why_model(model)
        if args.get(self._row.receiver) and _may_edit(self.subject(args)):
            return "it has control characters, with which a program that has a terminal may read something else than what is shown"
        if self.kind == "fetch":
            from cru.core.base.net.web_url import why_not_public

            return why_not_public(self.subject(args))
        reasons = [reason for name, reason in self._row.why_ask.items() if args.get(name)]
        return reasons[-1] if reasons else ""

    def complete(self, args: dict[str, object], services: ToolServices) -> dict[str, object]:
        if not args.get(self._row.receiver):
            return args
        from cru.core.tools.shell import complete_input

        return complete_input(args, services)

    def receiver(self, args: Mapping[str, object], services: ToolServices) -> str:
        if not args.get(self._row.receiver):
            return ""
        from cru.core.tools.shell import receiving_command

        return receiving_command(args, services)

    async def run(self, args: dict[str, object], running: ToolContext) -> ToolResult:
        module, _, name = self._row.call.partition(".")
        loaded = sys.modules.get(f"cru.core.tools.{module}")
        if loaded is None:
            from importlib import import_module  # at the first call: most runs use few of the tools

            loaded = import_module(f"cru.core.tools.{module}")
        arguments = a.parse_arguments(self._row.arguments, args)
        result: ToolResult = await getattr(loaded, name)(arguments, running, self._options)
        return result


class BuiltInTools:
    """The source of the built-in tools. `reflection` False leaves update_reflection out; `reflection_limit` is in bytes; `is_private`:
    there are no other contexts, and nothing is kept for them."""

    def __init__(
        self,
        settings: ToolSettings | None = None,
        *,
        reflection: bool = True,
        reflection_limit: int = 10_000,
        is_private: bool = False,
    ) -> None:
        self._options = ToolOptions(settings or ToolSettings(), reflection_limit)
        self._left_out: tuple[str, ...] = () if reflection else ("update_reflection",)
        if is_private:
            self._left_out = OF_OTHERS

    def tools(self) -> Iterable[BuiltInTool]:
        return [BuiltInTool(name, row, self._options) for name, row in TABLE.items() if name not in self._left_out]


def _may_edit(text: str) -> bool:
    """Whether what is typed has characters that go back in a line, take it away or end it; Ctrl-D alone only closes the input."""
    return text != "\x04" and any((char < " " and char not in "\t\n") or char == "\x7f" for char in text)


def _expand_home(path: str) -> str:
    """`~` means the same for the permission question and for the tool that runs after it."""
    if not path.startswith("~"):
        return path
    return expanduser(path)


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

    def update_source(self, source: str, tools: Iterable[Tool]) -> list[str]:
        """Make these the tools of a source: those that were there keep their places, new ones come last. What is left out, and why."""
        fresh = {tool.spec.name: tool for tool in tools}
        problems = [
            f"the tool {name} of {source} is left out: {taken.source} has one of that name"
            for name in fresh
            if (taken := self._tools.get(name)) is not None and taken.source != source
        ]
        for name in [name for name, tool in self._tools.items() if tool.source == source and name not in fresh]:
            del self._tools[name]
        for name, tool in fresh.items():
            if name not in self._tools or self._tools[name].source == source:
                self._tools[name] = tool
        self._offer()
        return problems

    def drop_source(self, source: str) -> int:
        """Take away everything of a source; how many tools."""
        gone = [name for name, tool in self._tools.items() if tool.source == source]
        for name in gone:
            del self._tools[name]
            if name in self._under:
                self._tools[name] = self._under.pop(name)
        self._offer()
        return len(gone)

    def refresh(self) -> None:
        """Look again which tools are hidden."""
        self._offer()

    def all(self) -> tuple[Tool, ...]:
        """Hidden ones, too."""
        return tuple(self._tools.values())

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
        from cru.core.base.config.closest import closest

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


class NarrowedTools(ToolRegistry):
    """Those tools of another registry that `allows` lets through by name, as that registry has them now."""

    def __init__(self, outer: ToolRegistry, allows: Callable[[str], bool]) -> None:
        super().__init__(())
        self._outer = outer
        self._allows = allows

    def add(self, tool: Tool) -> str:
        return self._outer.add(tool)

    def update_source(self, source: str, tools: Iterable[Tool]) -> list[str]:
        return self._outer.update_source(source, tools)

    def drop_source(self, source: str) -> int:
        return self._outer.drop_source(source)

    def find(self, name: str) -> Tool | None:
        return self._outer.find(name) if self._allows(name) else None

    def closest(self, name: str) -> str | None:
        from cru.core.base.config.closest import closest

        return closest(name, self.names())

    def names(self) -> tuple[str, ...]:
        return tuple([name for name in self._outer.names() if self._allows(name)])

    def specs(self, names: Iterable[str] | None = None) -> tuple[ToolSpec, ...]:
        chosen = self.names() if names is None else [name for name in names if self._allows(name)]
        return self._outer.specs(chosen)


def _is_hidden(tool: Tool) -> bool:
    return bool(getattr(tool, "hidden", False))
