"""`cru.context`: what the model sees of the conversation, how large it is, and how to change that between prompts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from cru.core.api.arguments import options, text, whole
from cru.core.api.dialogs.ui import check_session
from cru.core.api.host import BadArgument, NamespaceError, Values, host
from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import MESSAGE, TOOL_CALL, Entry
from cru.core.conversations.store import ContextStore
from cru.core.events.answers import PASS, Answer
from cru.core.events.stamp import Event
from cru.core.turn import compaction
from cru.core.turn.history import BYTES_PER_TOKEN, History
from cru.core.turn.parts import Parts
from cru.core.turn.unfinished import find_unfinished

ATTACH_LIMIT = 2000
_ATTACHED = "attached"


def estimate_tokens(words: str) -> int:
    """context.estimate_tokens(text) -> its bytes divided by four, rounded up.

    Example: cru.context.estimate_tokens("hello") --> 2
    """
    content = text("cru.context.estimate_tokens", "text", words)
    return (len(content.encode("utf-8", "surrogateescape")) + 3) // 4


async def usage(session_id: str | None = None) -> Values:
    """context.usage(session_id) -> {messages, prompt_tokens, budget, percent}, or (nil, message). Tokens are estimated; a budget of 0
    means that the model's window is not known.

    Example: cru.context.usage(nil).messages --> 0
    """
    parts = host().session.parts
    try:
        check_session("cru.context.usage", session_id)
        fill = compaction.fill(parts, await parts.models.choose(""), parts.prompt.sections())
    except CruError as error:
        return Values((None, error.message))
    sections = sum(len(span.text) for span in parts.prompt.sections())
    used = fill.used or (parts.history.size + sections) // BYTES_PER_TOKEN
    percent = round(fill.percent, 1)
    return Values(
        (
            {
                "messages": len(parts.history.messages()),
                "prompt_tokens": used,
                "budget": fill.limit,
                "percent": percent,
            },
            None,
        )
    )


async def compact(session_id: str | None = None) -> Values:
    """context.compact(session_id) -> true, or (nil, message): nothing to compact, a prompt is being answered, or the model failed.
    The log keeps every line.

    Example: cru.context.compact(nil) --> nil
    """
    parts = host().session.parts
    try:
        check_session("cru.context.compact", session_id)
        check_between_prompts(parts, "cru.context.compact")
        with locked(parts.store):
            await compaction.compact_by_hand(parts, await parts.models.choose(""))
    except CruError as error:
        return Values((None, error.message))
    return Values((True, None))


def messages(session_id: str | None = None) -> Values:
    """context.messages(session_id) -> {{role, content}, ...} as the model sees them; role is user, assistant or tool.

    Example: #cru.context.messages(nil) --> 0
    """
    try:
        check_session("cru.context.messages", session_id)
    except BadArgument as error:
        return Values((None, error.message))
    history = host().session.parts.history.messages()
    return Values(([{"role": message.role, "content": message.content} for message in history], None))


def remove(session_id: str | None, which: dict[str, object]) -> Values:
    """context.remove(session_id, {type="all"} | {type="first"|"last", n=} | {type="indices", start=, ["end"]=}) -> how many messages the
    model sees no more, or (nil, message). Indices count from 0, the end is not included. Calls and results go with their reply. The
    log keeps every line. Not while a prompt is being answered.

    Example: cru.context.remove(nil, {type="all"}) --> 0
    """
    parts = host().session.parts
    try:
        where = "cru.context.remove"
        check_session(where, session_id)
        fields = options(where, which, ("type", "n", "start", "end"))
        check_between_prompts(parts, where)
        entries = parts.store.visible()
        messages = [entry for entry in entries if entry.entry_type == MESSAGE]
        removed = _select(where, fields, messages)
        if removed:
            remaining = _remaining(entries, {entry.id for entry in removed})
            with locked(parts.store):
                parts.store.anchor("compaction", parts.store.summary(), [entry.id for entry in remaining])
                parts.history = History(parts.store.visible())
    except CruError as error:
        return Values((None, error.message))
    return Values((len(removed), None))


def attach(session_id: str | None, words: str, opts: dict[str, object] | None = None) -> Values | bool:
    """context.attach(session_id, text, {key}?) -> true, or (false, reason). Adds the text to the next prompt; a key that was used before
    adds nothing, and a session takes 2,000 characters in all.

    Example: cru.context.attach(nil, "Today is Monday.", {key="day"}) --> true
    """
    where = "cru.context.attach"
    try:
        check_session(where, session_id)
        content = text(where, "text", words)
        key = options(where, opts, ("key",)).get("key")
    except BadArgument as error:
        return Values((False, error.message))
    attachments, owner = _attachments(), host()
    if key is not None and key in attachments.keys:
        return Values((False, f"`{key}` is attached already"))
    if attachments.used + len(content) > ATTACH_LIMIT:
        return Values((False, f"a session takes {ATTACH_LIMIT} characters, {ATTACH_LIMIT - attachments.used} are left"))
    attachments.take(owner.plugin.name, content, key)
    owner.own(lambda: attachments.drop(owner.plugin.name), _ATTACHED)
    return True


class _Attached:
    """What waits for the next prompt."""

    def __init__(self) -> None:
        self.keys: dict[object, str] = {}
        self.used = 0
        self._texts: list[tuple[str, str]] = []

    def take(self, owner: str, words: str, key: object) -> None:
        self._texts.append((owner, words))
        self.used += len(words)
        if key is not None:
            self.keys[key] = owner

    def drop(self, owner: str) -> None:
        """Forget what a plugin attached and nobody has read yet; its keys may be used again."""
        self.used -= sum(len(words) for name, words in self._texts if name == owner)
        self._texts = [item for item in self._texts if item[0] != owner]
        self.keys = {key: name for key, name in self.keys.items() if name != owner}

    def hand_over(self, _event: Event) -> Answer:
        if not self._texts:
            return PASS
        texts, self._texts = tuple(words for _, words in self._texts), []
        return Answer(context=texts)


def _attachments() -> _Attached:
    session = host().session

    def make() -> _Attached:
        attached = _Attached()
        session.parts.bus.registry.on("message:received", attached.hand_over, owner="cru", where="cru.context.attach")
        return attached

    return session.family_state(_ATTACHED, make)


def check_between_prompts(parts: Parts, where: str) -> None:
    """Raises NamespaceError while a prompt is being answered."""
    if find_unfinished(parts.store.visible(), parts.place.root) is not None:
        hint = "do it on turn:complete or session:idle"
        raise NamespaceError(f"{where}: a prompt is being answered; {hint}", hint)


def locked(store: ContextStore) -> AbstractContextManager[None]:
    """The context's lock, unless this session holds it already."""
    return nullcontext() if store.is_held else store.lock("a script")


