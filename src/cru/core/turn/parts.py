"""What an agent works with. The composition root makes it; no function of a turn ever sees the session or a face."""

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import Struct, field

from cru.core.base.files.search_path import exists_above
from cru.core.base.values.messages import Span
from cru.core.conversations.store import ContextStore
from cru.core.events.bus import Bus
from cru.core.guard.rules.gate import Asker, Gate
from cru.core.models import ModelPrice
from cru.core.models.protocol import Model
from cru.core.tools.builtin import ToolRegistry as Tools
from cru.core.tools.protocol import SecretVariables, Tool, ToolServices
from cru.core.turn.commands import Commands
from cru.core.turn.history import History
from cru.core.turn.recorder import Recorder
from cru.core.turn.spending import BudgetSettings, UsageLedger
from cru.core.turn.system_prompt import Guides, GuideSettings

if TYPE_CHECKING:
    from cru.core.base.net.transport import Transport
    from cru.core.base.process.confined import ConfineProject
    from cru.core.revisions.keeper import ChangeKeeper
    from cru.core.revisions.records import ChangedBy, ChangeOrigin
    from cru.core.turn.ports import BackgroundWork, Dialogs, SettingsView, Waker
    from cru.core.turn.turn import TaskReport

ModelChooser = Callable[[str], Awaitable["ResolvedModel"]]
SectionSource = Callable[[], tuple[Span, ...]]
"""Gives the sections of the system prompt."""


class ResolvedModel(Struct, frozen=True):
    """A model ready to be asked.

    parameters: its own
    window: tokens, 0 = unknown
    base_url: its address for the trace
    price: what settings say that it costs
    category: what was asked for, if that was a category
    fallbacks: names of the models of the category behind this one
    """

    model: Model
    parameters: dict[str, Any]
    window: int = 0
    base_url: str = ""
    price: ModelPrice | None = None
    category: str = ""
    fallbacks: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """provider:model"""
        return f"{self.model.provider}:{self.model.name}"


class FileChanges(Struct):
    """What the session changes in files, its sub-agents included.

    make: makes what keeps them, when something is first changed; None: nothing is kept
    context: the name of the main agent's context
    prompt: the log entry of the prompt that is being answered
    known: what `make` has made
    """

    make: "Callable[[], ChangeKeeper] | None" = None
    context: str = ""
    prompt: str = ""
    known: "ChangeKeeper | None" = None

    def keeper(self) -> "ChangeKeeper | None":
        if self.known is None and self.make is not None:
            self.known = self.make()
        return self.known

    def needs_record(self, tool: Tool, root: Path) -> bool:
        """Whether more has to be done around a call of this tool than it does itself."""
        if self.make is None or tool.kind not in ("write", "shell"):
            return False
        if tool.kind == "shell":
            return exists_above(str(root), ".git")
        return not getattr(tool, "keeps_files", False) or (self.known is not None and self.known.is_looking)

    def lend(self, parts: "Parts") -> None:
        """What tools of this agent are about to replace is kept."""

        def keep(path: str, data: bytes, tool: str, call_id: str) -> None:
            from cru.core.revisions.records import ChangedBy

            if keeper := self.keeper():
                keeper.keep(path, data, self.origin(parts, ChangedBy.TOOL, tool, call_id))

        if self.make is not None:
            parts.tool_services.keep_file = keep

    def origin(self, parts: "Parts", by: "ChangedBy", tool: str = "", call_id: str = "") -> "ChangeOrigin":
        """Who changes a file in this moment."""
        from cru.core.revisions.records import ChangeOrigin

        agent = parts.bus.origin.agent_id if parts.bus.origin.depth else ""
        return ChangeOrigin(by, parts.bus.origin.session_id, self.context, self.prompt, tool, call_id, agent)


class Lifecycle(Struct):
    """What rooms above do around a session.

    opening: before `session:started` (plugins are loaded)
    closing: after `session:ended` (plugins are unloaded)
    idle: before something is taken from the queue
    reloading: the same, and before a call beside the queue: what was changed of plugins and hooks is loaded anew
    before_round: before each request, with the size of the model's window in tokens (0: unknown): tools that have come join the others
    missing: a tool of that name is wanted and not there: it may be on its way
    """

    opening: "list[Callable[[Parts], Awaitable[None]]]" = field(default_factory=list)
    closing: list[Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=list)
    idle: list[Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=list)
    reloading: list[Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=list)
    before_round: list[Callable[[int], Awaitable[None]]] = field(default_factory=list)
    missing: list[Callable[[str], Awaitable[None]]] = field(default_factory=list)


class CardMark(Struct, frozen=True):
    """The agent card that narrows a main agent, as the log knows it. digest: of all that the card says, in hex."""

    name: str
    digest: str


