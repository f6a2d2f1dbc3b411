"""A prompt with a key is asked once: whoever sends it again goes on with it, or gets the answer that it had (docs/json.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast, get_args

import msgspec
from msgspec import Struct

from cru.core.base.values.messages import LEG_ENDED, MESSAGE, RESOLVED, Entry
from cru.core.events.answers import TurnOutcome
from cru.core.events.payloads import Attachment
from cru.core.turn import KeyPassedBy, NothingToResume
from cru.core.turn.history import PROMPT_SOURCES
from cru.core.turn.prompts import RETRY, final_reply
from cru.core.turn.session import Session
from cru.core.turn.turn import TYPED_SOURCES, Cause, LegResult, end_turn

KEY = "key"
"""Where a prompt's entry in the log has it, in its metadata."""


class EarlierPrompt(Struct, frozen=True):
    """What the log has of a prompt with a key.

    result: how its last leg ended
    is_finished: it needs no run any more
    is_last: no other prompt followed it
    """

    result: LegResult
    is_finished: bool
    is_last: bool


async def send_once(
    session: Session, key: str, text: str, attachments: tuple[Attachment, ...] = (), literal: bool = False
) -> tuple[LegResult, bool]:
    """Ask, go on, or give the answer again, under the context's lock; also whether this run did anything for it. Raises KeyPassedBy, and
    what a session's run and resume raise."""
    with session.locked():
        earlier = find_earlier(session.parts.store.everything(), key)
        if earlier is None:
            session.submit(text, attachments=attachments, literal=literal, key=key)
            return await session.run() or LegResult("done"), True
        if earlier.is_finished:
            return await _answer_again(session, earlier)
        if not earlier.is_last:
            raise KeyPassedBy(
                "the prompt with this key was not finished, and another one followed it in this context",
                f"cru -G {session.parts.store.name} 20 shows them; another key asks again",
            )
        return await session.resume(), True


async def _answer_again(session: Session, earlier: EarlierPrompt) -> tuple[LegResult, bool]:
    """The answer that it had, unless a kill has cut off sub-agents which the run waited for: then what the model makes of that."""
    try:
        if earlier.is_last:
            return await session.resume(), True
    except NothingToResume:
        pass  # as it mostly is
    return earlier.result, False


def find_earlier(entries: Iterable[Entry], key: str) -> EarlierPrompt | None:
    """The last prompt with this key, None if there is none."""
    span: list[Entry] = []
    is_last = True
    for entry in entries:
        if entry.entry_type == MESSAGE and entry.metadata.get(KEY) == key:
            span, is_last = [entry], True
        elif span and is_last:
            is_last = not _starts_turn(entry)
            if is_last:
                span.append(entry)
    return _earlier(span, is_last) if span else None


def _starts_turn(entry: Entry) -> bool:
    source = entry.metadata.get("source")
    return entry.entry_type == MESSAGE and source in (*TYPED_SOURCES, "inbox")


def _earlier(span: list[Entry], is_last: bool) -> EarlierPrompt:
    prompts = [e for e in span if e.entry_type == MESSAGE and e.metadata.get("source") in PROMPT_SOURCES]
    blocked = next((e for e in span if e.entry_type == RESOLVED and e.metadata.get("blocked")), None)
    ends = [e.metadata for e in span if e.entry_type == LEG_ENDED]
    last = prompts[-1].id
    cause = ends[-1].get("cause", "") if ends and ends[-1].get("ref") == last else ""
    reason = str(blocked.metadata.get("reason", "")) if blocked is not None else ""
    is_finished = cause in get_args(Cause) and cause not in RETRY
    result = LegResult(
        cast(Cause, cause) if is_finished else "interrupted", final_reply(span, last) or "", last, reason=reason
    )
    if is_finished and "outcome" in ends[-1]:
        result = end_turn(result, _read_outcome(ends[-1]["outcome"]))
    return EarlierPrompt(result, is_finished, is_last)


def _read_outcome(saved: object) -> TurnOutcome:
    try:
        return msgspec.convert(saved, TurnOutcome)
    except msgspec.ValidationError as error:
        return TurnOutcome("failed", f"how it ended is damaged in the log: {error}")
