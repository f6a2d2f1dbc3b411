"""All command hooks of a session: put on the bus, and what they share while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from cru.core.base.values.cancellation import Scope, begin
from cru.core.base.values.visible import count
from cru.core.conversations.line_file import LineFile
from cru.core.events.answers import Answer
from cru.core.events.bus import Bus
from cru.core.events.payloads import MessageReceived, ModelSelected, TurnComplete
from cru.core.events.stamp import Event, Stamp
from cru.core.events.stream import Notice, StatusChanged
from cru.core.hooks import records
from cru.core.hooks.agents import AgentRecords
from cru.core.hooks.deferred import DeferredContext, HookWaker
from cru.core.hooks.launch.process import run_hook_command
from cru.core.hooks.model.entry import LAYERS, HookEntry
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.model.mapping import Dialect, EventMapping
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.model.status import LoadedHooks
from cru.core.hooks.parsing.common import is_typed
from cru.core.hooks.run.command import CommandHook, RevokedGuard
from cru.core.hooks.trust.guard import GUARDED, GuardSnapshot, find_revoked, snapshot_guards
from cru.core.hooks.trust.imports import NO_CACHES
from cru.core.hooks.trust.store import HookTrust
from cru.core.models.providers import key_variables
from cru.core.turn.parts import Parts

if TYPE_CHECKING:
    from cru.core.hooks.run.languages import HookLanguages
    from cru.core.plugins.manager import Extensions

CLAIMS_KEPT = 64
"""Dispatches whose claims are remembered."""
# `on_error` of an entry → of a handler.
ON_ERROR = {"": "", "allow": "pass", "deny": "deny", "ask": "ask"}
GRACE = 5.0
"""Seconds that asynchronous hooks have after a one-shot run."""
SLACK = 10.0
"""Seconds beyond a hook's own limit after which the bus gives up on it."""


