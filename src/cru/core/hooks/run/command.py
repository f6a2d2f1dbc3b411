"""One entry as a handler of the bus: says whether it fires, runs it, and has its output read by its dialect."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from msgspec.structs import replace

from cru.core.events.answers import STRENGTH, Answer, GrantScope, PermissionUpdate, strength
from cru.core.events.journal import SkipKind, SkipReason
from cru.core.events.stamp import Event
from cru.core.hooks.errors import SlowRegex
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.mapping import Dialect, EventMapping
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.records import CANCELLED, SLOW_MS, make_firing
from cru.core.hooks.run.port import HookRuntime
from cru.core.hooks.trust.guard import GuardSnapshot, deny_answer

AFTER_CALLS = ("tool:completed", "tool:failed")
"""Events of calls that have run."""
CALLS_TO_COME = ("tool:before_call", "permission:requested")
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*+)(?:"(\s*+:)?)?')
"""A string of JSON, whether it is one to its end or not, so that each character is looked at once, and the colon that makes it a key."""
PATIENCE = 1.0
"""Seconds after which a person is told what is waited for."""


class CommandHook:
    """Called by the bus for every event of the entry that it does not decline, beside the other hooks of its group."""

    def __init__(self, entry: HookEntry, dialect: Dialect, mapping: EventMapping, runtime: HookRuntime) -> None:
        self._entry = entry
        self._dialect = dialect
        self._mapping = mapping
        self._runtime = runtime
        self._has_run = False
        self.ahead = dialect.judges_ahead
        self._matcher_errors: dict[int, str] = {}  # by dispatch

    def declines(self, event: Event) -> SkipReason | None:
        """Why it does not fire now. Nothing is awaited here, so that the first of two alike is always the first."""
        entry, mapping, facts = self._entry, self._mapping, self._runtime.facts_of(event.stamp)
        try:
            if mapping.accepts is not None and not mapping.accepts(event, facts):
                return SkipReason(SkipKind.OTHER_EVENT, mapping.name)
            subject = mapping.subject(event) if mapping.subject is not None else ""
            if mapping.subject is not None and not self._dialect.matches(entry, event, subject, facts):
                return SkipReason(SkipKind.MISMATCH, subject)
        except SlowRegex as error:  # a guard that hears too much is safer than one that hears too little
            self._runtime.warn(entry, error.message)
        except Exception as error:  # noqa: BLE001  the boundary around a dialect: a guard must not be passed by; told when it fires
            self._matcher_errors[event.stamp.dispatch_seq] = f"its matcher cannot be used: {error!r}"
        if entry.once and self._has_run:
            return SkipReason(SkipKind.ONCE)
        first = self._runtime.claim(entry, event)
        if first:
            return SkipReason(SkipKind.DUPLICATE, first)
        self._has_run = True
        return None

    async def __call__(self, event: Event) -> Answer:
        if self._entry.asynchronous and not self._is_waited_for(event):
            self._runtime.detach(self._run_beside(event))
            return Answer(note="runs beside the session")
        return await self._run(event)

    def _is_waited_for(self, event: Event) -> bool:
        """Whether nothing would be left beside which it could run: the session ends, or a run at whose end it may make the agent go on."""
        if event.name == "session:ended":
            return True
        return self._entry.rewake and event.name == "turn:complete" and not self._runtime.facts.is_chat()

    async def _run_beside(self, event: Event) -> None:
        """An asynchronous hook: it decides nothing; what it has to say goes into the next request."""
        answer = await self._run(event)
        self._runtime.defer(self._entry, answer.context)
        if answer.stops:
            self._runtime.warn(self._entry, "runs beside the session, so its decision has no effect")

    async def _run(self, event: Event) -> Answer:
        stdin, run, started = b"", HookRun(None), perf_counter()
        matcher_error = self._matcher_errors.pop(event.stamp.dispatch_seq, "")
        if matcher_error:
            return self._report(event, stdin, run, HookResult(failed=matcher_error))
        entry, mapping, runtime = self._entry, self._mapping, self._runtime
        try:
            stdin = self._dialect.stdin(mapping, event, runtime.facts_of(event.stamp))
            env = self._dialect.environment(entry, mapping, event, runtime.facts)
            with self._waiting():
                run = await runtime.run(entry, stdin, env, event.stamp)
            result = self._read_output(event, run)
        except asyncio.CancelledError:
            run = HookRun(None, ms=(perf_counter() - started) * 1000, error=CANCELLED)
            runtime.record(make_firing(entry, mapping.name, event, stdin, run, HookResult(failed=CANCELLED)))
            raise
        except Exception as error:  # noqa: BLE001  the boundary around a dialect: told, and `on_error` counts
            result = HookResult(failed=f"{type(error).__name__}: {error}")
        return self._report(event, stdin, run, result)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Say which hook is waited for, once it has taken a while."""
        entry, is_shown = self._entry, False

        def show() -> None:
            nonlocal is_shown
            is_shown = True
            self._runtime.show_waiting(entry, f"waiting for the hook {entry.label}")

        timer = None if entry.asynchronous else asyncio.get_running_loop().call_later(PATIENCE, show)
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
            if is_shown:
                self._runtime.show_waiting(entry, "")

    def _read_output(self, event: Event, run: HookRun) -> HookResult:
        if run.withheld:
            return HookResult(deny_answer(self._entry, event), failed=run.error)
        read, facts = self._mapping.answer, self._runtime.facts_of(event.stamp)
        if run.timed_out:
            result = HookResult(failed=f"no answer within {self._entry.timeout:g} s")
        elif run.exit is None:
            result = HookResult(failed=run.error or CANCELLED)
        elif read is None:
            result = HookResult()
        elif not _may_repeat_keys(run.stdout):
            result = read(self._entry, event, run, facts)
        else:
            from cru.core.hooks.run.repeated_keys import read_every_value

            result = read_every_value(run, lambda run: read(self._entry, event, run, facts))
        # a hook that has failed may have refused, too: `{"decision": "deny",}`, or an exit status that is no refusal
        if event.row.kind == "gate" and (run.stdout or run.stderr):
            return self._with_unread_refusal(event, run, result)
        return result

    def _with_unread_refusal(self, event: Event, run: HookRun, result: HookResult) -> HookResult:
        """The result as a failure if the hook refused in words that its dialect does not read, or may have: its output was cut."""
        from cru.core.plugins.unread_refusals import find_unread_refusal

        if event.name == "turn:complete" and result.warning:  # it made the agent go on too often
            return result
        is_text_legal = event.name == "message:received"
        texts = (run.stdout, run.stderr)
        refusals = (find_unread_refusal(text, result.answer, is_text_legal=is_text_legal) for text in texts)
        refusal = next(filter(None, refusals), "")
        if refusal:
            unread = f"{refusal} in its output is not read: it is no answer of {self._mapping.name}, or other text stands beside it"
        elif run.truncated and strength(result.answer) < STRENGTH["ask"] and event.name in CALLS_TO_COME:
            unread = "it printed more than is read, and a refusal may stand in the rest"
        else:
            return result
        failed, answer = _join(result.failed, unread), result.answer
        if self._runtime.is_strict:
            answer = Answer(decision="deny", reason=f"the hook {self._entry.label} failed: {failed}", note="error")
        elif answer.decision == "allow":  # beside a refusal it is no approval
            answer = replace(answer, decision="none", updates=())
        return replace(result, answer=answer, failed=failed)

    def _report(self, event: Event, stdin: bytes, run: HookRun, result: HookResult) -> Answer:
        """Record what came of it, tell the person, and return the answer."""
        entry, mapping, runtime = self._entry, self._mapping, self._runtime
        if run.note and run.left_out and entry.on_error in ("deny", "ask"):  # it decided without having seen everything
            result = replace(result, failed=_join(result.failed, run.note))
        elif run.note:
            result = replace(result, warning=_join(result.warning, run.note))
        if result.answer.updates:
            result = limit_updates(entry, result, is_accepted=runtime.is_accepted(entry))
        if result.failed:
            result = apply_failure_policy(entry, event, result)
        result = runtime.redact(result)
        runtime.record(make_firing(entry, mapping.name, event, stdin, run, result))
        if result.deferred:
            runtime.defer(entry, result.deferred)
        if result.to_user:
            runtime.notify(entry, result.to_user)
        if result.warning:
            runtime.warn(entry, result.warning)
        if run.ms > SLOW_MS and event.name.startswith("tool:"):
            runtime.warn_slow(entry, mapping.name, run.ms)
        return result.answer