class ModelAccess(Struct, kw_only=True):
    """The models that an agent may ask.

    choose: a model by name ("" = the configured one), made when first needed
    ledger: what requests have cost, here and in agents below
    configured_name: gives the id of the model that settings name, "" if they do not tell it
    transport: the one HTTP transport, made when first needed
    auth: give headers for requests to a model of a provider
    offer_tools: whether tools go into requests; None: as the model's adapter likes
    """

    choose: ModelChooser
    ledger: UsageLedger = field(default_factory=UsageLedger)
    configured_name: Callable[[], str] = str
    transport: "Callable[[], Transport] | None" = None
    auth: list[Callable[[str, str], Awaitable[Mapping[str, str]]]] = field(default_factory=list)
    offer_tools: bool | None = None


class PromptParts(Struct, kw_only=True):
    """What goes into prompts, and what the log says of them.

    sections: gives the sections of the system prompt; called once a leg
    compaction: what a compaction asks the model
    guides: finds those of folders in which something is read; None: nobody looks
    skills: names and describes skills for a system prompt; None: there are none
    username: who prompts
    parent: the context of the run that started this one, "" if none did
    card: of the main agent, None: it has none
    """

    sections: SectionSource
    compaction: str = ""
    guides: Guides | None = None
    skills: Callable[[], Span] | None = None
    username: str = "user"
    parent: str = ""
    card: CardMark | None = None


class Workplace(Struct, kw_only=True):
    """Where an agent works.

    root: the project root
    env: the environment of what the person runs, and of extensions
    secrets: keys in it, which what the model runs does not get
    """

    root: Path
    env: Mapping[str, str]
    secrets: SecretVariables = field(default_factory=SecretVariables)


class FaceServices(Struct, kw_only=True):
    """The person and the face before them.

    asker: asks the person for leave
    dialogs: the face that shows dialogs; None: there is none
    divert_prints: keeps what code of plugins prints out of the face's output; it gets who tells the person at the first print
    is_chat: a person sits at a chat
    is_verbose: the person wants to see everything
    mode: the mode that the person has set in this session, "" if none has
    """

    asker: Asker
    dialogs: "Dialogs | None" = None
    divert_prints: Callable[[Callable[[], None]], None] | None = None
    is_chat: bool = False
    is_verbose: bool = False
    mode: str = ""


class TaskServices(Struct, kw_only=True):
    """Work beside the conversation.

    background: what runs, once something does
    recover: what became of tasks whose run was killed, once; None: nothing
    wakers: who else may start a turn of an idle chat
    fuel_limit: where a person changes a sub-agent's fuel; "": it is the main agent
    """

    background: "BackgroundWork | None" = None
    recover: "Callable[[], Awaitable[TaskReport | None]] | None" = None
    wakers: "list[Waker]" = field(default_factory=list)
    fuel_limit: str = ""


class SandboxServices(Struct, kw_only=True):
    """What confines commands.

    lend: confines the commands of an agent, if that is wanted, and keeps cru's own programs apart from them
    open: finds out whether anything can confine
    state: what confines commands: bubblewrap, sandbox-exec, none (nothing can) or off; "": not known yet
    confine_project: confines programs that the project brings
    """

    lend: "Callable[[Parts], None] | None" = None
    open: "Callable[[Parts], Coroutine[object, object, None]] | None" = None
    state: str = "off"
    confine_project: "ConfineProject | None" = None


class SessionServices(Struct, kw_only=True):
    """What the rooms above the turn lend one another in a session; None: there is nothing of the kind.

    lifecycle: what happens around the session
    commands: what `/name` may be
    changes: of files, as far as they can be taken back
    settings: all settings
    features: what each feature lends its other parts, by its name
    script_sessions: cru.core.api.sessions.open_sessions.OpenSessions, once a script asks for one
    """

    face: FaceServices
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    commands: Commands = field(default_factory=Commands)
    tasks: TaskServices = field(default_factory=TaskServices)
    sandbox: SandboxServices = field(default_factory=SandboxServices)
    changes: FileChanges = field(default_factory=FileChanges)
    settings: "SettingsView | None" = None
    features: dict[str, object] = field(default_factory=dict)
    script_sessions: object = None


class Parts(Struct, kw_only=True):
    """What one agent works with.

    bus: its events
    store: its conversation on disk; history: the same as messages
    tools, gate: what the model may call, and who permits it
    recorder: the trace
    tool_services: what built-in tools borrow
    services: what the rooms above lend one another
    """

    bus: Bus
    store: ContextStore
    history: History
    models: ModelAccess
    prompt: PromptParts
    place: Workplace
    tools: Tools
    gate: Gate
    recorder: Recorder
    settings: "EngineSettings"
    tool_services: ToolServices
    services: SessionServices

    async def take_arrivals(self, resolved: ResolvedModel) -> None:
        """Let tools that have come join the others."""
        for arrive in self.services.lifecycle.before_round:
            await arrive(resolved.window or self.settings.context_window_limit)

    async def await_tool(self, name: str) -> Tool | None:
        """A tool that is not there: it may come."""
        for wait in self.services.lifecycle.missing:
            await wait(name)
        return self.tools.find(name)

    def offers_tools(self, resolved: ResolvedModel) -> bool:
        """Whether tools go into requests to this model: as the settings say, else as its adapter likes."""
        if self.settings.no_tool_calls:
            return False
        if self.models.offer_tools is not None:
            return self.models.offer_tools
        return bool(getattr(resolved.model, "tools_by_default", True))


