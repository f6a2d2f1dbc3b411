"""What the engine works with. The composition root fills it; no engine function ever sees the session or a face."""

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

from msgspec import Struct, field

from cru.core.base.files.search_path import exists_above
from cru.core.base.values.messages import Span
from cru.core.conversations.store import ContextStore
from cru.core.events.bus import Bus
from cru.core.guard.rules.gate import Asker, Gate
from cru.core.models import ModelPrice
from cru.core.models.protocol import Model
from cru.core.tools.builtin import ToolRegistry as Tools
from cru.core.tools.protocol import SecretVariables, Tool, ToolServices, ToolSettings
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
    from cru.core.turn.turn import TaskReport

ModelChooser = Callable[[str], Awaitable["ResolvedModel"]]


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


class SectionSource(Protocol):
    """Gives the sections of the system prompt; called once a leg."""

    def __call__(self) -> tuple[Span, ...]: ...


@runtime_checkable
class Dialogs(Protocol):
    """A face that can show dialogs of plugins."""

    async def show(self, kind: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """Ask a person, one dialog at a time; None if they cancelled, or nobody is there. It is called for the plugin that asks
        (cru.core.api.host.host()); cancelled with its task, it leaves a clean screen. What is asked and answered, by kind (indices
        from 0):

        ask_batch   {id, questions = [{header, question, choices, multi_select, allow_other}]} → {answers = [{selected, other?}]}
        edit        {content, format, hint?} → {modified}
        show        {content, format, title?} → {}
        popup       {title, entries = [{label, description?, data?}], allow_other} → {selected_index} or {other}
        panel       {header, items, hints} → {selected = [index], other?}
        """
        ...


@runtime_checkable
class TerminalLender(Protocol):
    """A face that can hand its terminal to a program."""

    def lend(self, group: int) -> AbstractAsyncContextManager[None]:
        """The terminal belongs to that process group for the block."""
        ...


class SettingsView(Protocol):
    """All settings, for scripts."""

    def as_dict(self) -> dict[str, Any]:
        """In plain types, secrets masked."""
        ...

    def origin(self, key: str) -> str:
        """Where the value of a dotted key comes from."""

    def layers(self, key: str) -> tuple[str, ...]:
        """The names of the layers that set a dotted key, the strongest first."""


class Waker(Protocol):
    """Somebody who may have something to say while the agent is idle."""

    def has_report(self) -> bool:
        """Whether there is something to take."""
        ...

    def take_report(self) -> str:
        """What is said, for the model; "" if it has heard it already."""
        ...

    async def wait_for_any(self) -> bool:
        """Wait until there is something to take; False if nothing runs that could bring it."""
        ...


class BackgroundWork(Waker, Protocol):
    """What an agent started beside its conversation (cru.tasks)."""

    def take_reported(self) -> tuple[str, ...]:
        """Ids of the tasks that the reports tell which were taken since the last call."""
        ...

    def running_agents(self) -> tuple[str, ...]:
        """The sub-agents that are at work, for people."""
        ...

    async def wait_for_agents(self) -> bool:
        """Wait until there is something to take; False if no sub-agent runs that could bring it."""
        ...


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


class SessionServices(Struct, kw_only=True):
    """What the rooms above the engine lend one another in a session; None: there is nothing of the kind.

    skills: names and describes skills for a system prompt; None: there are none
    settings: all settings; transport: the one HTTP transport, made when first needed
    configured_model: gives the id of the model that settings name, "" if they do not tell it
    dialogs: the face that shows dialogs
    features: what each feature lends its other parts, by its name
    script_sessions: cru.core.api.sessions.open_sessions.OpenSessions, once a script asks for one
    divert_prints: keeps what code of plugins prints out of the face's output; it gets who tells the person at the first print
    provider_auth: gives headers for requests to a model of a provider
    background: what runs beside the conversation, once something does
    recover_tasks: what became of tasks whose run was killed, once; None: nothing
    wakers: who else may start a turn of an idle chat
    is_chat: a person sits at a chat; is_verbose: who wants to see everything
    mode_of_person: the mode that a person has set in this session, "" if none has
    changes: of files, as far as they can be taken back
    sandbox: confines the commands of an agent, if that is wanted, and keeps cru's own programs apart from them
    open_sandbox: finds out whether anything can confine
    sandbox_state: what confines commands: bubblewrap, sandbox-exec, none (nothing can) or off; "": not known yet
    confine_project: the same for programs that the project brings
    """

    settings: SettingsView | None = None
    transport: "Callable[[], Transport] | None" = None
    configured_model: Callable[[], str] = str
    dialogs: Dialogs | None = None
    script_sessions: object = None
    divert_prints: Callable[[Callable[[], None]], None] | None = None
    provider_auth: list[Callable[[str, str], Awaitable[Mapping[str, str]]]] = field(default_factory=list)
    background: BackgroundWork | None = None
    recover_tasks: "Callable[[], Awaitable[TaskReport | None]] | None" = None
    wakers: list[Waker] = field(default_factory=list)
    is_chat: bool = False
    is_verbose: bool = False
    features: dict[str, object] = field(default_factory=dict)
    changes: FileChanges = field(default_factory=FileChanges)
    skills: Callable[[], Span] | None = None
    sandbox: "Callable[[Parts], None] | None" = None
    open_sandbox: "Callable[[Parts], Coroutine[object, object, None]] | None" = None
    sandbox_state: str = "off"
    confine_project: "ConfineProject | None" = None
    mode_of_person: str = ""


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


class Parts(Struct, kw_only=True):
    """What a session is made of.

    bus: the agent's bus
    store: the context; choose: a model by name ("" = the configured one), made when first needed
    tools, gate, asker: what the model may call, and who permits it
    recorder: the trace
    ledger: what requests have cost, here and in agents below
    root: the project root
    env: the environment of what the person runs, and of extensions
    secrets: keys in it, which what the model runs does not get
    sections: the system prompt
    tool_services: what built-in tools borrow
    services: what the rooms above lend one another
    username: who prompts
    parent: the context of the run that started this one, "" if none did
    offer_tools: whether tools go into requests; None: as the model's adapter likes
    compaction_prompt: what a compaction asks the model
    lifecycle: what happens around the session
    commands: what `/name` may be
    fuel_limit: where a person changes a sub-agent's fuel; "": it is the main agent
    card: of the main agent, None: it has none
    guides: finds those of folders in which something is read; None: nobody looks
    """

    bus: Bus
    store: ContextStore
    choose: ModelChooser
    tools: Tools
    gate: Gate
    asker: Asker
    recorder: Recorder
    settings: "EngineSettings"
    tool_settings: ToolSettings
    root: Path
    env: Mapping[str, str]
    sections: SectionSource
    history: History
    tool_services: ToolServices = field(default_factory=ToolServices)
    services: SessionServices = field(default_factory=SessionServices)
    username: str = "user"
    parent: str = ""
    offer_tools: bool | None = None
    compaction_prompt: str = ""
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    commands: Commands = field(default_factory=Commands)
    ledger: UsageLedger = field(default_factory=UsageLedger)
    fuel_limit: str = ""
    card: CardMark | None = None
    guides: Guides | None = None
    secrets: SecretVariables = field(default_factory=SecretVariables)

    async def take_arrivals(self, resolved: ResolvedModel) -> None:
        """Let tools that have come join the others."""
        for arrive in self.lifecycle.before_round:
            await arrive(resolved.window or self.settings.context_window_limit)

    async def await_tool(self, name: str) -> Tool | None:
        """A tool that is not there: it may come."""
        for wait in self.lifecycle.missing:
            await wait(name)
        return self.tools.find(name)

    def offers_tools(self, resolved: ResolvedModel) -> bool:
        """Whether tools go into requests to this model: as the settings say, else as its adapter likes."""
        if self.settings.no_tool_calls:
            return False
        if self.offer_tools is not None:
            return self.offer_tools
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
        "max_continuations": (0, inf), "max_idle_rounds": (0, inf), "max_nested_runs": (0, inf), **BudgetSettings.RANGES,
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
    "max_idle_rounds": "Rounds that bring nothing new, in one prompt, after which it is halted; 0 = no limit. Waiting counts, too.",
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
    "budget.strict": "With a max_cost: whether a request whose price is not known is the last.",
    "max_nested_runs": "How deep runs of cru may start one another through tools, plugins and hooks.",
}
