"""Opening, looking up, changing and ending sessions."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from cru.core.agents.conversations import ConversationRecord, ConversationState, read_conversations
from cru.core.agents.record import CancelledBy
from cru.core.api.agent_requests import agent_tasks
from cru.core.api.arguments import options, text, texts, warn, whole
from cru.core.api.host import BadArgument, Values, host
from cru.core.api.sessions.open_sessions import OpenSession, check_script_session, open_sessions
from cru.core.base.config.check import in_plain_words
from cru.core.base.config.closest import did_you_mean
from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import ANCHOR, MESSAGE, Entry
from cru.core.conversations.store import FileContext
from cru.core.guard.rules.modes import MODES
from cru.core.turn.history import IMAGES
from cru.core.turn.images import copy_images_of
from cru.core.turn.unfinished import find_unfinished

_AGENT = ("model", "provider", "temperature", "system_prompt", "mode", "tools")
_CREATE = (
    *_AGENT,
    "type",
    "agent_card",
    "agent_name",
    "agent_type",
    "workspace",
    "kilns",
    "recording_mode",
    "configure_agent",
)
_ELSEWHERE = ("endpoint", "provider_key", "tool_policy", "isolation")
"""Options of crucible that something else decides here."""


async def create(opts: dict[str, Any] | str | None = None, **named: Any) -> Values:
    """sessions.create{agent_card="general", model?, tools?, temperature?, system_prompt?, mode?, type="chat"} -> {id, session_type,
    state, kilns, workspace, agent, model, busy, parent_id}, or (nil, message). A conversation with a sub-agent, which goes on from message
    to message; all rules hold in it. `tools` are globs of those that its card allows, {}: none. It is kept in the folder
    of this context. A text in the place of the table is the type.

    Example: cru.sessions.create({agent_card="nobody"}) --> nil
    """
    where = "cru.sessions.create"
    try:
        fields = (
            {"type": opts}
            if isinstance(opts, str)
            else options(where, {**(opts or {}), **named}, (*_CREATE, *_ELSEWHERE))
        )
        _refuse_elsewhere(where, fields)
        sessions = open_sessions()
        root = str(sessions.parts.place.root)
        if fields.get("workspace", root) != root:
            raise BadArgument(f"{where}: a session works in this project, {root}")
        name = text(where, "agent_card", fields.get("agent_card") or fields.get("agent_name") or "general")
        card = agent_tasks(sessions.parts.tool_services).cards().find(name)
        record = ConversationRecord(type=text(where, "type", fields.get("type", "chat")), agent=card.name)
        _configure(where, record, fields)
        return Values((describe(sessions.add(record)), None))
    except CruError as error:
        return Values((None, error.message))


def _refuse_elsewhere(where: str, fields: dict[str, Any]) -> None:
    """Raises BadArgument."""
    if fields.get("kilns"):
        warn(f"{where}: kilns has no effect: its agent has the tools of its card")
    if fields.get("agent_type") not in (None, "internal"):
        raise BadArgument(f"{where}: only agents of cru can be asked, not {fields['agent_type']}")
    for name in _ELSEWHERE:
        if fields.get(name) not in (None, "none", False):
            raise BadArgument(f"{where}: {name} cannot be chosen here", "settings and the agent's card say it")


def _configure(where: str, record: ConversationRecord, fields: dict[str, Any]) -> None:
    """Raises BadArgument; the record is as it was then."""
    changed = {
        name: fields[name] for name in ("model", "temperature", "system_prompt", "mode", "tools") if name in fields
    }
    if changed.get("tools") is not None:
        changed["tools"] = tuple(texts(where, "tools", changed["tools"]))
    if changed.get("mode", "") not in ("", *MODES):
        mode = text(where, "mode", changed["mode"])
        raise BadArgument(
            f"{where}: unknown mode `{mode}`", did_you_mean(mode, MODES) or f"modes are {', '.join(MODES)}"
        )
    if provider := fields.get("provider"):
        changed["model"] = f"{text(where, 'provider', provider)}:{text(where, 'model', fields.get('model'))}"
    try:
        checked = msgspec.convert({**msgspec.to_builtins(record), **changed}, ConversationRecord)
    except msgspec.ValidationError as error:
        what, _, name = str(error).partition(" - at `$.")
        raise BadArgument(f"{where}: {name.rstrip('`')}: {in_plain_words(what)}") from error
    if checked.temperature is not None and not 0 <= checked.temperature <= 2:
        raise BadArgument(f"{where}: temperature must be 0 to 2, got {checked.temperature}")
    for name in changed:
        setattr(record, name, getattr(checked, name))


def describe(session: OpenSession) -> dict[str, Any]:
    record, root = session.record, host().session.parts.place.root
    return {
        "id": record.id, "session_type": record.type, "state": record.state.value, "kilns": [], "workspace": str(root),
        "agent": record.agent, "model": record.model, "busy": session.is_busy, "parent_id": record.parent or None,
        "started_at": record.created, "last_activity": record.used,
    }  # fmt: skip


async def _describe_main() -> dict[str, Any]:
    parts = host().session.parts
    return {
        "id": parts.store.session_id, "session_type": "chat", "state": ConversationState.ACTIVE.value, "kilns": [],
        "workspace": str(parts.place.root), "agent": "main", "model": (await parts.models.choose("")).label, "parent_id": None,
        "busy": find_unfinished(parts.store.visible(), parts.place.root) is not None,
    }  # fmt: skip


async def get(session_id: str | None = None) -> Values:
    """sessions.get(id) -> what `create` gives, of this session, too; (nil, nil) if there is none.

    Example: cru.sessions.get("none") --> nil
    """
    sessions = open_sessions()
    try:
        if sessions.is_main(session_id):
            return Values((await _describe_main(), None))
        return Values((describe(sessions.find("cru.sessions.get", session_id)), None))
    except BadArgument as error:
        return Values((None, error.message))
    except CruError:
        return Values((None, None))


async def list_() -> Values:
    """sessions.list() -> this session, then all that scripts have opened in this context, each as `get` gives it.

    Example: #cru.sessions.list() --> 1
    """
    sessions = open_sessions()
    records = read_conversations(sessions.parts.store.folder)
    try:
        others = [describe(sessions.find("cru.sessions.list", record.id)) for record in records]
        return Values(([await _describe_main(), *others], None))
    except CruError as error:
        return Values((None, error.message))


def configure_agent(session_id: str, cfg: dict[str, Any] | None = None, **named: Any) -> Values:
    """sessions.configure_agent(id, {model?, tools?, temperature?, system_prompt?, mode?}) -> true, or (nil, message). It holds from the
    next message on; tools and mode only narrow what the agent's card allows.

    Example: cru.sessions.configure_agent("none", {mode="plan"}) --> nil
    """
    where = "cru.sessions.configure_agent"
    try:
        session = check_script_session(where, session_id)
        _configure(where, session.record, options(where, {**(cfg or {}), **named}, _AGENT))
        session.save()
    except CruError as error:
        return Values((None, error.message))
    return Values((True, None))


def pause(session_id: str) -> Values:
    """sessions.pause(id) -> true, or (nil, message): it takes no more messages until `resume`.

    Example: cru.sessions.pause("none") --> nil
    """
    return _set_state("cru.sessions.pause", session_id, ConversationState.PAUSED)


def resume(session_id: str) -> Values:
    """sessions.resume(id) -> true, or (nil, message): a paused session takes messages again.

    Example: cru.sessions.resume("none") --> nil
    """
    return _set_state("cru.sessions.resume", session_id, ConversationState.ACTIVE)


async def end_session(session_id: str) -> Values:
    """sessions.end_session(id) -> true, or (nil, message). What it does is ended, and it takes no more messages; what was said stays.

    Example: cru.sessions.end_session("none") --> nil
    """
    where = "cru.sessions.end_session"
    done = _set_state(where, session_id, ConversationState.ENDED)
    if done[0]:
        session = check_script_session(where, session_id)
        if session.task is not None:
            await agent_tasks(host().session.parts.tool_services).manager.cancel(session.task, CancelledBy.PLUGIN)
        session.feed.tell("ended", reason="ended by a script")
        session.feed.close()
    return done


def _set_state(where: str, session_id: str, state: ConversationState) -> Values:
    try:
        session = check_script_session(where, session_id)
        if session.record.state is ConversationState.ENDED and state is not ConversationState.ENDED:
            raise BadArgument(f"{where}: the session {session.id} has ended")
        session.record.state, session.record.used = state, time.time()
        session.save()
    except CruError as error:
        return Values((None, error.message))
    return Values((True, None))


def fork(session_id: str | None, opts: dict[str, Any] | int | None = None, **named: Any) -> Values:
    """sessions.fork(id, {up_to} | n) -> {id, parent_id, messages_copied}, or (nil, message): a session of its own with the first n
    messages of that one, or all, but no prompt that is still being answered.

    Example: cru.sessions.fork("none") --> nil
    """
    where = "cru.sessions.fork"
    try:
        fields = (
            {"up_to": opts} if isinstance(opts, (int, float)) else options(where, {**(opts or {}), **named}, ("up_to",))
        )
        count = whole(where, "up_to", fields["up_to"], 0) if fields.get("up_to") is not None else None
        sessions = open_sessions()
        with sessions.reading(where, session_id) as store:
            summary, entries = store.summary(), _first_messages(_finished(store.visible()), count)
            parent = store.session_id if sessions.is_main(session_id) else str(session_id)
        origin = None if sessions.is_main(session_id) else sessions.find(where, session_id).record
        settings = (
            {}
            if origin is None
            else {n: getattr(origin, n) for n in ("agent", "model", "temperature", "system_prompt", "mode", "tools")}
        )
        session = sessions.add(ConversationRecord(parent=parent, **settings))
        with session.store() as copy:
            _copy(copy, entries, summary, store.folder)
    except CruError as error:
        return Values((None, error.message))
    messages = sum(entry.entry_type == MESSAGE for entry in entries)
    return Values(({"id": session.id, "parent_id": parent, "messages_copied": messages}, None))


def _copy(store: FileContext, entries: list[Entry], summary: str, source: Path) -> None:
    if any(IMAGES in entry.metadata for entry in entries):
        copy_images_of(entries, source, store.folder)
    if entries:
        store.append(*entries)
    if summary:
        store.anchor("compaction", summary, [entry.id for entry in entries])


def _finished(entries: list[Entry]) -> list[Entry]:
    """Without a prompt that is still being answered."""
    prompt = find_unfinished(entries, host().session.parts.place.root)
    if prompt is None:
        return list(entries)
    return entries[: next(at for at, entry in enumerate(entries) if entry.id == prompt.ref)]


def _first_messages(entries: list[Entry], count: int | None) -> list[Entry]:
    places = [at for at, entry in enumerate(entries) if entry.entry_type == MESSAGE]
    if count is None or count >= len(places):
        return [entry for entry in entries if entry.entry_type != ANCHOR]
    return entries[: places[count]]
