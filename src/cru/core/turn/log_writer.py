"""Writing the log: every entry is on disk before anything acts on it, and in the history right after."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec

from cru.core.base.values.messages import (
    LEG_ENDED,
    MESSAGE,
    RESOLVED,
    TOOL_CALL,
    TOOL_RESULT,
    Entry,
    Image,
    Thinking,
    ToolCall,
    Usage,
)
from cru.core.conversations import ContextError
from cru.core.conversations.entries import new_id
from cru.core.events.answers import TurnOutcome
from cru.core.events.payloads import FailureKind
from cru.core.events.stream import EntryLogged
from cru.core.tools.protocol import ToolResult
from cru.core.turn.history import IMAGES, INPUT_TOKENS, INTERRUPTED
from cru.core.turn.parts import Parts
from cru.core.turn.turn import CONTINUATION_SOURCES, DONE, Prompt

NOT_COUNTED = Usage()


CARD = "card"
"""Where a prompt's entry in the log has the agent card that it was asked under, in its metadata."""


def write(parts: Parts, *entries: Entry) -> None:
    """Append to the log, take into the history, tell the faces."""
    parts.store.append(*entries)
    for entry in entries:
        parts.history.add(entry)
    parts.bus.stream.tell(EntryLogged(tuple([e.id for e in entries])))


def entry(kind: str, content: str = "", **fields: Any) -> Entry:
    return Entry(id=new_id(), timestamp=int(time.time()), content=content, entry_type=kind, **fields)


def begin_leg(parts: Parts, prompt_of_leg: Prompt, ref: str, *before: Entry) -> str:
    """Log its prompt, and what goes `before` it, unless `ref` is its entry already; the files that it changes are its own."""
    ref = ref or prompt(parts, prompt_of_leg, *before).id
    if not parts.bus.origin.depth:
        parts.services.changes.prompt = ref
    return ref


def prompt(parts: Parts, prompt: Prompt, *before: Entry) -> Entry:
    """Log the original text of a prompt, before anybody had a say, with what goes before it as one write."""
    logged = _prompt(parts, prompt)
    write(parts, *before, logged)
    return logged


def _prompt(parts: Parts, prompt: Prompt) -> Entry:
    metadata: dict[str, Any] = {"source": prompt.source}
    if prompt.attachments:
        metadata["attachments"] = [a.path for a in prompt.attachments]
        if images := [{**msgspec.to_builtins(a.image), "path": a.path} for a in prompt.attachments if a.image]:
            metadata[IMAGES] = images
    if prompt.model:
        metadata["model"] = prompt.model
    if parts.prompt.parent and prompt.source == "user":
        metadata["parent"] = parts.prompt.parent
    if parts.prompt.card is not None:
        metadata[CARD] = {"name": parts.prompt.card.name, "digest": parts.prompt.card.digest}
    if prompt.key:
        metadata["key"] = prompt.key
    if prompt.command:
        metadata["command"] = prompt.command
    if prompt.tasks:
        metadata["tasks"] = list(prompt.tasks)
    logged = entry(
        MESSAGE, prompt.text, from_=parts.prompt.username, to=parts.store.name, role="user", metadata=metadata
    )
    # A continuation carries an id that says so to readers of the log; it is an ordinary message otherwise.
    return msgspec.structs.replace(logged, id=f"msg-{logged.id}") if prompt.source in CONTINUATION_SOURCES else logged


def resolved(
    parts: Parts, ref: str, original: str, text: str, context: Sequence[str], taking: str, model: str = "",
    images: Sequence[Image] = (),
) -> None:  # fmt: skip
    """Write what a prompt became; the text is left out if it is unchanged. `taking`: of the messages in it, see conversations/inbox.py.
    `model`: which one is to answer, if a handler said so; `images`: those that go with it."""
    metadata: dict[str, Any] = {"ref": ref, **({"model": model} if model else {})}
    if text != original:
        metadata["rewritten"] = True
    if context:
        metadata["context"] = list(context)
    if taking:
        metadata["inbox"] = taking
    if images:
        metadata[IMAGES] = [image.digest for image in images]
    write(parts, entry(RESOLVED, text if text != original else "", metadata=metadata))


def blocked(parts: Parts, ref: str, reason: str) -> None:
    write(parts, entry(RESOLVED, metadata={"ref": ref, "blocked": True, "reason": reason}))


def inject(parts: Parts, text: str, tasks: Sequence[str] = ()) -> None:
    """A user message that a handler logged, after results; or cru, which tells the ends of these `tasks`."""
    metadata = {"source": "inject", **({"tasks": list(tasks)} if tasks else {})}
    sender = "cru" if tasks else "hook"
    write(parts, entry(MESSAGE, text, from_=sender, to=parts.store.name, role="user", metadata=metadata))


