"""Taking back whole turns, a question beside the conversation, and what its requests have used."""

from __future__ import annotations

import asyncio
from typing import Any

from cru.core.api.arguments import number, options, text, whole
from cru.core.api.context import check_between_prompts, locked
from cru.core.api.dialogs.model_answers import request_text
from cru.core.api.host import NamespaceError, Values
from cru.core.api.sessions.open_sessions import open_sessions
from cru.core.base.values.errors import CruError
from cru.core.conversations.entries import UNDO
from cru.core.conversations.store import ContextStore
from cru.core.records.usage import read_requests, sum_up
from cru.core.turn.parts import Parts
from cru.core.undo.turns import carry_out, plan_undo, refuse_conflicts, turn_starts, undone_turns


def undo(session_id: str | None = None, count: int = 1) -> Values:
    """sessions.undo(id, count=1) -> how many turns the model sees no more, or (nil, message): the last
    ones, each from its prompt on, and what they changed in files (of the main session). Nothing is done if
    somebody else has changed such a file since. The log keeps every line. Not while a message is being answered.

    Example: cru.sessions.undo(nil) --> 0
    """
    where = "cru.sessions.undo"
    try:
        most = whole(where, "count", count, 0)
        sessions = open_sessions()
        if sessions.is_main(session_id):
            parts = sessions.parts
            check_between_prompts(parts, where)
            with locked(parts.store):
                return Values((_undo_main(parts, most), None))
        session = sessions.find(where, session_id)
        session.check_free(where)
        with session.store() as store:
            return Values((_undo_messages(store, most), None))
    except CruError as error:
        return Values((None, error.message))


def _undo_main(parts: Parts, count: int) -> int:
    if not count or not turn_starts(parts.store.visible()):
        return 0
    planned = plan_undo(parts, count)
    refuse_conflicts(planned)
    return len(carry_out(parts, planned).plan.prompts)


def _undo_messages(store: ContextStore, count: int) -> int:
    """What agents of such a session change belongs to the turn of the main session."""
    entries = list(store.visible())
    starts = turn_starts(entries)
    undone = min(count, len(starts))
    if undone:
        store.anchor(UNDO, store.summary(), [entry.id for entry in entries[: starts[-undone]]])
    return undone


def undo_depth(session_id: str | None = None) -> Values:
    """sessions.undo_depth(id) -> how many turns could be taken back, or (nil, message).

    Example: cru.sessions.undo_depth(nil) --> 0
    """
    try:
        with open_sessions().reading("cru.sessions.undo_depth", session_id) as store:
            return Values((len(turn_starts(store.visible())), None))
    except CruError as error:
        return Values((None, error.message))


def can_undo(session_id: str | None = None) -> Values:
    """sessions.can_undo(id) -> whether there is a turn to take back, or (nil, message).

    Example: cru.sessions.can_undo(nil) --> false
    """
    depth, error = undo_depth(session_id)
    return Values((None if depth is None else depth > 0, error))


def undo_history(session_id: str | None = None) -> Values:
    """sessions.undo_history(id) -> {{prompts = {text, ...}}, ...}: what was taken back and can be brought again with /redo, the last
    undo first; or (nil, message).

    Example: #cru.sessions.undo_history(nil) --> 0
    """
    try:
        with open_sessions().reading("cru.sessions.undo_history", session_id) as store:
            return Values(([{"prompts": list(prompts)} for prompts in undone_turns(store)], None))
    except CruError as error:
        return Values((None, error.message))


async def complete(session_id: str | None = None, opts: dict[str, Any] | str | None = None, **named: Any) -> Values:
    """sessions.complete(id, {prompt, system?, timeout=30} | prompt) -> the answer, or (nil, message): one request to the
    model of that session, beside its conversation. Hooks of requests hear it.

    Example: cru.sessions.complete("none", "hello") --> nil
    """
    where = "cru.sessions.complete"
    try:
        fields = (
            {"prompt": opts}
            if isinstance(opts, str)
            else options(where, {**(opts or {}), **named}, ("prompt", "system", "timeout"))
        )
        prompt = text(where, "prompt", fields.get("prompt"))
        system = text(where, "system", fields.get("system") or "")
        seconds = number(where, "timeout", fields.get("timeout", 30), 0)
        sessions = open_sessions()
        model = "" if sessions.is_main(session_id) else sessions.find(where, session_id).record.model
        try:
            async with asyncio.timeout(seconds):
                return Values((await request_text(where, prompt, system, model), None))
        except TimeoutError as error:
            raise NamespaceError(f"{where}: no answer within {seconds:g} s") from error
    except CruError as error:
        return Values((None, error.message))


def cache_stats(session_id: str | None = None) -> Values:
    """sessions.cache_stats(id) -> {requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, hit_rate} of
    all requests of that session, or (nil, message); hit_rate is 0 to 1.

    Example: cru.sessions.cache_stats(nil).requests --> 0
    """
    sessions = open_sessions()
    try:
        is_main = sessions.is_main(session_id)
        folder = (
            sessions.parts.store.folder if is_main else sessions.find("cru.sessions.cache_stats", session_id).folder
        )
        sessions.parts.recorder.flush()
        requests = list(read_requests(folder))
    except CruError as error:
        return Values((None, error.message))
    totals = sum_up(requests)
    counts = {
        "requests": len(requests), "input_tokens": totals.input, "output_tokens": totals.output, "cache_read_tokens": totals.cache_read,
        "cache_write_tokens": totals.cache_write, "hit_rate": totals.cache_read / totals.input if totals.input else 0,
    }  # fmt: skip
    return Values((counts, None))
