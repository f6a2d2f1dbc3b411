"""All workflows of a session: what they hear of it, and how each has its tool and its command.

Everything here belongs to cru itself, not to the plugin that defined a workflow: what the agent may do is decided on the one road of tool
calls, by a handler that denies when it fails.
"""

from __future__ import annotations

from functools import partial, reduce

from msgspec.structs import replace

from cru.core.agents.record import MAIN
from cru.core.api.host import BadArgument, Host, NamespaceError, Plugin, PluginSession
from cru.core.base.config.closest import did_you_mean
from cru.core.base.files.glob import compile_identifier_glob
from cru.core.events import payloads
from cru.core.events.answers import PASS, Answer, Inject, TurnOutcome, add, cancel, halt
from cru.core.events.registry import HandlerFunction
from cru.core.events.stamp import Event
from cru.core.tools.builtin import ToolRegistry as Tools
from cru.core.turn.commands import Command, CommandResult
from cru.core.turn.parts import Parts, SessionServices
from cru.features.workflows import command, guard, record, texts
from cru.features.workflows.machine import WorkflowMachine
from cru.features.workflows.tool import SOURCE, WorkflowTool

NAME = "workflows"
"""Of this feature, among what features lend."""
AFTER_MOVE = f"the call of `{texts.TOOL}` before it may change the state: ask for it again afterwards"


def find_workflows(services: SessionServices) -> Workflows | None:
    """The workflows of a session; None if none is defined."""
    workflows = services.features.get(NAME)
    return workflows if isinstance(workflows, Workflows) else None


def ensure_workflows(parts: Parts) -> Workflows:
    """The same, made and registered if need be."""
    workflows = find_workflows(parts.services)
    if workflows is None:
        workflows = parts.services.features[NAME] = Workflows(parts)
        workflows.register()
    return workflows


def bind_saved_runs(parts: Parts) -> None:
    """Hold the model to what is saved, although no plugin may have defined it (it is gone, off, or could not be loaded)."""
    workflows = find_workflows(parts.services) or Workflows(parts)
    workflows.look()
    if workflows.lost and find_workflows(parts.services) is None:
        parts.services.features[NAME] = workflows
        workflows.register()


