"""From log entries to the messages that a model reads. Pure: the same entries always give the same messages.

Rules (docs/contexts.md): a user message is sent as its last `message_resolved` says, and not at all if blocked or never
resolved; the entries of one reply form one assistant message; results stand in the model's order, whatever order they were
logged in. Entries of other programs (chibi 0.4 to 0.10) have no resolutions and no reply ids and are read by position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args

import msgspec

from cru.core.base.values.messages import (
    ANCHOR,
    MESSAGE,
    RESOLVED,
    TOOL_CALL,
    TOOL_RESULT,
    Entry,
    Image,
    Message,
    Thinking,
    ToolCall,
)
from cru.core.conversations.entries import anchor_keeps, apply_anchor
from cru.core.turn.turn import PromptSource

# Prompts of these sources count only once they are resolved.
PROMPT_SOURCES: frozenset[str] = frozenset(get_args(PromptSource))
INTERRUPTED = "interrupted, may have run"
IMAGES = "images"
"""Metadata: of a prompt and of a result the images that the context keeps, of a resolution the digests of those that were sent."""
INPUT_TOKENS = "input_tokens"
BYTES_PER_TOKEN = 4
LARGE = 16_384
"""Bytes: half of the smallest window of a chat model in the table of models."""


def project(entries: Sequence[Entry], visible: Iterable[Entry]) -> History:
    """The projection of what is visible of a log. A count from before the newest anchor says nothing about what is left."""
    history = History(visible)
    newest = next((e for e in reversed(entries) if e.entry_type == ANCHOR or e.id == history.counted[0]), None)
    if newest is None or newest.entry_type == ANCHOR:
        history.counted = ("", 0, 0)
    return history


class History:
    """The running projection. `messages` may hold None for a call whose result is not there yet."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._slots: list[Message | None] = []
        self._prompts: dict[str, tuple[int, Entry]] = {}
        self._waiting: dict[str, tuple[int, ToolCall]] = {}
        self._holes = 0
        self._reply = -1
        self._reply_id = ""
        self.size = 0
        self.count = 0
        self.has_images = False
        self.missing_images: set[str] = set()  # what was told of those whose files are gone
        self.counted = ("", 0, 0)  # the newest reply with a count: its entry, the request's tokens, `size` at that time
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Take one more log entry."""
        kind = entry.entry_type
        self.count += 1
        tokens = entry.metadata.get(INPUT_TOKENS)
        if isinstance(tokens, int):
            self.counted = (entry.id, tokens, self.size)
        if kind == MESSAGE:
            self._message(entry)
        elif kind == TOOL_CALL:
            self._call(entry)
        elif kind == TOOL_RESULT:
            self._result(entry)
        elif kind == RESOLVED:
            self._resolved(entry)

    def messages(self) -> tuple[Message, ...]:
        """What the model sees now."""
        if not self._holes:
            return tuple(self._slots)  # type: ignore[arg-type]
        missing = {at: call.id for at, call in self._waiting.values()}
        filled = (
            Message("tool", INTERRUPTED, call_id=missing[at], is_error=True) if at in missing else slot
            for at, slot in enumerate(self._slots)
        )
        return tuple(slot for slot in filled if slot is not None)

    def open_calls(self) -> list[ToolCall]:
        """Calls that have no result."""
        return [call for _, call in self._waiting.values()]

    @property
    def is_large(self) -> bool:
        """Whether it may fill a small model's window, so that it is worth loading the table of models."""
        return self.size >= LARGE

    def tokens(self, around: int) -> int:
        """The size of the next request in tokens, `around` bytes of it beside the messages: as estimated, or as the provider
        counted the last one and what came since, whichever is more."""
        _, counted, then = self.counted
        return max((self.size + around) // BYTES_PER_TOKEN, counted and counted + (self.size - then) // BYTES_PER_TOKEN)

    def _put(self, index: int, message: Message | None) -> None:
        old = self._slots[index]
        self.size += weight(message) - weight(old)
        self._holes += (message is None) - (old is None)
        self._slots[index] = message

    def _new(self, message: Message | None) -> int:
        self._slots.append(message)
        self._holes += message is None
        self.size += weight(message)
        return len(self._slots) - 1

    def _message(self, entry: Entry) -> None:
        if _role(entry) == "assistant":
            if entry.metadata.get("call"):  # what a call said: the model reads it as the call's result
                return
            message = Message("assistant", entry.content, thinking=_thinking(entry), ref=entry.id)
            self._reply = self._new(message)
            self._reply_id = entry.metadata.get("reply", entry.id)
            return
        self._reply, self._reply_id = -1, ""
        if entry.role == "system":
            return
        held_back = entry.metadata.get("source") in PROMPT_SOURCES
        index = self._new(None if held_back else Message("user", entry.content, ref=entry.id))
        self._prompts[entry.id] = (index, entry)

    def _resolved(self, entry: Entry) -> None:
        data = entry.metadata
        known = self._prompts.get(data.get("ref", ""))
        if known is None:
            return
        index, original = known
        if data.get("blocked"):
            self._put(index, None)
            return
        text = entry.content if data.get("rewritten") else original.content
        added = data.get("context", ())
        images = self._images_of(index, original, data)
        self._put(index, Message("user", "\n\n".join([text, *added]), ref=original.id, images=images))

    def _images_of(self, index: int, prompt: Entry, resolution: dict[str, Any]) -> tuple[Image, ...]:
        """Those of a prompt that its resolution names; if it names none, as the resolution before did."""
        if IMAGES not in prompt.metadata:
            return ()
        self.has_images = True
        before = self._slots[index]
        if IMAGES in resolution:
            return tuple(i for i in images_of(prompt) if i.digest in resolution[IMAGES])
        return before.images if before is not None else ()

    def _call(self, entry: Entry) -> None:
        call = ToolCall(entry.tool_call_id or f"call_{entry.id[:8]}", entry.to, entry.content or "{}")
        reply_id = entry.metadata.get("reply", "")
        fits = self._reply >= 0 and (reply_id == self._reply_id if reply_id else True)
        if not fits:
            self._reply = self._new(Message("assistant", thinking=_thinking(entry), ref=entry.id))
            self._reply_id = reply_id
        reply = self._slots[self._reply]
        assert reply is not None
        self._slots[self._reply] = msgspec.structs.replace(reply, calls=(*reply.calls, call))
        self.size += _weight_of_call(call)
        if call.id in self._waiting:  # the id is used again, and the earlier call never got a result
            at, _ = self._waiting.pop(call.id)
            self._put(at, Message("tool", INTERRUPTED, call_id=call.id, is_error=True))
        self._waiting[call.id] = (self._new(None), call)

    def _result(self, entry: Entry) -> None:
        self._reply, self._reply_id = -1, ""
        failed = bool(entry.metadata.get("is_error"))
        call_id = entry.tool_call_id or next(iter(self._waiting), "")
        if call_id not in self._waiting:
            self._new(Message("user", f"[result of {entry.from_ or 'a tool'}]\n{entry.content}", ref=entry.id))
            return
        at, _ = self._waiting.pop(call_id)
        images = images_of(entry)
        self.has_images = self.has_images or bool(images)
        self._put(at, Message("tool", entry.content, call_id=call_id, is_error=failed, ref=entry.id, images=images))


def weight(message: Message | None) -> int:
    """Size in bytes as it counts against the window (four make a token, roughly)."""
    if message is None:
        return 0
    if not message.calls and not message.thinking and not message.images:
        return len(message.content) + len(message.role)
    calls = sum(map(_weight_of_call, message.calls)) + sum(image.tokens * BYTES_PER_TOKEN for image in message.images)
    return len(message.content) + calls + sum(len(t.text) for t in message.thinking) + len(message.role)


def _weight_of_call(call: ToolCall) -> int:
    return len(call.name) + len(call.arguments)


def visible_at(entries: Iterable[Entry], upto: str) -> list[Entry]:
    """What counted when the entry `upto` was the newest: what each anchor keeps of what was seen before it, and what followed."""
    seen: list[Entry] = []
    undone: dict[str, list[Entry]] = {}
    for entry in entries:
        kept = anchor_keeps(entry)
        if kept is None:
            seen.append(entry)
        else:
            seen = apply_anchor(entry, set(kept), list(seen), undone)
        if entry.id == upto:
            break
    return seen


def _thinking(entry: Entry) -> tuple[Thinking, ...]:
    blocks = entry.metadata.get("thinking")
    return msgspec.convert(blocks, tuple[Thinking, ...]) if blocks else ()


def images_of(entry: Entry) -> tuple[Image, ...]:
    """Those that a prompt or a result names."""
    images = entry.metadata.get(IMAGES)
    return msgspec.convert(images, tuple[Image, ...]) if images else ()


def _role(entry: Entry) -> str:
    if entry.role:
        return "assistant" if entry.role in ("agent", "assistant") else "user"
    return "assistant" if entry.to == "user" else "user"