def reply(
    parts: Parts, text: str, calls: Sequence[ToolCall], thinking: Sequence[Thinking], model: str, *,
    partial: str = "", usage: Usage = NOT_COUNTED,
) -> str:  # fmt: skip
    """One reply of the model as one write: its text, then its calls. `usage`: the tokens of its request as the provider counted them, and
    their cost. Returns the id of the first entry."""
    counts = ((INPUT_TOKENS, usage.input), ("output_tokens", usage.output), ("cost", usage.cost))
    cached = (("cache_read_tokens", usage.cache_read), ("cache_write_tokens", usage.cache_write))
    shared: dict[str, Any] = {"model": model, **{name: count for name, count in (*counts, *cached) if count}}
    if thinking:
        shared["thinking"] = [msgspec.to_builtins(t) for t in thinking]
    if partial:
        shared["partial"] = partial
    entries: list[Entry] = []
    reply_id = new_id()
    if text or not calls:
        # how many calls follow, so that a log torn between them is known to be no final reply
        first = {**shared, "reply": reply_id, **({"calls": len(calls)} if calls else {})}
        entries.append(entry(MESSAGE, text, from_=parts.store.name, to="user", role="agent", metadata=first))
    for call in calls:
        metadata = {"reply": reply_id} if entries else {**shared, "reply": reply_id}
        entries.append(
            entry(
                TOOL_CALL, call.arguments, from_=parts.store.name, to=call.name, tool_call_id=call.id, metadata=metadata
            )
        )
    write(parts, *entries)
    return entries[0].id


def message_of_call(parts: Parts, text: str, call_id: str, model: str) -> str:
    """What a call (call_user) says in the agent's name. The model reads it as the call's result, people as a message."""
    metadata = {"model": model, "call": call_id}
    logged = entry(MESSAGE, text, from_=parts.store.name, to="user", role="agent", metadata=metadata)
    write(parts, logged)
    return logged.id


def result(parts: Parts, call: ToolCall, content: str, is_error: bool, **metadata: Any) -> str:
    """A call's outcome as the model will read it; of the metadata what says something."""
    metadata = {name: value for name, value in metadata.items() if value}
    if IMAGES in metadata:
        metadata[IMAGES] = msgspec.to_builtins(metadata[IMAGES])
    if is_error:
        metadata["is_error"] = True
    logged = entry(TOOL_RESULT, content, from_=call.name, to=parts.store.name, tool_call_id=call.id, metadata=metadata)
    write(parts, logged)
    return logged.id


def tool_result(parts: Parts, call: ToolCall, content: str, of: ToolResult, which: str, text: str) -> str:
    """The same of what a tool gave: `text` is what handlers left of it. If they changed it, its images go: they may say the same."""
    images = of.images if text == of.content else ()
    return result(parts, call, content, of.is_error, which=which, tasks=of.tasks, images=images)


def interrupted(parts: Parts, call: ToolCall) -> None:
    """Log the result of a call that was running when its run was killed or interrupted: what had come of it, if that is known."""
    content, output = INTERRUPTED, parts.tool_services.interrupted.pop(call.id, "")
    if output:
        from cru.core.turn.partial_output import describe_partial

        content = describe_partial(parts, call, output)
    result(parts, call, content, True, which=FailureKind.INTERRUPTED.value)


def leg_ended(parts: Parts, ref: str, cause: str, outcome: TurnOutcome | None = None) -> None:
    """Log the end of a leg, and how its turn ended if that is another story than its cause tells."""
    if not ref:
        return
    metadata: dict[str, Any] = {"ref": ref, "cause": cause}
    if cause in ("done", "halted") and outcome is not None and outcome != DONE:
        metadata["outcome"] = msgspec.to_builtins(outcome)
    write(parts, entry(LEG_ENDED, metadata=metadata))


def transcript(parts: Parts) -> None:
    """Append what was said since to the transcript for people. The log has it: a transcript that cannot be written ends no turn."""
    try:
        parts.store.transcript(parts.store.visible())
    except ContextError as error:
        parts.bus.stream.warn(f"{error.message}; the next turn writes what is missing")


def leg_ended_and_continued(parts: Parts, ref: str, cause: str, prompt: Prompt) -> str:
    """The end of a leg and the prompt of the next as one write, so that no kill falls between; returns the prompt's id."""
    logged = _prompt(parts, prompt)
    write(parts, entry(LEG_ENDED, metadata={"ref": ref, "cause": cause}), logged)
    return logged.id


def resolved_again(parts: Parts, ref: str, text: str, context: Sequence[str]) -> None:
    """`message:before_send` changed the prompt in the first round: a second resolution, the last one wins."""
    metadata: dict[str, Any] = {"ref": ref, "rewritten": True}
    if context:
        metadata["context"] = list(context)
    write(parts, entry(RESOLVED, text, metadata=metadata))
