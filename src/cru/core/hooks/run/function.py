"""Entries in Lua and Python: functions that run in the session, with the tables and answers that handlers of plugins have.

Each is a handler in its own right: it sees what the handlers before it changed, and runs before the commands of its priority. Its code is
loaded when it is first called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction
from time import perf_counter
from typing import Any

from msgspec.structs import replace

from cru.core.api.answers.misspelled_keys import writable_keys
from cru.core.api.answers.parse import KNOWN
from cru.core.api.answers.values import DECIDING
from cru.core.api.event_table.lazy import raw_items
from cru.core.api.handlers import PluginHandler
from cru.core.api.host import Host
from cru.core.api.on import NO_LIMIT
from cru.core.events import registry
from cru.core.events.answers import Answer, add
from cru.core.events.calling import await_answer, describe_error, in_thread
from cru.core.events.catalog import EventRow
from cru.core.events.stamp import Event
from cru.core.hooks.dialects.cru.output import ENVELOPE, KEYS, describe_unknown_keys, read_object
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.mapping import Dialect, EventMapping
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.records import CANCELLED, make_firing
from cru.core.hooks.run.command import CommandHook, apply_failure_policy
from cru.core.hooks.run.languages import BadFunction
from cru.core.hooks.run.port import HookRuntime
from cru.core.hooks.trust.guard import deny_answer

COMMAND_WORDS = frozenset((*KEYS, *ENVELOPE))
PLUGIN_WORDS = tuple(word for word in DECIDING if word not in COMMAND_WORDS)


class FunctionRevoked(BadFunction):
    """It is not what a person has trusted any more."""


class FunctionHook(CommandHook):
    """A function of an entry, as the bus calls it. What it raises goes to the bus, which denies where a handler's failure denies."""

    copies = True

    def __init__(self, entry: HookEntry, dialect: Dialect, mapping: EventMapping, runtime: HookRuntime) -> None:
        super().__init__(entry, dialect, mapping, runtime)
        self._handler: registry.Handler | None = None
        self._extras: dict[int, HookResult] = {}  # by dispatch

    async def __call__(self, event: Event) -> Answer:
        started, result = perf_counter(), HookResult(failed=CANCELLED)
        runtime = self._runtime
        try:
            result = await self._call(event)
        except Exception as raised:
            text = describe_error(raised)
            result = runtime.redact(HookResult(failed=text))
            if isinstance(raised, FunctionRevoked):
                result = replace(result, answer=deny_answer(self._entry, event))
            if self._entry.on_error in ("deny", "ask") or result.answer.stops:
                result = apply_failure_policy(self._entry, event, result)
            else:
                result = self._with_bus_denial(event, result)
                if result.failed == text:
                    raise
                raise BadFunction(result.failed) from None
        finally:
            ms = (perf_counter() - started) * 1000
            run = HookRun(None if result.failed else 0, ms=ms, error=result.failed)
            runtime.record(make_firing(self._entry, self._mapping.name, event, b"", run, result))
        if result.to_user:
            runtime.notify(self._entry, result.to_user)
        if result.warning:
            runtime.warn(self._entry, result.warning)
        return result.answer

    async def _call(self, event: Event) -> HookResult:
        """Call the function. Raises BadFunction, and what the function raises."""
        matcher_error = self._matcher_errors.pop(event.stamp.dispatch_seq, "")
        if matcher_error:
            raise BadFunction(matcher_error)
        handler = await self._load()
        with self._waiting():
            answer = await (in_thread(handler, event) if handler.thread else await_answer(handler, handler.call(event)))
        extras = self._extras.pop(event.stamp.dispatch_seq, HookResult())
        result = self._runtime.redact(replace(extras, answer=answer))
        if result.failed and not answer.stops:
            raise BadFunction(result.failed)
        return apply_failure_policy(self._entry, event, result) if result.failed else result

    def _with_bus_denial(self, event: Event, result: HookResult) -> HookResult:
        """What a failure that goes to the bus means, for the record."""
        if event.row.kind != "gate" or event.row.fails != "deny" or self._entry.on_error:
            return result
        return replace(result, answer=Answer(decision="deny", reason=result.failed, note="error"))

    async def _load(self) -> registry.Handler:
        """Its function, loaded when it is first called. Plain code in Python gets a thread, since nothing else could end it."""
        entry, runtime = self._entry, self._runtime
        why = runtime.explain_revocation(entry)
        if why:
            raise FunctionRevoked(why)
        if self._handler is None:
            if entry.of_project:
                for name in runtime.facts.secret_names:
                    os.environ.pop(name, None)
            event_name = self._mapping.event
            host, function = await runtime.languages().load_function(entry)
            call = _FunctionHandler(self._extras, host, event_name, function, entry)
            is_plain = entry.kind == "python" and not iscoroutinefunction(function)
            self._handler = registry.Handler(
                0, event_name, call, entry.owner, limit=function_limit(entry), thread=is_plain
            )
        return self._handler


class _FunctionHandler(PluginHandler):
    """A function as a plugin's handler, whose return value may be in the words of commands, too. `extras` keeps what else it said."""

    def __init__(
        self, extras: dict[int, HookResult], host: Host, name: str, function: Callable[..., Any], entry: HookEntry
    ) -> None:
        super().__init__(host, name, function, entry.priority, entry.label)
        self._extras = extras

    def _read_answer(self, event: Event, result: object, sent: Mapping[str, object]) -> Answer:
        if isinstance(result, Answer):
            return result
        if not isinstance(result, Mapping):
            raise BadFunction(
                f"returned {type(result).__name__} {str(result)[:40]!r}; a table or nothing is understood"
            )
        rest, extras = _split_returned(self.name, event.row, result, sent)
        answer = add(super()._read_answer(event, rest, sent), extras.answer)
        self._extras[event.stamp.dispatch_seq] = extras
        return answer


def _split_returned(
    name: str, row: EventRow, raw: Mapping[Any, Any], sent: Mapping[str, object]
) -> tuple[Mapping[Any, Any], HookResult]:
    """(what is in the words of plugins, what the others say). A key that means nothing is a failure, and the rest counts."""
    fields = writable_keys(name, row)
    event = raw if "type" in raw else ()  # it gave back what it got: only what was not there before are words
    words = {key for key in raw if key in COMMAND_WORDS and key not in fields and not (event and key in sent)}
    if words <= KNOWN or any(raw.get(word) for word in PLUGIN_WORDS):
        words -= KNOWN  # words that both have
    strays = [key for key in raw if not (key in words or key in KNOWN or key in fields or key in sent)]
    if not words and not strays:
        return raw, HookResult()
    rest = {key: value for key, value in raw_items(raw) if key not in words and key not in strays}
    result = read_object({key: raw[key] for key in words}, row)
    warnings = describe_unknown_keys(strays, (*KNOWN, *COMMAND_WORDS, *fields))
    return rest, replace(result, failed="; ".join(filter(None, (result.failed, *warnings))))


def function_limit(entry: HookEntry) -> float:
    """Seconds of waiting. Lua has a limit of its own, which stands still while a dialog is open."""
    return NO_LIMIT if entry.kind == "lua" else float(entry.timeout)