class Workflows:
    """The workflows of one session.

    machines: by name
    lost: by name, why a run that nobody defines binds the model all the same
    is_model_informed: whether the model knows the states as they are
    _is_in_leg: whether the agent is at work
    _moving: the agents that have asked for a move in the batch that runs
    """

    def __init__(self, parts: Parts) -> None:
        self.machines: dict[str, WorkflowMachine] = {}
        self.lost: dict[str, str] = {}
        self.is_model_informed = False
        self._parts = parts
        self._cru = Host(PluginSession(parts, parts.store.folder), Plugin("cru", parts.store.folder, "cru"))
        self._warned: set[str] = set()
        self._ids: list[int] = []
        self._is_in_leg = False
        self._ended: list[TurnOutcome] = []
        self._moving: set[str] = set()

    def running(self) -> list[WorkflowMachine]:
        return [machine for machine in self.machines.values() if machine.running]

    # defined and gone -------------------------------------------------------------------------------------------------------------

    def register(self) -> None:
        self._parts.tools.add(WorkflowTool(self.running))
        handlers: dict[str, tuple[HandlerFunction, dict[str, object]]] = {
            "message:received": (self._received, {}),
            "leg:started": (self._started, {}),
            "message:before_send": (self._before_send, {"scope": "main"}),
            "tool:before_call": (self._judge_call, {"priority": 0}),
            "tool:batch_completed": (self._batch_over, {"scope": "tree"}),
            "session:compacted": (self._compacted, {}),
            "turn:complete": (self._leg_over, {"scope": "tree", "on_error": "deny"}),
            "custom": (self._stop, {"pattern": "command:stop"}),
        }
        registry = self._parts.bus.registry
        self._ids = [
            registry.on(event, call, owner="cru", where="cru.fsm", **options)
            for event, (call, options) in handlers.items()
        ]

    def add(self, machine: WorkflowMachine) -> None:
        """Take a workflow in; one of the same name is replaced if it is the same plugin's. Raises BadArgument."""
        old, plugin = self.machines.get(machine.name), machine.owner.plugin.name
        if old is not None and old.owner.plugin.name != plugin:
            raise BadArgument(
                f"cru.fsm.define: plugin {plugin}: there is a workflow {machine.name} already, of plugin {old.owner.plugin.name}",
                "give it another name",
            )
        if old is not None:
            self._parts.services.commands.remove(old.name, plugin)
        description = machine.definition.about or f"start the workflow {machine.name}, or steer it"
        problem = self._parts.services.commands.add(
            Command(machine.name, description, partial(self._steer, machine), plugin, command.HINT)
        )
        if problem:
            raise BadArgument(f"cru.fsm.define: {problem}", "a workflow's name is its command: give it another one")
        self.machines[machine.name] = machine
        self.lost.pop(machine.name, None)
        machine.refresh()

    def remove(self, machine: WorkflowMachine) -> None:
        """Let a workflow go, and with the last one everything else. Where it stands stays saved; a run that is not over binds the model
        until its plugin is back."""
        if self.machines.get(machine.name) is machine:
            del self.machines[machine.name]
            self._parts.services.commands.remove(machine.name, machine.owner.plugin.name)
        self.look()
        if not self.machines and not self.lost and find_workflows(self._parts.services) is self:
            for id in self._ids:
                self._parts.bus.registry.off(id)
            self._parts.tools.drop_source(SOURCE)
            del self._parts.services.features[NAME]

    def look(self) -> None:
        """Find the runs that are saved and that nobody defines; what cannot be read binds, too."""
        try:
            saved = record.running_records(self._cru)
        except NamespaceError as error:
            self.lost = {"": f"nobody knows whether a workflow is running: {error.message}"}
            return
        context = self._parts.store.name
        self.lost = {
            name: texts.undefined_workflow(name, saved_record, context)
            for name, saved_record in saved.items()
            if name not in self.machines
        }

    async def _steer(self, machine: WorkflowMachine, typed: str) -> CommandResult:
        self.is_model_informed = False
        return await command.run(machine, typed)

    # heard ------------------------------------------------------------------------------------------------------------------------

    def _received(self, event: Event[payloads.MessageReceived]) -> Answer:
        """A prompt of the user resumes what was paused, and has the states beside it."""
        self._refresh()
        if event.stamp.is_continuation:
            return PASS
        for machine in self.machines.values():
            machine.is_paused = False
        self._ended = []
        return self._state_briefs(event.payload.content)

    def _started(self, _event: Event) -> Answer:
        self._refresh()
        self._is_in_leg = True
        return PASS

    def _refresh(self) -> None:
        self._moving.discard(MAIN)
        for machine in self.machines.values():
            machine.refresh()
        self.warn_unknown_tools()
        self.look()
        for text in self.lost.values():
            if text not in self._warned:
                self._warned.add(text)
                self._parts.bus.stream.warn(f"{text}; until then the model's tools are denied")

    def warn_unknown_tools(self) -> None:
        """Warn about globs that fit no tool, a slip of the pen as a rule; all plugins must be loaded."""
        for machine in self.machines.values():
            _warn_unknown_tools(machine, self._parts.tools)

    def _before_send(self, event: Event) -> Answer:
        """Whoever was not told yet (after a compaction, a resumed run, a start by a script) is told now."""
        if event.stamp.purpose:
            return PASS
        for machine in self.running():
            machine.count_round()
        return PASS if self.is_model_informed else self._state_briefs()

    def _state_briefs(self, prompt: str = "") -> Answer:
        """The states as they are now, with the task if the prompt is not just that."""
        self.is_model_informed = True
        briefs = [
            texts.brief(machine.definition, machine.here, machine.record.task if machine.record.task != prompt else "")
            for machine in self.running()
            if machine.here is not None and machine.record is not None
        ]
        return Answer(context=tuple(briefs)) if briefs else PASS

    def _judge_call(self, event: Event[payloads.ToolBeforeCall]) -> Answer:
        call = event.payload
        if not self._binds(call.origin, event):
            return PASS
        if event.stamp.agent_id in self._moving and call.origin == "model":
            return cancel(AFTER_MOVE)
        if call.name != "call_user" and (broken := self._find_broken()):
            return cancel("; ".join(broken))
        for machine in self.running():
            if (
                machine.here is not None
                and call.name not in texts.ALWAYS_ALLOWED
                and not machine.here.allows(call.name)
            ):
                return cancel(texts.denial(machine.definition, machine.here))
        is_in_batch = self._is_in_leg or event.stamp.is_sub_agent  # a client's call stands alone
        if call.name == texts.TOOL and call.origin == "model" and is_in_batch and self.running():
            self._moving.add(event.stamp.agent_id)
        return PASS

    def _binds(self, origin: str, event: Event) -> bool:
        """The model's own calls, and those of a plugin's tool that it uses: scripts outside of any handler and guard while it works."""
        if origin == "script":
            return self._is_in_leg and not event.stamp.parent_seq and not guard.inside_guard()
        return origin == "model"

    async def _batch_over(self, event: Event) -> Answer:
        self._moving.discard(event.stamp.agent_id)
        if event.stamp.is_sub_agent:
            return PASS
        notes, ends = [], []
        for machine in self.running():
            text, end = await machine.round_over()
            notes += [text] if text else []
            ends += [end] if end is not None else []
        if ends:
            return _halt(ends)
        return Answer(context=tuple(notes)) if notes else PASS

    def _find_broken(self) -> list[str]:
        """Return why runs cannot continue: nobody defines them, or their state is gone."""
        return [
            *self.lost.values(),
            *(
                texts.unknown_state(machine.definition, machine.record, machine.problem)
                for machine in self.running()
                if machine.here is None and machine.record is not None
            ),
        ]

    def _compacted(self, _event: Event) -> Answer:
        self.is_model_informed = False
        return PASS

    async def _leg_over(self, event: Event[payloads.TurnComplete]) -> Answer:
        self._moving.discard(event.stamp.agent_id)
        if event.stamp.is_sub_agent:
            return PASS
        over = event.payload
        self._is_in_leg = False
        notes, ends = [], []
        for machine in self.running():
            text, end = await machine.leg_over(over)
            notes += [text] if text else []
            ends += [end] if end is not None else []
        if over.cause == "done":
            ends += [TurnOutcome("failed", why) for why in self._find_broken()]
        if over.called_user and ends:
            return reduce(add, [Answer(outcome=end) for end in ends])
        if ends and not notes and not over.queued:
            return _halt(ends)
        for end in ends:  # another workflow continues: what ended here is said again at the end of the turn
            self._parts.bus.stream.warn(end.reason)
        self._ended += ends
        if not notes:
            return reduce(add, [Answer(outcome=end) for end in self._ended], PASS)
        running = [machine for machine in self.running() if machine.record is not None]
        unfinished = tuple(
            f"workflow {machine.name} in the state {machine.record.state}" for machine in running if machine.record
        )
        return Answer(inject=Inject("\n\n".join(notes)), outcome=TurnOutcome("gave_up", open=unfinished))

    def _stop(self, _event: Event) -> Answer:
        """`/stop`: nothing goes on by itself until the user's next prompt."""
        for machine in self.machines.values():
            machine.is_paused = True
        return PASS


def _halt(ends: list[TurnOutcome]) -> Answer:
    return reduce(add, [replace(halt(end.reason), outcome=end) for end in ends])


def _warn_unknown_tools(machine: WorkflowMachine, tools: Tools) -> None:
    known = tools.names()
    for state in machine.definition.states.values():
        for glob in state.tools or ():
            if tools.find(glob) is None and not any(compile_identifier_glob(glob)(name) for name in known):
                hint = did_you_mean(glob, known)
                machine.warn_once(
                    f"workflow {machine.name}, state {state.name}: no tool fits `{glob}`{f'; {hint}' if hint else ''}"
                )
