"""What a tool is, and what it is given while it runs."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Protocol, TypeVar

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import Image, ToolSpec

if TYPE_CHECKING:
    from cru.core.base.net import WholeResponse
    from cru.core.base.process.confined import PreparedCommand
    from cru.core.guard.rules.gate import Verdict
    from cru.core.guard.rules.hidden_files import HiddenFiles
    from cru.core.guard.rules.outside_runs import OutsideRuns
    from cru.core.tools.ports import ContextFiles, ContextHome, WebRules

T = TypeVar("T")

Kind = Literal["read", "write", "shell", "fetch", "memory", "message", "flow", "query", "tool"]
"""query: asks a server that is trusted to only read"""
Access = Literal["read", "write"]

OUTPUT_FOLDER = "tool_cache"
"""Below the folder of a context: outputs too long for the model."""


class ToolError(CruError):
    """A tool could not do it; the text goes to the model as the result.

    ToolError
    ├── ArgumentError   the model's arguments do not fit the schema (names the field and why)
    └── ToolTimeout     it ran too long; `partial` holds the output so far
    """


class ArgumentError(ToolError):
    pass


class ToolTimeout(ToolError):
    def __init__(self, message: str, partial: str = "") -> None:
        super().__init__(message)
        self.partial = partial


class ToolResult(Struct, frozen=True):
    """What a tool gives back.

    content: the text for the model
    is_error: the call failed
    ends_turn: no other request follows (call_user)
    brief: the text without what a person has seen already, on standard error; "" = the same
    tasks: ids of those whose ends it tells
    images: what the model is shown beside the text; the context keeps them
    """

    content: str
    is_error: bool = False
    ends_turn: bool = False
    brief: str = ""
    tasks: tuple[str, ...] = ()
    images: tuple[Image, ...] = ()


class CommandRequest(Struct, frozen=True):
    """A command for the background.

    command: as the model wrote it
    argv: what is run
    timeout: seconds; None: as the settings say
    stdin: it gets input later; else it has none
    detached: it goes on when the session has ended
    confined: it runs in a sandbox, as this says
    explain: (what it printed, None if it has not failed) -> what to tell the model of keys that it may have missed
    """

    command: str
    argv: tuple[str, ...]
    timeout: float | None = None
    stdin: bool = False
    detached: bool = False
    confined: "PreparedCommand | None" = None
    explain: Callable[[str | None], str] = lambda output: ""


class TypedInto(Struct, frozen=True):
    """A running command that takes input.

    command: what runs
    unfinished: what was typed into it and, if it is a shell, not run yet: with what is typed next it may make a command
    """

    command: str
    unfinished: str = ""


class BackgroundTasks(Protocol):
    """What tools do with work in the background; each of it raises ToolError."""

    async def start_command(self, request: CommandRequest, running: "ToolContext") -> ToolResult:
        """Start it, announced, with the environment and the folder of the call; what the model reads of that."""
        ...

    def typed_into(self, task_id: str) -> TypedInto:
        """What a text would be typed into."""
        ...

    async def send_input(self, task_id: str, text: str, typed_before: str = "") -> ToolResult:
        """Give a running command lines; `typed_before` is how `text` begins, and what of it was given before."""
        ...

    async def read_output(self, task_id: str, wait: float, lines: int | None) -> ToolResult:
        """What is new, or the last lines; waits for the task's end first, at most so many seconds."""
        ...

    async def cancel(self, task_id: str) -> ToolResult:
        """End a task and everything that it started."""
        ...


AGENT_ALIASES: Mapping[str, str] = {"general-purpose": "general", "Explore": "explore", "Plan": "plan"}
"""Claude Code's names of agents → ours: in calls, in rules, and of cards."""


class AgentRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Work for a sub-agent.

    agent: the name of a card
    tools: globs of those it may use, of what its card allows; null: all of these, []: none
    isolation: "": as its card says
    """

    agent: Annotated[str, Meta(min_length=1)]
    prompt: Annotated[str, Meta(min_length=1)]
    description: str = ""
    model: str = ""
    background: bool = False
    tools: list[str] | None = None
    isolation: Literal["", "worktree"] = ""


class Spawner(Protocol):
    """Starts work beside the conversation."""

    async def delegate(self, request: AgentRequest, call_id: str) -> ToolResult:
        """Have a sub-agent do something, and wait for it unless it is to work in the background. Raises ToolError."""
        ...

    def commands(self) -> BackgroundTasks:
        """Those of the agent that asks."""
        ...


class ToolSettings(Struct, frozen=True):
    """Sizes in characters, times in seconds."""

    RANGES: ClassVar[dict[str, tuple[float, float]]] = {
        "tool_output_cache_threshold": (0, inf),
        "tool_cache_preview_chars": (0, inf),
        "tool_cache_max_age_days": (0, 36_500),
        "bash_timeout": (0, 604_800),
    }

    tool_output_cache_threshold: int = 30_000
    tool_cache_preview_chars: int = 2_000
    tool_cache_max_age_days: int = 7
    auto_cleanup_cache: bool = True
    bash_timeout: float = 120.0


class CommandServices(Struct, kw_only=True):
    """How commands of tools run.

    confine: (argv, whether it outlives us) -> the same in a sandbox, None if nothing confines here
    take_note: what the model is told once with the result of a command that nothing confined
    outside: runs outside of that sandbox
    own_env: (root) -> the environment of programs that cru starts for itself, in which handlers and the project have no say
    outside_env: (root, whether a rule permits it) -> that of a command that runs outside of the sandbox
    """

    confine: "Callable[[tuple[str, ...], bool], Awaitable[PreparedCommand | None]] | None" = None
    take_note: Callable[[], str] | None = None
    outside: "OutsideRuns | None" = None
    own_env: Callable[[Path], Mapping[str, str]] | None = None
    outside_env: Callable[[Path, bool], Mapping[str, str]] | None = None

    def env_of_own_programs(self, root: Path, env: Mapping[str, str]) -> Mapping[str, str]:
        """The environment of programs that cru starts for itself in this folder; `env` where nothing lends one."""
        return env if self.own_env is None else self.own_env(root)


class ToolRules(Struct, kw_only=True):
    """What the gate says of things that a call leads to.

    judge_read: what the tool `read` would be told about a path
    hidden_files: (tool, path) -> what a tool that may look through this folder must not show of it, None if that is nothing
    web: makes what judges the addresses that a call of `fetch` leads to
    why_foreign: why reading this context needs a rule or a person: it is another project's; "": it is not
    why_model: why a sub-agent with this model needs a rule or a person
    """

    judge_read: "Callable[[str], Verdict] | None" = None
    hidden_files: "Callable[[str, str], HiddenFiles | None] | None" = None
    web: "Callable[[], WebRules] | None" = None
    why_foreign: Callable[[str], str] | None = None
    why_model: Callable[[str], str] | None = None


class ToolServices(Struct, kw_only=True):
    """What the composition root lends to built-in tools; None: there is nothing of the kind.

    settings: those of tools
    store: the files of the context that the call belongs to
    home: all contexts
    send: (to, content, sender) -> what the model reads; delivers a message to another context
    fetch: gets a web address, as cru.core.base.net.transport.Transport.get does
    todos_changed: tells the handlers that the todos were written
    spawner: gives what starts work beside the conversation; the first call makes it
    interrupted: by the id of each call that was cancelled, what had come of it until then
    keep_file: (path, content, tool, call id): a file is about to have that content; how it is now is kept, if that can be
    """

    settings: ToolSettings = ToolSettings()
    store: "ContextFiles | None" = None
    home: "ContextHome | None" = None
    send: Callable[[str, str, str | None], Awaitable[str]] | None = None
    fetch: "Callable[..., Awaitable[WholeResponse]] | None" = None
    todos_changed: Callable[[], Awaitable[None]] | None = None
    spawner: Callable[[], Spawner] | None = None
    rules: ToolRules = field(default_factory=ToolRules)
    commands: CommandServices = field(default_factory=CommandServices)
    interrupted: dict[str, str] = {}
    keep_file: Callable[[str, bytes, str, str], None] | None = None


def require(service: T | None, name: str) -> T:
    """A service without which a tool cannot work. Raises ToolError if nobody lends it."""
    if service is None:
        raise ToolError("this tool does not work here", f"nothing provides `{name}`")
    return service


HIDDEN_KEY = "[a key that cru uses]"


class SecretVariables(Struct):
    """Variables with keys, which what the model runs does not get.

    warn: tells the person
    reported: those that it has told of
    hidden: keys that cru itself uses, by their values: no result shows them to the model
    """

    names: frozenset[str] = frozenset()
    warn: Callable[[str], None] = lambda text: None
    reported: set[str] = field(default_factory=set)
    hidden: tuple[str, ...] = ()

    def without(self, env: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in env.items() if name not in self.names}

    def hide(self, result: ToolResult) -> ToolResult:
        """The result without cru's own keys."""
        content, brief = result.content, result.brief
        for key in self.hidden:
            if key in content or key in brief:
                content, brief = content.replace(key, HIDDEN_KEY), brief.replace(key, HIDDEN_KEY)
        return result if content is result.content else replace(result, content=content, brief=brief)

    def explain(self, command: str, output: str | None) -> str:
        """What the model is told if what was run may have missed one of them, "" if not. `output`: what it printed if it failed."""
        if output is None and not any(name in command for name in self.names):
            return ""
        from cru.core.tools.secret_variables import find_missed, tell_model, tell_person

        missed = find_missed(command, output, self.names)
        if news := [name for name in missed if name not in self.reported]:
            self.reported.update(news)
            self.warn(tell_person(news))
        return tell_model(missed) if missed else ""


