"""Sub-agents' sessions: built out of the parts of the session above, narrowed, with a context of their own."""

from __future__ import annotations

from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from cru.core.agents import TaskTable
from cru.core.agents.child_session import ChildSession, ChildSpec, asker_for, choose_for
from cru.core.agents.control import ControlPipe
from cru.core.agents.manager import TaskManager
from cru.core.agents.model_names import NamedModels
from cru.core.agents.sub_agents import AgentTasks, SessionTasks
from cru.core.base.bundled import BASE
from cru.core.base.files.regular import make_private_folder
from cru.core.compose import wiring
from cru.core.compose.start import Start, card_places, find_guides
from cru.core.conversations import ContextSettings, write_errors
from cru.core.conversations.home import Home
from cru.core.conversations.line_file import LineFile
from cru.core.conversations.store import FileContext
from cru.core.events.stamp import Origin
from cru.core.guard.rules.gate import Gate
from cru.core.tools.builtin import NarrowedTools
from cru.core.tools.protocol import OUTPUT_FOLDER
from cru.core.turn.history import History
from cru.core.turn.model_pool import ModelPool
from cru.core.turn.parts import FileChanges, Lifecycle, Parts, PromptParts, SessionServices, TaskServices
from cru.core.turn.session import Session
from cru.core.turn.system_prompt import Guides, PromptSources, build_sections


class ChildBuilder(Struct):
    """What a child's session needs beside its parent's parts (a SessionFactory).

    shared: set once there are tasks
    """

    start: Start
    home: Home
    settings: ContextSettings
    models: ModelPool
    redact: wiring.Redact
    shared: SessionTasks | None = None

    def __call__(self, parent: Parts, spec: ChildSpec) -> ChildSession:
        """Raises ContextError if its folder cannot be made."""
        assert self.shared is not None
        with write_errors(spec.folder):
            make_private_folder(spec.folder)
        store = FileContext(spec.folder, self.settings)
        gate = parent.gate.narrowed(
            spec.card.mode, root=spec.root, inner=spec.inner, readable=(spec.folder / OUTPUT_FOLDER,)
        )
        origin = parent.bus.origin
        root = str(spec.root) if spec.root is not None else origin.root
        bus = parent.bus.child(
            Origin(
                origin.session_id, origin.run_id, spec.agent_id, spec.call_id, spec.depth, spec.card.name, str(spec.folder), root,
                lambda: gate.mode,
            ),
            spec.stream,
        )  # fmt: skip
        trace = LineFile(spec.folder / "trace.jsonl", store.record_limits, self.redact)
        choose = choose_for(self.models.check, spec)
        parts = replace(
            parent, bus=bus, store=store, history=History(), tools=NarrowedTools(parent.tools, spec.tools), gate=gate,
            models=replace(parent.models, choose=choose, ledger=parent.models.ledger.child(on_usage=spec.count)),
            prompt=self._prompt(parent, spec, store, self._guides(spec, parent, gate)),
            place=replace(parent.place, root=spec.root or parent.place.root),
            recorder=wiring.make_recorder(bus, trace, store, self.redact, self.start.debug),
            settings=replace(parent.settings, fuel=spec.fuel),
            tool_services=wiring.tool_services(bus, self.home, store, self.models, gate, parent.tool_services.settings),
            services=self._services(parent.services, spec),
        )  # fmt: skip
        parts.services.changes.lend(parts)
        if parts.services.sandbox.lend is not None:
            parts.services.sandbox.lend(parts)
        lend_tasks(parts, AgentTasks(self.shared, parts, spec.agent_id, spec.depth, spec.model))
        return ChildSession(Session(parts, f"sub-agent {spec.card.name}"), (store, trace))

    def _services(self, above: SessionServices, spec: ChildSpec) -> SessionServices:
        """The child asks through its parent, and leaves starting turns to it."""
        assert self.shared is not None
        asker = asker_for(above.face.asker, f"{spec.card.name} {spec.agent_id}", self.shared.asking)
        return replace(
            above, face=replace(above.face, asker=asker, is_chat=False), tasks=TaskServices(fuel_limit=spec.fuel_limit),
            lifecycle=Lifecycle(before_round=above.lifecycle.before_round, missing=above.lifecycle.missing),
            changes=above.changes if spec.root is None else FileChanges(),
        )  # fmt: skip

    def _guides(self, spec: ChildSpec, above: Parts, gate: Gate) -> Guides:
        """The project's guides, as they stand where it works."""
        start = self.start
        root = spec.root or above.place.root
        cwd = start.cwd if root == start.root else root
        return find_guides(start, above.settings.guides, gate, root, cwd)

    def _prompt(self, above: Parts, spec: ChildSpec, store: FileContext, guides: Guides) -> PromptParts:
        """The card's prompt, the guides, skills if it may load them, and where it works."""
        start, about = self.start, self.settings
        where = guides.places
        base = spec.card.prompt or BASE
        sources = PromptSources(
            start.home,
            where.root,
            where.cwd,
            where.user_home,
            base,
            spec.card.name,
            guides=guides,
            skills=above.prompt.skills if spec.tools("skill") else None,
        )
        return replace(
            above.prompt, sections=lambda: build_sections(store, sources, about.username, reflection=False), guides=guides,
            parent=above.store.name, card=None,
        )  # fmt: skip


def lend_tasks(parts: Parts, tasks: AgentTasks) -> None:
    """Tools may start work beside the conversation; what is left of it ends with the session."""
    parts.tool_services.spawner = lambda: tasks
    parts.services.tasks.background = tasks
    parts.services.lifecycle.closing.insert(0, tasks.close)


def make_tasks(parts: Parts, build: ChildBuilder, settings: TaskTable) -> AgentTasks:
    """What the main agent starts tasks with."""
    start = build.start
    manager = TaskManager(parts.store.folder, settings.tasks, parts.bus.stream.warn, partial(_listen, parts))
    places = card_places(start)
    models = NamedModels(settings.agents.model_aliases, build.models.aliases)
    build.shared = SessionTasks(manager, places, build, models=models)
    tasks = AgentTasks(build.shared, parts)
    lend_tasks(parts, tasks)
    return tasks


def _listen(parts: Parts, manager: TaskManager) -> None:
    """Other processes may ask for the end of a task, as long as the session is open."""
    try:
        pipe = ControlPipe(parts.store.folder, manager.cancel_by_id)
    except OSError as error:
        parts.bus.stream.warn(f"`cru tasks cancel` does not reach this session: {error.filename}: {error.strerror}")
        return

    async def close() -> None:
        pipe.close()

    parts.services.lifecycle.closing.append(close)
