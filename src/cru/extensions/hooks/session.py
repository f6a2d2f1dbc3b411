"""All command hooks of a session: read, sorted out, put on the bus; and what they share while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from cru.contexts.line_file import LineFile
from cru.engine.parts import Parts
from cru.events.answers import Answer
from cru.events.bus import Bus
from cru.events.payloads import MessageReceived, ModelSelected
from cru.events.stamp import Event
from cru.events.stream import Notice, StatusChanged
from cru.extensions.hooks import records
from cru.extensions.hooks.loader import LoadedHooks
from cru.extensions.hooks.model.entry import LAYERS, HookEntry
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.mapping import Dialect, EventMapping, Helping
from cru.extensions.hooks.model.result import CommandResult, HookResult
from cru.extensions.hooks.run.command import CommandHook

if TYPE_CHECKING:
    from cru.extensions.hooks.run.function import Languages
    from cru.extensions.hooks.trust.guard import GuardSnapshot
    from cru.extensions.hooks.trust.store import HookTrust
    from cru.extensions.manager import Extensions

REMEMBERED = 64
TYPED = ("user", "queue", "command")
# `on_error` of an entry → of a handler.
ON_ERROR = {"": "", "allow": "pass", "deny": "deny", "ask": "ask"}
SLACK = 10.0
"""Seconds beyond a hook's own limit after which the bus gives up on it."""