class ToolContext(Struct):
    """What a running tool may use.

    root: the project root, absolute and resolved
    folder: the context's folder
    env: the environment of children, without keys
    emit: publishes output as it comes
    services: what the composition root lends to built-in tools
    secrets: the keys that are not in `env`
    """

    call_id: str
    root: Path
    folder: Path
    env: Mapping[str, str]
    emit: Callable[[str], None]
    services: ToolServices = field(default_factory=ToolServices)
    secrets: SecretVariables = field(default_factory=SecretVariables)


class Tool(Protocol):
    """A tool. `parallel` says that several calls may run at the same time."""

    spec: ToolSpec
    kind: Kind
    parallel: bool
    source: str

    def check(self, arguments: str) -> dict[str, object]:
        """Parse and validate the model's JSON text; raise ArgumentError that names the field and why."""
        ...

    def subject(self, args: Mapping[str, object]) -> str:
        """What a permission rule's glob is matched against: the command, the path, the URL."""
        ...

    def paths(self, args: Mapping[str, object]) -> Iterable[tuple[Access, str]]:
        """The paths that the call touches, as given by the model."""
        ...

    async def run(self, args: dict[str, object], running: ToolContext) -> ToolResult:
        """Raises ToolError, and StartError if a program of it cannot be started."""
        ...


class ContinuingTool(Protocol):
    """A tool whose calls may go on with what earlier ones began, in something that runs."""

    def complete(self, args: dict[str, object], services: ToolServices) -> dict[str, object]:
        """Valid arguments with what an earlier call began, so that everybody judges the whole."""
        ...

    def receiver(self, args: Mapping[str, object], services: ToolServices) -> str:
        """The command that gets what the call is about, "" if it is run itself."""
        ...


class ToolSource(Protocol):
    """Somebody who brings tools: the built-in set, an extension, an MCP server."""

    def tools(self) -> Iterable[Tool]: ...


DOCS: dict[str, str] = {
    "tool_output_cache_threshold": "characters from which a tool's output is saved to a file, and the model gets a preview",
    "tool_cache_preview_chars": "how many characters of a saved output the model is shown",
    "tool_cache_max_age_days": "how many days a saved output is kept; it is removed when it is a day older",
    "auto_cleanup_cache": "whether that happens by itself at the end of a run",
    "bash_timeout": "seconds after which a shell command is ended, unless the call says otherwise",
}


class ToolOptions(Struct, frozen=True):
    """What every built-in tool is given besides its arguments.

    settings: of this room
    reflection_limit: bytes
    """

    settings: ToolSettings = ToolSettings()
    reflection_limit: int = 10_000
