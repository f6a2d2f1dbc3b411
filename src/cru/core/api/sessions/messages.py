"""Asking in a session, and reading what was said in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from cru.core.agents.manager import Task
from cru.core.agents.record import CancelledBy
from cru.core.api.agent_requests import agent_tasks
from cru.core.api.arguments import number, options, text, texts, whole
from cru.core.api.callbacks import run_in_background
from cru.core.api.context import check_between_prompts, locked
from cru.core.api.host import BadArgument, NamespaceError, Values, host
from cru.core.api.sessions.feed import EventReader
from cru.core.api.sessions.open_sessions import OpenSession, check_script_session, open_sessions
from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import MESSAGE, Entry
from cru.core.conversations.entries import new_id
from cru.core.turn import log_writer
from cru.core.turn.history import History

ROLES = {"user": "user", "assistant": "agent"}


async def send_message(session_id: str | None, words: str) -> Values:
    """sessions.send_message(id, text) -> the id of the message, or (nil, message). Nobody waits for the answer: `subscribe` and
    `messages` have it. Behind a message that is being answered it waits. To this session it is a prompt: it comes when what runs now
    is done, and in a chat that waits for a person, at once.

    Example: cru.sessions.send_message("none", "hello") --> nil
    """
    where = "cru.sessions.send_message"
    sessions = open_sessions()
    try:
        prompt = text(where, "text", words)
        if not prompt.strip():
            raise BadArgument(f"{where}: text must not be empty")
        if sessions.is_main(session_id):
            host().session.prompt_agent(prompt)
            return Values((f"msg-{new_id()[:8]}", None))
        session = sessions.find(where, session_id)
        if session.is_busy:
            run_in_background(host(), _send_later, session, prompt)
        else:
            await sessions.begin(where, session, prompt)
    except CruError as error:
        return Values((None, error.message))
    return Values((f"msg-{new_id()[:8]}", None))


async def _send_later(session: OpenSession, prompt: str) -> None:
    """What was sent while another message was being answered; what becomes of it is told if that is nothing."""
    where = "cru.sessions.send_message"
    try:
        await open_sessions().begin(where, session, prompt)
    except asyncio.CancelledError:
        host().session.parts.bus.stream.warn(f"{where}: nobody was asked any more: {prompt[:80]}", host().plugin.name)
        raise
    except CruError as error:
        host().session.parts.bus.stream.warn(f"{where}: {prompt[:80]}: {error.message}", host().plugin.name)
        session.feed.tell("ended", reason=error.message)


async def send_and_collect(
    session_id: str, words: str, opts: dict[str, Any] | float | None = None, **named: Any
) -> Values:
    """sessions.send_and_collect(id, text, {timeout=120, max_tool_result_len=500}? | timeout) -> a function that gives one part of the
    answer after the other and nil at its end, or (nil, message). Parts are {type="text", content}, {type="thinking", content},
    {type="tool_call", tool, args_brief}, {type="tool_result", tool, result_brief, is_error}. It raises what went wrong, and after
    `timeout` seconds ends the message. Questions come to the person, in the agent's name.

    Example: cru.sessions.send_and_collect("none", "hello") --> nil
    """
    where = "cru.sessions.send_and_collect"
    try:
        known = ("timeout", "max_tool_result_len", "interactive")
        fields = (
            {"timeout": opts} if isinstance(opts, (int, float)) else options(where, {**(opts or {}), **named}, known)
        )
        seconds = number(where, "timeout", fields.get("timeout", 120), 0)
        longest = whole(where, "max_tool_result_len", fields.get("max_tool_result_len", 500), 0)
        session = check_script_session(where, session_id)
        prompt = text(where, "text", words)
        reader = EventReader()
        async with asyncio.timeout(seconds):
            task = await open_sessions().begin(where, session, prompt, reader)
    except TimeoutError:
        return Values((None, f"{where}: an earlier message, or its guards, took more than {seconds:g} s"))
    except CruError as error:
        return Values((None, error.message))
    return Values((AnswerParts(_parts(where, session, task, reader, seconds, longest)), None))


class AnswerParts:
    """One part of an answer after the other: called, and as an asynchronous iterator."""

    def __init__(self, parts: AsyncIterator[dict[str, Any]]) -> None:
        self._parts = parts

    async def __call__(self, *_: object) -> dict[str, Any] | None:
        return await anext(self._parts, None)

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        return self._parts


async def _parts(
    where: str, session: OpenSession, task: Task, reader: EventReader, seconds: float, longest: int
) -> AsyncIterator[dict[str, Any]]:
    """Raises NamespaceError."""
    deadline = asyncio.get_running_loop().time() + seconds
    thought: list[str] = []
    while True:
        try:
            async with asyncio.timeout_at(deadline):
                event = await reader()
        except TimeoutError as error:
            session.feed.close(reader=reader)
            await agent_tasks(open_sessions().parts.tool_services).manager.cancel(task, CancelledBy.PLUGIN)
            raise NamespaceError(f"{where}: no answer within {seconds:g} s; the message was ended") from error
        if event is None:
            break
        if event["type"] == "thinking":
            thought.append(event["data"]["content"])
            continue
        if thought:
            yield {"type": "thinking", "content": "".join(thought)}
            thought.clear()
        part = _part(event, longest)
        if part is not None:
            yield part
    outcome = task.outcome
    if outcome is not None and (outcome.error or task.is_cancelled):
        raise NamespaceError(f"{where}: {outcome.error or 'the message was ended'}")


def _part(event: dict[str, Any], longest: int) -> dict[str, Any] | None:
    data = event["data"]
    match event["type"]:
        case "message_complete":
            return {"type": "text", "content": data["full_response"]} if data["full_response"] else None
        case "segment_complete":
            return {"type": "text", "content": data["content"]}
        case "tool_call":
            return {
                "type": "tool_call",
                "tool": data["tool"],
                "args_brief": _brief(msgspec.json.encode(data["args"]).decode(), longest),
            }
        case "tool_result":
            result = data["result"]
            brief = _brief(result.get("error") or result.get("result") or "", longest)
            return {"type": "tool_result", "tool": data["tool"], "result_brief": brief, "is_error": "error" in result}
    return None


def _brief(words: str, longest: int) -> str:
    return words if len(words) <= longest else f"{words[:longest]}…"


async def cancel(session_id: str) -> Values:
    """sessions.cancel(id) -> whether a message was being answered; it is ended, with what it started.

    Example: cru.sessions.cancel("none") --> nil
    """
    try:
        session = check_script_session("cru.sessions.cancel", session_id)
    except CruError as error:
        return Values((None, error.message))
    manager = agent_tasks(host().session.parts.tool_services).manager
    return Values((session.task is not None and await manager.cancel(session.task, CancelledBy.PLUGIN), None))


def subscribe(session_id: str | None) -> Values:
    """sessions.subscribe(id) -> a function that waits for the next event and gives {type, data, session_id}; nil once `unsubscribe` was
    called or the session has ended. Types are user_message, text_delta, thinking, tool_call, tool_result, segment_complete,
    message_complete, ended and, for a reader that was too slow, stream_gap {missed}.

    Example: cru.sessions.subscribe("none") --> nil
    """
    try:
        feed = open_sessions().feed_of("cru.sessions.subscribe", session_id)
    except CruError as error:
        return Values((None, error.message))
    here = host()
    here.own(lambda: feed.close(here.plugin.name), ("sessions.subscribe", feed))
    return Values((feed.add(EventReader(), here.plugin.name), None))


def unsubscribe(session_id: str | None) -> Values:
    """sessions.unsubscribe(id) -> whether this plugin was subscribed: all its functions of that session give nil from now on.

    Example: cru.sessions.unsubscribe(nil) --> false
    """
    try:
        feed = open_sessions().feed_of("cru.sessions.unsubscribe", session_id)
    except CruError as error:
        return Values((None, error.message))
    return Values((feed.close(host().plugin.name) > 0, None))


def messages(session_id: str | None, opts: dict[str, Any] | None = None, **named: Any) -> Values:
    """sessions.messages(id, {role?, limit?}?) -> {{role, content, timestamp}, ...} as the model sees them, or (nil, message); role is user,
    assistant or tool; of more than `limit` the last ones. Of a message that is being answered what is in the log.

    Example: #cru.sessions.messages(nil) --> 0
    """
    where = "cru.sessions.messages"
    try:
        fields = options(where, {**(opts or {}), **named}, ("role", "limit"))
        limit = whole(where, "limit", fields["limit"], 0) if fields.get("limit") is not None else None
        with open_sessions().reading(where, session_id) as store:
            entries = list(store.visible())
    except CruError as error:
        return Values((None, error.message))
    times = {entry.id: entry.timestamp for entry in entries}
    lines = [
        {"role": message.role, "content": message.content, "timestamp": times.get(message.ref)}
        for message in History(entries).messages()
        if fields.get("role") in (None, message.role)
    ]
    return Values((lines if limit is None else lines[max(0, len(lines) - limit) :], None))


def inject(session_id: str | None, role: str, content: str) -> Values:
    """sessions.inject(id, role, content) -> true, or (nil, message): adds a message of `user` or `assistant` to the conversation; nobody is
    asked. Not while a message is being answered.

    Example: cru.sessions.inject(nil, "user", "I prefer metres.") --> true
    """
    where = "cru.sessions.inject"
    try:
        entry = _entry(where, role, text(where, "content", content))
        sessions = open_sessions()
        if sessions.is_main(session_id):
            check_between_prompts(sessions.parts, where)
            with locked(sessions.parts.store):
                log_writer.write(sessions.parts, entry)
        else:
            session = sessions.find(where, session_id)
            session.check_free(where)
            with session.store() as store:
                store.append(entry)
    except CruError as error:
        return Values((None, error.message))
    return Values((True, None))


def _entry(where: str, role: str, content: str) -> Entry:
    if role not in ROLES:
        hint = (
            "a system prompt is set by configure_agent, cru.defaults or system_prompt:build" if role == "system" else ""
        )
        raise BadArgument(f"{where}: role must be user or assistant, got {role!r}", hint)
    plugin = host().plugin.name
    return log_writer.entry(MESSAGE, content, from_=plugin, to="", role=ROLES[role], metadata={"source": "script"})


async def collect_subagents(ids: list[str], seconds: float = 120) -> Values:
    """sessions.collect_subagents(ids, seconds=120) -> {{id, status, output?, error?, exit_code?}, ...} in the same order, once all have
    ended or the time is over. Ids are those of sessions, and of tasks of cru.background.

    Example: cru.sessions.collect_subagents({"none"})[1].status --> "unknown"
    """
    where = "cru.sessions.collect_subagents"
    try:
        names = texts(where, "ids", ids)
        longest = number(where, "seconds", seconds, 0)
        tasks = agent_tasks(host().session.parts.tool_services).manager.tasks
    except CruError as error:
        return Values((None, error.message))
    waiting = [asyncio.ensure_future(tasks[name].ended.wait()) for name in names if name in tasks]
    try:
        if waiting:
            await asyncio.wait(waiting, timeout=longest)
    finally:  # whoever asks may have been cancelled
        for future in waiting:
            future.cancel()
    return Values(([_outcome(name, tasks.get(name)) for name in names], None))


def _outcome(name: str, task: Task | None) -> dict[str, Any]:
    if task is None:
        return {"id": name, "status": "unknown", "error": "there is no such task"}
    row: dict[str, Any] = {"id": name, "status": task.record.status.value}
    if task.outcome is not None and task.ended.is_set():
        row |= {
            "output": task.outcome.result,
            "error": task.outcome.error or None,
            "exit_code": task.outcome.exit_status,
        }
    return row