class SessionHooks:
    """The hooks of one session, as an extension of the bus; a `HookRuntime` for each of their handlers.

    loaded: of every entry that was read whether it is active, and why not
    facts: what payloads and environments say of the session
    """

    owner = "hooks"
    dialect = "command hooks"
    is_strict = False

    def __init__(
        self,
        loaded: LoadedHooks,
        dialects: Mapping[str, Dialect],
        facts: SessionFacts,
        log: LineFile,
        trust: HookTrust | None = None,
        redact: Callable[[bytes], bytes] | None = None,
        plugins: Extensions | None = None,
    ) -> None:
        """trust: asked right before a project's hook runs; None: nobody is (`--hooks=all`)
        redact: takes the known keys out of JSON lines"""
        self.loaded = loaded
        self.facts = facts
        self._trust = trust
        self._dialects = dialects
        self._log = log
        self._redact = redact
        self._plugins = plugins
        self._languages: HookLanguages | None = None
        self._parts: Parts | None = None
        self._tool_env: Mapping[str, str] = {}
        self._bus: Bus | None = None
        self._claims: dict[int, dict[object, str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._slow: set[str] = set()
        self._deferred = DeferredContext(facts.folder)
        self._waker = HookWaker()
        self._owners: list[str] = []
        self._revoked: list[GuardSnapshot] = []
        self._agents = AgentRecords()
        self._is_interrupted = False

    @property
    def dialects(self) -> Mapping[str, Dialect]:
        return self._dialects

    # on the bus --------------------------------------------------------------------------------------------------------------------

    def register(self, bus: Bus) -> None:
        """In the order of the configuration: the bus runs them at once and composes in this order."""
        self._bus = bus
        self._agents.origins = bus.agents
        active = self.loaded.active()
        if self.loaded.known:
            self.record(records.make_load(self.loaded.known, bus.origin.run_id))
        revoked = [snapshot.entry for snapshot in self._revoked]
        self._owners = [self.owner, *(entry.owner for entry in (*active, *revoked))]
        if active:
            bus.registry.on(MessageReceived, self._note_prompt, owner=self.owner, where="hooks", priority=0)
            bus.registry.on(ModelSelected, self._note_model, owner=self.owner, where="hooks", priority=0, scope="tree")
            bus.registry.on(
                "message:before_send", self._hand_over, owner=self.owner, where="context that waited", scope="main"
            )
        if any(entry.asynchronous for entry in active):
            bus.registry.on(TurnComplete, self._note_end, owner=self.owner, where="hooks", priority=0, scope="main")
        for entry in active:
            for mapping in self._dialects[entry.dialect].events[entry.event]:
                if mapping.event:
                    self._register_entry(bus, entry, mapping)
        for snapshot in self._revoked:
            self._register_revoked(bus, snapshot)
        self._register_dialect_handlers(bus, active)

    def _register_entry(self, bus: Bus, entry: HookEntry, mapping: EventMapping) -> None:
        """One event of an entry: a command beside the others of its group, a function as a handler in its own right."""
        fields: dict[str, Any] = {
            "owner": entry.owner, "where": entry.where, "priority": entry.priority, "on_error": ON_ERROR[entry.on_error],
            "scope": _scope(entry, mapping),
        }  # fmt: skip
        dialect = self._dialects[entry.dialect]
        if entry.kind == "command":
            command = CommandHook(entry, dialect, mapping, self)
            limit = entry.timeout + SLACK
            bus.registry.on(mapping.event, command, **fields, limit=limit, lane="commands", chain=entry.sequential)
            return
        from cru.core.hooks.run.function import FunctionHook, function_limit

        function = FunctionHook(entry, dialect, mapping, self)
        bus.registry.on(mapping.event, function, **fields, limit=function_limit(entry) + SLACK)

    def _register_revoked(self, bus: Bus, snapshot: GuardSnapshot) -> None:
        """A guard that was changed while the session runs denies what it guarded."""
        entry = snapshot.entry
        dialect = self._dialects[entry.dialect]
        for mapping in dialect.events[entry.event]:
            if mapping.event == GUARDED:
                guard = RevokedGuard(snapshot, dialect, mapping, self)
                bus.registry.on(
                    GUARDED, guard, owner=entry.owner, where=entry.where, priority=entry.priority, scope=_scope(entry, mapping),
                    lane="commands", on_error="deny",
                )  # fmt: skip

    def _register_dialect_handlers(self, bus: Bus, active: list[HookEntry]) -> None:
        """What dialects themselves do while their hooks are there."""
        for name, dialect in self._dialects.items():
            entries = [entry for entry in active if entry.dialect == name]
            if not entries or dialect.handlers is None:
                continue
            for event, handler in dialect.handlers(entries, self.facts_of):
                bus.registry.on(
                    event,
                    handler,
                    owner=self.owner,
                    where=f"hooks of {name}",
                    priority=0,
                    on_error="pass",
                    scope="tree",
                )

    def replace(self, loaded: LoadedHooks, dialects: Mapping[str, Dialect], trust: HookTrust | None) -> None:
        """Files have changed: nothing of what was registered stays."""
        assert self._bus is not None
        for owner in self._owners:
            self._bus.registry.drop_owner(owner)
        if trust is not None:
            guards = [*self._revoked, *snapshot_guards(self.loaded, self._dialects)]
            self._revoked = find_revoked(guards, loaded, trust)
        self.loaded, self._dialects, self._trust = loaded, dialects, trust
        self.register(self._bus)
        self.set_tool_environment()

    def active_dialects(self) -> set[str]:
        """Dialects whose files must be looked at, whatever is in them now: a hook or a rule of theirs was active."""
        entries = [*self.loaded.active(), *(snapshot.entry for snapshot in self._revoked)]
        return {entry.dialect for entry in entries} | {source.dialect for source, _ in self.loaded.settings}

    def bind(self, parts: Parts) -> None:
        """What hooks in Lua and Python work with."""
        self._parts = parts
        self.facts.confine = parts.services.sandbox.confine_project
        self._tool_env = parts.place.env
        parts.services.tasks.wakers.append(self._waker)

    async def open(self, parts: Parts) -> None:
        """Before `session:started`: by then it is known who sits there."""
        self.facts.model = self.facts.model or parts.models.configured_name()
        self.set_tool_environment()

    def set_tool_environment(self) -> None:
        """What dialects with active entries add to the environment of tools."""
        if self._parts is None:
            return
        settings = self.facts.settings_env
        added = {name: value for name, value in settings.items() if name not in key_variables(settings)}
        for name in {entry.dialect for entry in self.loaded.active()}:
            environment = self._dialects[name].tool_environment
            added |= environment(self.facts) if environment is not None else {}
        self._parts.place.env = {**self._tool_env, **added}

    async def close(self) -> None:
        """End what runs beside the session. After a one-shot run that was not interrupted, hooks have a few seconds to finish first:
        an asynchronous Stop hook would never get to its end otherwise."""
        try:
            if self._tasks and not self.facts.is_chat() and not self._is_interrupted:
                _, late = await asyncio.wait(self._tasks, timeout=GRACE)
                if late:
                    text = f"{count(len(late), 'asynchronous hook')} did not finish within {GRACE:g} s after the run and had to end"
                    self._publish(Notice("warning", text, self.owner))
        finally:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._log.close()

    def _note_prompt(self, event: Event[MessageReceived]) -> None:
        """Notes what runs now; a user's prompt begins with counters at nothing."""
        payload = event.payload
        self.facts.prompt = payload.content
        if not event.stamp.is_continuation or not self.facts.turn:
            self.facts.turn = payload.ref
        if is_typed(event, self.facts):
            self.facts.prompt_states.clear()

    def _note_model(self, event: Event[ModelSelected]) -> None:
        if event.stamp.depth:
            self._agents.state_of(event.stamp).model = event.payload.model
        else:
            self.facts.model = event.payload.model

    def _note_end(self, event: Event[TurnComplete]) -> None:
        self._is_interrupted = event.payload.cause == "interrupted"

    def _hand_over(self, event: Event) -> Answer | None:
        """Gives the model what hooks have left for it, with its next request."""
        if event.stamp.purpose:
            return None
        try:
            self._waker.clear()
            texts = self._deferred.take()
        except OSError as error:
            self._publish(Notice("warning", f"what hooks left for the model cannot be read: {error}", self.owner))
            return None
        return Answer(context=texts) if texts else None

    # for the handler of each hook, see HookRuntime ------------------------------------------------------------------------------------

    def facts_of(self, stamp: Stamp) -> SessionFacts:
        return self._agents.facts_of(stamp, self.facts) if stamp.depth else self.facts

    def languages(self) -> HookLanguages:
        from cru.core.hooks.run.languages import HookLanguages

        if self._languages is None:
            assert self._parts is not None
            self._languages = HookLanguages(self._parts, self.facts.home, self._plugins)
        return self._languages

    def claim(self, entry: HookEntry, event: Event) -> str:
        """Only one of the same layer, or of one that is trusted more, stands in for another: a project's never for a user's."""
        if not self._dialects[entry.dialect].config.runs_equal_once:
            return ""
        claims = self._claims.setdefault(event.stamp.dispatch_seq, {})
        if len(self._claims) > CLAIMS_KEPT:
            del self._claims[next(iter(self._claims))]
        keys = [(entry.dialect, entry.event, entry.identity, layer) for layer in LAYERS]
        rank = LAYERS.index(entry.source.layer)
        first = next((claims[key] for key in keys[: rank + 1] if key in claims), "")
        claims.setdefault(keys[rank], entry.id)
        return "" if first == entry.id else first

    def explain_revocation(self, entry: HookEntry) -> str:
        return self._trust.explain_revocation(entry) if self._trust is not None and entry.of_project else ""

    def is_accepted(self, entry: HookEntry) -> bool:
        return entry.id not in self.loaded.unaccepted

    async def run(self, entry: HookEntry, stdin: bytes, env: Mapping[str, str | None], stamp: Stamp) -> HookRun:
        why = self.explain_revocation(entry)
        if why:
            is_withheld = self._trust is not None and not self._trust.is_refused(entry)
            return HookRun(None, error=why, withheld=is_withheld)
        secret = self.facts.secret_names if entry.of_project else ()
        merged = {**{name: value for name, value in self.facts.env.items() if name not in secret}, **env}
        environment = {name: value for name, value in merged.items() if value is not None}
        if entry.of_project:
            environment |= NO_CACHES
        rules = self._dialects[entry.dialect].launch
        cwd = self.facts.root / entry.cwd
        confine = None
        if (facts := self.facts_of(stamp)).confine is not None:
            from cru.core.hooks.launch.confined import confinement

            confine = confinement(entry, facts, cwd, stdin, environment)
        return await run_hook_command(entry, stdin, environment, cwd, rules, confine, self.facts.root)

    def redact(self, result: HookResult) -> HookResult:
        if self._redact is None:
            return result
        answer, inject = result.answer, result.answer.inject
        content = inject.content if inject else ""
        texts = [
            result.to_user,
            result.warning,
            result.failed,
            answer.reason,
            content,
            *answer.context,
            *result.deferred,
        ]
        data = msgspec.json.encode(texts)
        clean = self._redact(data)
        if clean == data:
            return result
        to_user, warning, failed, reason, content, *rest = msgspec.json.decode(clean)
        context, deferred = rest[: len(answer.context)], rest[len(answer.context) :]
        inject = inject and structs.replace(inject, content=content)
        answer = structs.replace(answer, reason=reason, context=tuple(context), inject=inject)
        return HookResult(answer, to_user, warning, failed, tuple(deferred))

    def record(self, line: records.HookLogLine) -> None:
        self._log.write(records.encode(line) + b"\n")

    def notify(self, entry: HookEntry, text: str) -> None:
        """A warning, since a face need not show less."""
        self._publish(Notice("warning", f"{entry.label}: {text}", entry.owner))

    def warn(self, entry: HookEntry, text: str) -> None:
        self._publish(Notice("warning", f"hook {entry.label} ({entry.where}): {text}", entry.owner))

    def warn_slow(self, entry: HookEntry, event: str, ms: float) -> None:
        """Named once a session."""
        if entry.id not in self._slow:
            self._slow.add(entry.id)
            self.warn(entry, f"took {ms:.0f} ms on {event}; every tool call waits for it")

    def show_waiting(self, entry: HookEntry, text: str) -> None:
        self._publish(StatusChanged(entry.owner, "waiting", text))

    def _publish(self, item: Notice | StatusChanged) -> None:
        assert self._bus is not None
        self._bus.stream.tell(item)

    def detach(self, work: Coroutine[Any, Any, None]) -> None:
        task = begin(work, Scope())  # an interrupt of the turn does not end it
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def defer(self, entry: HookEntry, texts: Sequence[str]) -> None:
        try:
            self._deferred.add(texts)
        except OSError as error:
            self.warn(entry, f"what it says to the model is lost: {error}")
            return
        if entry.rewake and texts and self.facts.is_chat():
            self._waker.wake()


def _scope(entry: HookEntry, mapping: EventMapping) -> str:
    """The scope of its handler; "": that of the event."""
    return mapping.scope or {None: "", True: "tree", False: "main"}[entry.include_sub_agents]