class RevokedGuard(CommandHook):
    """Stands where a guard stood that is not there any more as it was trusted: with its matcher, and denies as often as it is asked."""

    def __init__(self, snapshot: GuardSnapshot, dialect: Dialect, mapping: EventMapping, runtime: HookRuntime) -> None:
        super().__init__(replace(snapshot.entry, once=False), dialect, mapping, runtime)
        self._why = snapshot.why

    async def __call__(self, event: Event) -> Answer:
        run = HookRun(None, error=f"it does not run: {self._why}", withheld=True)
        result = HookResult(deny_answer(self._entry, event, self._why), failed=run.error)
        return self._report(event, b"", run, result)


def apply_failure_policy(entry: HookEntry, event: Event, result: HookResult) -> HookResult:
    """What a failed hook means: no more than it said all the same, with a warning, unless its entry says otherwise. What has happened
    already cannot be denied: then the model reads that the hook failed."""
    text = f"failed: {result.failed}"
    answer, policy, reason = result.answer, entry.on_error, f"the hook {entry.label} {text}"
    if policy not in ("deny", "ask"):
        return replace(result, warning=_join(text, result.warning))
    if event.row.kind == "gate":
        if strength(answer) < STRENGTH[policy]:
            answer = Answer(decision=policy, reason=reason, note="error")
    elif event.name in AFTER_CALLS:
        answer = replace(answer, context=(*answer.context, reason), note="error")
    return replace(result, answer=answer, warning=_join(text, result.warning))


