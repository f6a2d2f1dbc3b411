"""What one agent has to do with tasks: it starts them, hears of their ends, and leaves none behind. One object an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from cru.core.agents import CardOrigin, CardPlaces, TaskError, TaskLimit, TaskSettings
from cru.core.agents.cards import AgentCard, Isolation, canonical_globs, is_plain
from cru.core.agents.child_session import ChildSession, ChildSpec, SessionFactory, own_stream, run_session
from cru.core.agents.commands import CommandTasks
from cru.core.agents.completion import describe_end
from cru.core.agents.discovery import Cards, load_cards
from cru.core.agents.manager import Task, TaskManager, TaskOutcome, TaskRequest
from cru.core.agents.model_names import NamedModels, choose_model
from cru.core.agents.record import MAIN, CancelledBy, TaskKind, TaskRecord, TaskStatus, WorktreeRecord
from cru.core.agents.untold import ToldEnds
from cru.core.agents.worktree import Worktree
from cru.core.base.config.closest import closest, did_you_mean
from cru.core.base.values.errors import CruError
from cru.core.events.stream import Stream
from cru.core.models.providers import file_of_model
from cru.core.tools.builtin import TABLE
from cru.core.tools.protocol import AgentRequest, ToolError, ToolResult
from cru.core.turn.parts import Parts

TOOL = "task"


class SessionTasks(Struct):
    """What all agents of a session share.

    asking: held while a sub-agent's question is on the screen
    problems: of cards, those that the person was told of
    models: names that cards may give to models
    """

    manager: TaskManager
    places: CardPlaces
    make_session: SessionFactory
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    problems: set[str] = field(default_factory=set)
    models: NamedModels = NamedModels()

    @property
    def settings(self) -> TaskSettings:
        return self.manager.settings


class AgentConversation(Struct, frozen=True):
    """A conversation with a sub-agent that goes on: the agent keeps what was said under this id.

    listen: gets the stream of each of its sessions before it begins
    """

    id: str
    listen: Callable[[Stream], object]


class AgentTasks:
    """The tasks of one agent: the main one, or a sub-agent by the id of its task."""

    def __init__(
        self, shared: SessionTasks, parts: Parts, agent_id: str = MAIN, depth: int = 0, model: str = ""
    ) -> None:
        self.shared = shared
        self._parts = parts
        self._id = agent_id
        self._depth = depth
        self._model = model
        self._commands: CommandTasks | None = None
        self._reported: list[str] = []
        self._is_over = False

    @property
    def manager(self) -> TaskManager:
        return self.shared.manager

    def take_report(self) -> str:
        limit = self.shared.settings.result_limit
        taken = self.manager.completions.take(self._id)
        self._reported += [completion.record.id for completion in taken]
        return "\n\n".join(completion.describe(limit) for completion in taken)

    def take_reported(self) -> tuple[str, ...]:
        reported, self._reported = tuple(self._reported), []
        return reported

    def has_report(self) -> bool:
        return self.manager.completions.has_any(self._id)

    def running_agents(self) -> tuple[str, ...]:
        return tuple(
            f"{task.record.id} ({task.record.title[:40]})" for task in self.manager.running(self._id, TaskKind.SUBAGENT)
        )

    async def wait_for_agents(self) -> bool:
        return await self.manager.wait_finished(self._id, TaskKind.SUBAGENT)

    async def wait_for_any(self) -> bool:
        return await self.manager.wait_finished(self._id)

    async def close(self) -> None:
        """End what still runs; the person hears of it, and of what goes on."""
        self._is_over = self._id != MAIN  # of the end of the session the manager tells
        self.manager.is_closing = self.manager.is_closing or self._id == MAIN
        warn = self._parts.bus.stream.warn
        by, end = (
            (CancelledBy.SESSION, "the session")
            if self._id == MAIN
            else (CancelledBy.PARENT, "the agent that started it")
        )
        for record in await self.manager.end_all(self._id, by):
            warn(f"{_label(record)} ended with {end}: {record.title[:80]}")
        for record in await self.manager.release_all() if self._id == MAIN else ():
            warn(
                f"{_label(record)} goes on as process {record.pid}: {record.title[:80]} (`cru tasks cancel {record.id}` ends it)"
            )
        ends = ToldEnds(self._parts.store.folder)
        self.manager.clear_untold(self._id, lambda record: self._is_told(record, ends))

    def _is_told(self, record: TaskRecord, ends: ToldEnds) -> bool:
        """Whether the agent has heard of its end; nobody tells a sub-agent that is over."""
        try:
            return self._id != MAIN or ends.has(record)
        except CruError:
            return False  # the log can no longer be read: rather twice than not at all

    def commands(self) -> CommandTasks:
        if self._commands is None:
            self._commands = CommandTasks(self.manager, self._parts, self._id, self._depth)
        return self._commands

    def cards(self) -> Cards:
        """Looked up anew: files come and go."""
        return load_cards(self.shared.places)

    async def delegate(self, request: AgentRequest, call_id: str) -> ToolResult:
        """Have a sub-agent do something. Raises ToolError."""
        try:
            card = self.cards().find(request.agent)
            task = await self.start_agent(card, request, call_id)
            if request.background:
                return ToolResult(
                    f"[sub-agent {card.name} works in the background as task {task.id}; you get its answer when it is done]"
                )
            try:
                outcome = await self.manager.wait(task)
            except asyncio.CancelledError:
                work = self.commands().list_work(task)
                self._parts.tool_services.interrupted[call_id] = f"sub-agent {card.name} (task {task.id}):\n{work}"
                raise
        except ToolError:
            raise
        except CruError as error:
            raise ToolError(error.message, error.hint) from error
        if outcome.error:
            partial = f"\nIts last words: {outcome.result}" if outcome.result else ""
            if task.record.status is TaskStatus.CANCELLED:
                raise ToolError(f"the sub-agent {card.name} (task {task.id}) {describe_end(task.record)}{partial}")
            raise ToolError(f"the sub-agent {card.name} (task {task.id}) failed: {outcome.error}{partial}")
        return ToolResult(outcome.result)

    async def start_agent(
        self, card: AgentCard, request: AgentRequest, call_id: str = "", conversation: AgentConversation | None = None
    ) -> Task:
        """Begin it as soon as there is room; with a `conversation` it goes on with that one. Raises TaskError."""
        if self._is_over and not self.manager.is_closing:  # what a plugin left running asks for it
            raise TaskLimit("the agent that asks for it has ended: nothing begins for it any more")
        model = await self._choose_model(card, request)
        tools = None if request.tools is None else tuple(request.tools)
        self._check_tools(card, None if tools is None else canonical_globs(tools))
        self._tell_once((*card.problems, *self._unknown_tools(card)))
        asked = TaskRequest(
            kind=TaskKind.SUBAGENT, prompt=request.prompt, description=request.description, agent=card.name,
            model=model, tools=tools, call_id=call_id, agent_id=self._id, depth=self._depth,
            background=request.background,
        )  # fmt: skip
        isolation = Isolation(request.isolation) if request.isolation else card.isolation

        async def work(task: Task) -> TaskOutcome:
            return await self._run(card, task, isolation, conversation)

        return await self.manager.start(self._parts, asked, work, conversation.id if conversation else "")

    async def _choose_model(self, card: AgentCard, request: AgentRequest) -> str:
        """ "": the configured one. Raises ModelError, and TaskError if a card of the project names a file that may not be read."""

        async def parent_model() -> str:
            return (await self._parts.models.choose("")).model.name

        chosen = await choose_model(request.model or card.model, self.shared.models, parent_model)
        if not request.model and card.origin in (CardOrigin.PROJECT, CardOrigin.UNTRUSTED):
            self._check_file(chosen.name, card)
        if chosen.problem:
            self._tell_once((f"agent {card.name}: {chosen.problem}",))
        return chosen.name or self._model

    def _check_file(self, model: str, card: AgentCard) -> None:
        """The file that a call names is judged before it; that of a project's card here. Raises TaskError."""
        if file := file_of_model(model):
            verdict = self._parts.gate.judge("read", "read", file, [("read", file)])
            if verdict.decision != "allow":
                raise TaskError(
                    f"{card.file} names the model `{model}`, a file: {verdict.reason}", "name a model in the call"
                )

    def _unknown_tools(self, card: AgentCard) -> Iterator[str]:
        """Plain names of the card that nothing here has; plugins have brought theirs by now."""
        for name in card.tools or () if self._depth == 0 else ():  # an agent may have been left with fewer
            if (
                is_plain(name) and closest(name, TABLE) is None and self._parts.tools.find(name) is None
            ):  # else it is told
                yield f"agent {card.name}: no tool here is called `{name}`, which its card names"

    def _check_tools(self, card: AgentCard, asked: tuple[str, ...] | None) -> None:
        """An agent that can do nothing is not begun, unless that is said by an empty list. What a glob means is known when servers and
        plugins have brought theirs. Raises TaskError."""
        tools = self._parts.tools
        for name in filter(is_plain, asked or ()):
            if tools.find(name) is None and name not in TABLE:
                near = did_you_mean(name, tools.names()) or f"there are {', '.join(tools.names())}"
                raise TaskError(f"`tools`: there is no tool `{name}`", near)
        may_come = not all(map(is_plain, (*(asked or ()), *(card.tools or ()))))
        is_wanted = asked == () or not (asked or card.tools)
        if not is_wanted and not may_come and not any(map(card.narrowed_to(asked), tools.names())):
            named = ", ".join(asked or card.tools or ())
            why = (
                f"the agent {card.name} may use none of {named}"
                if asked
                else f"the agent {card.name} cannot be used: none of its tools is here ({named})"
            )
            raise TaskError(
                why, "leave `tools` out: it has those of its card" if asked else "mend its card, or take it away"
            )

    def _tell_once(self, texts: Iterable[str]) -> None:
        for text in texts:
            if text not in self.shared.problems:
                self.shared.problems.add(text)
                self._parts.bus.stream.warn(text)

    async def _run(
        self, card: AgentCard, task: Task, isolation: Isolation, conversation: AgentConversation | None
    ) -> TaskOutcome:
        settings = self.shared.settings
        seconds, where = card.timeout or settings.timeout, _limit_place("timeout", card, card.timeout)
        if isolation is not Isolation.WORKTREE:
            return await run_session(self._make(card, task, None, conversation), task, seconds, where)

        def announce(worktree: WorktreeRecord) -> None:
            task.record.worktree = worktree
            self.manager.save(task)

        env = self._parts.tool_services.commands.env_of_own_programs(self._parts.place.root, self._parts.place.env)
        tree = await Worktree.add(self._parts.place.root, task.folder, env, announce)
        outcome = None
        try:
            outcome = await run_session(self._make(card, task, tree, conversation), task, seconds, where)
        finally:
            changes = await tree.finish()
            if task.record.worktree is not None:
                task.record.worktree = replace(task.record.worktree, is_finished=True)
            if outcome is None:  # cut short: whoever asks later hears of the changes all the same
                task.outcome = TaskOutcome(changes, "cancelled")
            if outcome is None or task.is_cancelled:
                self._parts.bus.stream.warn(f"sub-agent {card.name} (task {task.id}): {changes}")
        return TaskOutcome("\n\n".join(filter(None, (outcome.result, changes))), outcome.error, rounds=outcome.rounds)

    def _make(
        self, card: AgentCard, task: Task, tree: Worktree | None, conversation: AgentConversation | None
    ) -> ChildSession:
        depth = task.record.depth
        named = task.request.tools
        chosen = card.narrowed_to(None if named is None else canonical_globs(named))
        is_deepest = depth >= self.shared.settings.max_depth
        spec = ChildSpec(
            agent_id=task.id, call_id=task.record.call_id, depth=depth, card=card, folder=task.folder,
            tools=lambda name: chosen(name) and not (is_deepest and name == TOOL), fuel=card.fuel or self.shared.settings.fuel,
            fuel_limit=_limit_place("fuel", card, card.fuel),
            stream=own_stream(self._parts.bus.stream, card.name, task.id),
            count=partial(self.manager.count, task), root=tree.root if tree else None, inner=tree.inner if tree else "",
            model=task.request.model,
        )  # fmt: skip
        if conversation is not None:
            conversation.listen(spec.stream)
        return self.shared.make_session(self._parts, spec)


def _limit_place(name: str, card: AgentCard, own: float | None) -> str:
    """Where a person sets a limit that holds for an agent of this card."""
    return f"`{name}` in {card.file}" if own and card.file else f"the setting `tasks.{name}` (-s tasks.{name}=N)"


def _label(record: TaskRecord) -> str:
    return f"sub-agent {record.agent}" if record.kind is TaskKind.SUBAGENT else f"command (task {record.id})"