def _select(where: str, fields: dict[str, object], messages: Sequence[Entry]) -> Sequence[Entry]:
    kind = fields.get("type")
    if kind == "all":
        return messages
    if kind in ("first", "last"):
        count = whole(where, "n", fields.get("n", 1), 0)
        return messages[:count] if kind == "first" else messages[max(0, len(messages) - count) :]
    if kind == "indices":
        start, end = whole(where, "start", fields.get("start"), 0), whole(where, "end", fields.get("end"), 0)
        return messages[start:end]
    raise BadArgument(f"{where}: unknown type `{kind}`", "types are all, first, last, indices")


def _remaining(entries: Sequence[Entry], removed: set[str]) -> list[Entry]:
    """The entries that stay: what refers to a message, and the calls and results of a reply, go with it."""
    return list(_remaining_entries(entries, removed, set()))


def _remaining_entries(entries: Sequence[Entry], removed: set[str], calls: set[str]) -> Iterator[Entry]:
    replies = {entry.metadata.get("reply", entry.id) for entry in entries if entry.id in removed}
    for entry in entries:
        if entry.entry_type == TOOL_CALL and entry.metadata.get("reply") in replies:
            calls.add(entry.tool_call_id)
        elif entry.entry_type == TOOL_CALL:
            calls.discard(entry.tool_call_id)
        if (
            entry.id in removed
            or entry.metadata.get("ref") in removed
            or (entry.tool_call_id and entry.tool_call_id in calls)
        ):
            continue
        yield entry