def _may_repeat_keys(output: str) -> bool:
    """Whether a key may stand twice in it: keys may be written in different ways (`\\u0061`)."""
    keys = [match[1] for match in _STRING.finditer(output) if match[2]]
    return len(set(keys)) < len(keys) or any("\\" in key for key in keys)


def _join(*texts: str) -> str:
    return "; ".join(filter(None, texts))


UNACCEPTED = "it permits more for later calls, which does not count: nobody has accepted this hook (`cru hooks review`)"
NARROWED = "a hook of a project permits and forbids in that project only, not everywhere"


def limit_updates(entry: HookEntry, result: HookResult, *, is_accepted: bool) -> HookResult:
    """Limit what a hook permits for later calls, and warn of the rest (docs/decisions/answers.md). A hook of a project permits
    nothing beyond its project, and one that is not accepted permits nothing at all. Both may always forbid."""
    updates, warnings = result.answer.updates, []
    if not updates:
        return result
    if not is_accepted:
        tightening = [update.tightening for update in updates]
        if tuple(tightening) != updates:
            warnings.append(UNACCEPTED)
        updates = tuple([replace(update, scope=GrantScope.SESSION) for update in tightening if update is not None])
    elif entry.of_project:
        narrowed = tuple([_within_project(update) for update in updates])
        if narrowed != updates:
            warnings.append(NARROWED)
        updates = narrowed
    text = "; ".join(filter(None, (result.warning, *warnings)))
    return replace(result, answer=replace(result.answer, updates=updates), warning=text)


def _within_project(update: PermissionUpdate) -> PermissionUpdate:
    return replace(update, scope=GrantScope.LOCAL) if update.scope is GrantScope.USER else update