class Hooks:
    """The hooks of one session, as an extension of the bus. `loaded` says of every entry that was found whether it is active, and
    why not."""

    owner = "hooks"
    dialect = "command hooks"

    def __init__(
        self,
        loaded: LoadedHooks,
        dialects: Mapping[str, Dialect],
        about: SessionFacts,
        log: LineFile,
        trust: HookTrust | None = None,
        redact: Callable[[bytes], bytes] | None = None,
        plugins: Extensions | None = None,
    ) -> None:
        """trust: what is asked right before a project's hook runs; None = nobody (`--hooks=all`) · redact: what takes the known keys
        out of JSON lines."""
        self.loaded = loaded
        self._trust = trust
        self.about = about
        self._dialects = dialects
        self._log = log
        self._redact = redact
        self.plugins = plugins
        self.languages: Languages | None = None
        self._parts: Parts | None = None
        self._bus: Bus | None = None
        self._claims: dict[int, dict[Any, str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._slow: set[str] = set()
        self._waiting: list[str] = []
        self._owners: list[str] = []
        self._withheld: list[GuardSnapshot] = []

    def register(self, bus: Bus) -> None:
        """In the order of the configuration: the bus runs them at once and composes in this order."""
        self._bus = bus
        if self.loaded.known:
            self.record(records.make_load(self.loaded.known, bus.origin.run_id))
        held = [one.entry for one in self._withheld]
        self._owners = [self.owner, *(_owner(entry) for entry in (*self.loaded.active(), *held))]
        if self.loaded.active():
            bus.registry.on(MessageReceived, self.new_prompt, owner=self.owner, where="hooks", priority=0)
            bus.registry.on(ModelSelected, self.new_model, owner=self.owner, where="hooks", priority=0)
        if any(entry.asynchronous for entry in self.loaded.active()):
            bus.registry.on("message:received", self.waiting, owner=self.owner, where="asynchronous hooks")
        for entry in self.loaded.active():
            for moment in self._dialects[entry.dialect].events[entry.event]:
                if moment.event:
                    self._listen(bus, entry, moment)
        for one in self._withheld:
            self._hold(bus, one)
        self._help(bus)

    def _hold(self, bus: Bus, held: GuardSnapshot) -> None:
        """A guard that was changed while the session runs denies what it guarded."""
        from cru.extensions.hooks.trust.guard import GUARDED, RevokedGuard

        entry = held.entry
        dialect, scope = self._dialects[entry.dialect], "tree" if entry.include_sub_agents else "main"
        for moment in dialect.events[entry.event]:
            if moment.event == GUARDED:
                call = RevokedGuard(held, dialect, moment, self)
                bus.registry.on(
                    GUARDED, call, owner=_owner(entry), where=entry.where, priority=entry.priority, scope=scope, lane="commands",
                    on_error="deny",
                )  # fmt: skip

    def _help(self, bus: Bus) -> None:
        """What dialects themselves do while their hooks are there."""
        for name, dialect in self._dialects.items():
            mine = [entry for entry in self.loaded.active() if entry.dialect == name]
            for event, helper in dialect.helpers(mine, self.about) if mine and isinstance(dialect, Helping) else ():
                bus.registry.on(
                    event, helper, owner=self.owner, where=f"hooks of {name}", priority=0, on_error="pass", scope="tree",
                )  # fmt: skip

    def _listen(self, bus: Bus, entry: HookEntry, moment: EventMapping) -> None:
        """One moment of an entry: a command beside the others of its group, a function as a handler in its own right."""
        about: dict[str, Any] = {
            "owner": _owner(entry),
            "where": entry.where,
            "priority": entry.priority,
            "limit": entry.timeout + SLACK,
            "on_error": ON_ERROR[entry.on_error],
        }
        scope = "tree" if entry.include_sub_agents else "main"
        dialect = self._dialects[entry.dialect]
        if entry.kind == "command":
            call = CommandHook(entry, dialect, moment, self)
            bus.registry.on(moment.event, call, **about, scope=scope, lane="commands", chain=entry.sequential)
            return
        from cru.extensions.hooks.run.function import FunctionHook, limit

        inside = FunctionHook(entry, dialect, moment, self)
        bus.registry.on(moment.event, inside, **{**about, "limit": limit(entry) + SLACK}, scope=scope)

    def replace(self, loaded: LoadedHooks, dialects: Mapping[str, Dialect], trust: HookTrust | None) -> None:
        """Files have changed: nothing of what was registered stays."""
        assert self._bus is not None
        for owner in self._owners:
            self._bus.registry.drop_owner(owner)
        if trust is not None:
            from cru.extensions.hooks.trust.guard import find_revoked, snapshot_guards

            guarding = [*self._withheld, *snapshot_guards(self.loaded, self._dialects)]
            self._withheld = find_revoked(guarding, loaded, trust)
        self.loaded, self._dialects, self._trust = loaded, dialects, trust
        self.register(self._bus)

    def relied_on(self) -> set[str]:
        """Dialects whose files of the project must be looked at, whatever is in them now: a guard of theirs was active."""
        there = [*self.loaded.active(), *(one.entry for one in self._withheld)]
        return {entry.dialect for entry in there if entry.of_project}

    def bind(self, parts: Parts) -> None:
        """What hooks in Lua and Python work with."""
        self._parts = parts

    @property
    def parts(self) -> Parts:
        assert self._parts is not None
        return self._parts

    async def close(self) -> None:
        """End what runs beside the session."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._log.close()

    def claim(self, entry: HookEntry, event: Event) -> str:
        """The id of the entry that does the same thing in this firing already; "" if this one is the first. Only one of the same layer, or
        of one that is trusted more, stands in for another: a project's never for a user's."""
        if not self._dialects[entry.dialect].runs_equal_once:
            return ""
        claims = self._claims.setdefault(event.stamp.dispatch_seq, {})
        if len(self._claims) > REMEMBERED:
            del self._claims[next(iter(self._claims))]
        keys = [(entry.dialect, entry.event, entry.identity, layer) for layer in LAYERS]
        mine = LAYERS.index(entry.source.layer)
        first = next((claims[key] for key in keys[: mine + 1] if key in claims), "")
        claims.setdefault(keys[mine], entry.id)
        return "" if first == entry.id else first

    async def run(self, entry: HookEntry, stdin: bytes, env: Mapping[str, str | None]) -> CommandResult:
        """Run its command; a project's only if it is still what a person has trusted."""
        why = self.changed(entry)
        if why:
            return CommandResult(
                None, error=why, withheld=self._trust is not None and not self._trust.is_refused(entry)
            )
        from cru.extensions.hooks.launch.process import run

        whole = {**self._inherited(entry), **env}
        given = {name: value for name, value in whole.items() if value is not None}
        return await run(entry, stdin, given, self.about.cwd / entry.cwd)

    def changed(self, entry: HookEntry) -> str:
        """Why a project's hook is not what a person has trusted any more; "" if it is."""
        return self._trust.changed(entry) if self._trust is not None and entry.of_project else ""

    def _inherited(self, entry: HookEntry) -> dict[str, str]:
        """The environment; a project's hooks do not see the keys of providers."""
        env = dict(self.about.env)
        if entry.of_project:
            for name in self.about.secret_names:
                env.pop(name, None)
        return env

    def without_keys(self, said: HookResult) -> HookResult:
        """What goes to people, models and records, without the keys of providers that cru knows."""
        answer, inject = said.answer, said.answer.inject
        content = inject.content if inject else ""
        data = msgspec.json.encode([said.to_user, said.warning, said.failed, answer.reason, content, *answer.context])
        clean = self._redact(data) if self._redact else data
        if clean == data:
            return said
        to_user, warning, failed, reason, content, *context = msgspec.json.decode(clean)
        inject = inject and structs.replace(inject, content=content)
        answer = structs.replace(answer, reason=reason, context=tuple(context), inject=inject)
        return HookResult(answer, to_user, warning, failed)

    def detach(self, work: Coroutine[Any, Any, None]) -> None:
        """Let it run beside the session, until that ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def next_request(self, entry: HookEntry, answer: Answer) -> None:
        """What an asynchronous hook wants the model to read waits for the next prompt; it decides nothing."""
        self._waiting.extend(answer.context)
        if answer.stops:
            self.warn(entry, "runs beside the session, so its decision has no effect")

    def new_prompt(self, event: Event[MessageReceived]) -> None:
        """The handler that notes what runs now; a user's prompt begins with counters at nothing."""
        payload = event.payload
        self.about.prompt = payload.content
        if not event.stamp.is_continuation or not self.about.turn:
            self.about.turn = payload.ref
        if event.stamp.source in TYPED:
            self.about.blocks.clear()

    def new_model(self, event: Event[ModelSelected]) -> None:
        self.about.model = event.payload.model

    def waiting(self, event: Event) -> Answer | None:
        """The handler that hands it over."""
        texts, self._waiting = tuple(self._waiting), []
        return Answer(context=texts) if texts else None

    def record(self, line: records.HookLogLine) -> None:
        self._log.write(records.encode(line) + b"\n")

    def tell(self, entry: HookEntry, text: str) -> None:
        """A warning, since a face need not show less."""
        self._stream(Notice("warning", f"{entry.label}: {text}", _owner(entry)))

    def warn(self, entry: HookEntry, text: str) -> None:
        self._stream(Notice("warning", f"hook {entry.label} ({entry.where}): {text}", _owner(entry)))

    def slow(self, entry: HookEntry, event: str, ms: float) -> None:
        """Named once a session."""
        if entry.id not in self._slow:
            self._slow.add(entry.id)
            self.warn(entry, f"took {ms:.0f} ms on {event}; every tool call waits for it")

    def awaited(self, entry: HookEntry, text: str) -> None:
        """What faces show while everything waits for a hook; "" when it is over."""
        self._stream(StatusChanged(_owner(entry), "waiting", text))

    def _stream(self, said: Notice | StatusChanged) -> None:
        assert self._bus is not None
        self._bus.stream.tell(said)


def _owner(entry: HookEntry) -> str:
    return f"hook {entry.id}"