ACTING: ContextVar[Parts | None] = ContextVar("cru_acting", default=None)
"""The parts of the agent whose work this is; None: of the main agent, or nobody's."""


@contextmanager
def acting(parts: Parts) -> Iterator[None]:
    """What is done inside is the work of this agent, and so is what that leaves running."""
    token = ACTING.set(parts)
    try:
        yield
    finally:
        ACTING.reset(token)


class EngineSettings(Struct, frozen=True):
    RANGES: ClassVar[dict[str, tuple[float, float]]] = {
        "context_window_limit": (0, inf), "warn_threshold_percent": (0, 100), "auto_compact_threshold": (0, 100),
        "rolling_compact_drop_percentage": (0, 100), "max_recursion_depth": (0, inf), "fuel": (0, inf),
        "max_continuations": (0, inf), "max_idle_rounds": (0, inf), "poll_backoff": (0, 600), "max_nested_runs": (0, inf),
        **BudgetSettings.RANGES,
    }  # fmt: skip

    context_window_limit: int = 0
    warn_threshold_percent: float = 80.0
    auto_compact: bool = True
    auto_compact_threshold: float = 80.0
    rolling_compact_drop_percentage: float = 50.0
    compaction_choice: Literal["model", "oldest"] = "model"
    max_recursion_depth: int = 30
    fuel: int = 250
    max_continuations: int = 100
    max_idle_rounds: int = 15
    poll_backoff: float = 30.0
    no_tool_calls: bool = False
    max_nested_runs: int = 5
    on_interrupted: Literal["ask-model", "retry", "fail"] = "ask-model"
    budget: BudgetSettings = BudgetSettings()
    guides: GuideSettings = GuideSettings()


DOCS: dict[str, str] = {
    "context_window_limit": "Size in tokens of a window that `models.NAME.context_window` does not say; 0 = as the table of models says.",
    "warn_threshold_percent": "Warn when the conversation fills this much of the window.",
    "auto_compact": "Summarise the older part of the conversation before it overflows the model's window, then go on with the prompt.",
    "auto_compact_threshold": "Fill level in percent at which that happens.",
    "rolling_compact_drop_percentage": "How much of the conversation is summarised then, in percent of its messages.",
    "compaction_choice": "Who chooses what is summarised then: the model, at the price of a request, or the oldest part goes.",
    "max_recursion_depth": "How often a turn may go on by a call of `recurse`.",
    "fuel": "Tool batches and continuations a user prompt may cost before a person is asked, or the run stops; 0 = no limit.",
    "max_continuations": "How often hooks may make the agent go on after one user prompt, likewise; 0 = no limit.",
    "max_idle_rounds": "Rounds that change nothing, in one prompt, after which it ends; 0 = no limit.",
    "poll_backoff": "The most seconds between two equal calls with which the model waits for something; 0 = it is never slowed down.",
    "no_tool_calls": "Offer the model no tools: requests carry none, and calls that it makes all the same are refused.",
    "on_interrupted": "What --resume does with calls that were running when a run was killed: tell the model that they may have run, run "
    "them again, or fail. Tools that only read run again in any case.",
    "guides": "Which files of people are read as [guides](contexts.md#guides).",
    "guides.files": "Names of guides; of those in one folder the first that has text counts. `[]`: none are read.",
    "guides.claude_folder": "Whether `.claude/CLAUDE.md`, `.claude/rules/` and CLAUDE.local.md are read beside them, if CLAUDE.md is.",
    "guides.imports": "Whether `@path` in a guide brings that file along.",
    "guides.subfolders": "Whether guides below the working directory go to the model with the first file that it reads there.",
    "budget": "What one prompt may use, its sub-agents included, before a person is asked, or the run stops "
    "([budgets](models.md#budgets)); 0 = any amount.",
    "budget.max_tokens": "Tokens of its requests and replies, cached ones too.",
    "budget.max_cost": "US dollars.",
    "budget.max_seconds": "Seconds on the clock.",
    "budget.session": "The same for all prompts of one run or chat together.",
    "budget.session.max_tokens": "Tokens, likewise.",
    "budget.session.max_cost": "US dollars.",
    "budget.session.max_seconds": "Seconds on the clock.",
    "budget.strict": "With a max_cost: whether a request whose price is not known is the last.",
    "max_nested_runs": "How deep runs of cru may start one another through tools, plugins and hooks.",
}
