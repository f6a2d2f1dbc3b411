"""What a handler of a plugin returned, as our answer. Every part of it counts, or is told, or fails the handler by name
(docs/events.md, "What goes together"; docs/decisions/answers.md)."""

from __future__ import annotations

from collections.abc import Container, Mapping
from contextlib import suppress
from inspect import iscoroutine
from typing import NamedTuple

from msgspec.structs import asdict, replace

from cru.core.api.answers.values import (
    BESIDE,
    CANCEL,
    DECIDING,
    LISTED,
    OUTCOME,
    REFUSING,
    WORDS,
    check_true,
    describe_type,
    limit_texts,
    read_inject,
    read_outcome,
    read_text,
)
from cru.core.api.event_table.lazy import Lazy, LazyDict, raw_items
from cru.core.api.event_table.table import SentFields, field_of
from cru.core.api.host import BadArgument, Values
from cru.core.api.plain_data import check as check_data
from cru.core.events import BadAnswer
from cru.core.events.answers import PASS, Answer, Change, Decision, is_whole_result
from cru.core.events.catalog import EventRow

KNOWN = WORDS | {"type", "event_type", "summary", "name", "identifier", "timestamp_ms", "is_continuation", "payload"}
"""The words, and what every event has beside its fields."""
DEFAULT_REASON = "cancelled"
"""The reason of a cancel without one."""
SHOWN = 80
"""Characters of a text that is no answer."""


class ParsedAnswer(NamedTuple):
    """What a return value says.

    answer: as ours
    warnings: by key, what of the returned value does not count; told once
    added: what the event had not, for the handlers behind this one
    """

    answer: Answer
    warnings: Mapping[str, str] = {}
    added: Mapping[str, object] = {}


DECIDING_KEYS = frozenset(DECIDING)
_FLAT = frozenset({str, int, float, bool})
_DATA = _FLAT | {dict, list}
NO_ANSWER = ParsedAnswer(PASS)


def parse_answer(name: str, row: EventRow, raw: object, sent: Mapping[str, object]) -> ParsedAnswer:
    """The answer of a return value. `sent` is the payload as the handler got it. Raises BadAnswer (the handler's failure) for what
    cannot be read whole."""
    if row.name in LISTED and (listed := _listed(LISTED[row.name], raw)) is not None:
        return ParsedAnswer(Answer(changes=(Change(LISTED[row.name], "set", listed),)))
    if not isinstance(raw, Mapping):
        return _parse_scalar(row, raw)
    if not raw:
        return NO_ANSWER
    if type(sent) is SentFields:
        changes = _changed_event(row, raw, sent) if isinstance(raw, LazyDict) else _changed_fields(row, raw, sent)
        if changes is not None:
            return ParsedAnswer(Answer(changes=changes)) if changes else NO_ANSWER
    words = _words_of(row, raw, sent)
    try:
        flat = _merge_payload(raw, sent)
        if flat is not raw:
            words = _words_of(row, flat, sent)
        return _parse_table(name, row, flat, sent, words)
    except BadArgument as error:
        raise BadAnswer(error.message, error.hint, refuses=_refuses(row, words)) from error


def _listed(field: str, raw: object) -> list[object] | None:
    """The list that an answer is, or has as nothing but that field; Lua's empty table is one."""
    inner = raw[field] if isinstance(raw, Mapping) and raw.keys() == {field} else raw
    return list(inner) if isinstance(inner, list | tuple) else [] if inner == {} else None


def _changed_fields(row: EventRow, raw: Mapping[str, object], sent: SentFields) -> tuple[Change, ...] | None:
    """The changes of an event that came back with nothing in it but fields that may be changed; None of others."""
    if type(raw) is not dict or "type" not in raw:
        return None
    changes = []
    for key, value in raw.items():
        if key == "type":
            continue
        if key not in row.writable or key not in sent or type(value) not in _DATA:
            return None
        same = _is_same_table(sent.source(key), value)
        if not (_is_unchanged(sent[key], value) if same is None else same):
            changes.append(_make_change(key, value))
    return tuple(changes)


def _changed_event(row: EventRow, event: LazyDict, sent: SentFields) -> tuple[Change, ...] | None:
    """The same of an event that came back in Python: it has the keys that it had, and nobody has read its `payload`."""
    if event.keys() != sent.shape.all_keys or type(_payload_of(event)) is not Lazy:
        return None
    changes = []
    for field, before in asdict(sent.event.payload).items():
        now = dict.get(event, field)
        if now is before or type(now) is Lazy:
            continue
        same = _is_same_table(before, now)
        if same or (same is None and _is_unchanged(sent[field], now)):
            continue
        if field not in row.writable or type(now) not in _DATA:
            return None
        changes.append(_make_change(field, now))
    return tuple(changes)


def _make_change(field: str, value: object) -> Change:
    return Change(field, "merge" if field == "env" else "set", value)


def _words_of(row: EventRow, raw: Mapping[str, object], sent: Mapping[str, object]) -> dict[str, object]:
    """The words of an answer that are not absent. In an event that came back, what it has a field for is that field."""
    fields = sent if "type" in raw else ()
    known = {*WORDS, OUTCOME} if OUTCOME in raw and (row.outcome or raw.get("halt")) else WORDS
    return {
        key: value
        for key, value in raw_items(raw)
        if key in known and value is not None and value is not False and key not in fields
    }


def _parse_table(
    name: str, row: EventRow, raw: Mapping[str, object], sent: Mapping[str, object], words: dict[str, object]
) -> ParsedAnswer:
    warnings = _find_misspelled(name, row, raw, sent, words)
    _check_decides(name, row, raw, sent, warnings)
    if words:
        _check_partners(name, row, sent, words)
        answer = _from_words(name, row, words, warnings)
        answer = replace(answer, changes=_changes(name, row, raw, sent, words))
        answer = limit_texts(_without_stopped(row, words, answer, warnings))
    else:
        changes = _changes(name, row, raw, sent, words)
        answer = Answer(changes=changes) if changes else PASS
    added = _added(row, raw, sent, words)
    return ParsedAnswer(answer, warnings, added) if warnings or added or answer is not PASS else NO_ANSWER


def _added(
    row: EventRow, raw: Mapping[str, object], sent: Mapping[str, object], words: Container[str]
) -> dict[str, object]:
    """What the handler put beside the fields of the event, as far as it is data."""
    added: dict[str, object] = {}
    for key, value in raw_items(raw):
        if key in sent or key in KNOWN or key in words or key in row.writable or type(value) not in _DATA:
            continue
        with suppress(BadArgument):  # it holds what no other language can be given: it stays the handler's own
            check_data(key, value)
            added[key] = value
    return added


def _parse_scalar(row: EventRow, raw: object) -> ParsedAnswer:
    """`condition and {…}` gives false, and in Python whatever is empty: that passes. Any other scalar passes as in crucible, but not on an
    event that guards something, where nobody can tell what it says. Anything else was meant to say something, too: raises BadAnswer."""
    if raw is None:
        return NO_ANSWER
    what = f"returned {_describe(raw)}"
    is_scalar = isinstance(raw, bool | int | float | str | Values) or (isinstance(raw, list | tuple) and not raw)
    if not is_scalar or (row.fails == "deny" and raw):
        raise BadAnswer(f"{what}; a table or nil is understood", "return {…} with the words of an answer")
    return ParsedAnswer(PASS, {"": f"{what}; a table or nil is understood"})


def _describe(raw: object) -> str:
    """What was returned, in the words of Lua; short."""
    if isinstance(raw, Values):
        return ", ".join(map(_describe, raw))
    if raw is None or isinstance(raw, bool):
        return "nil" if raw is None else str(raw).lower()
    if isinstance(raw, int | float | str):
        return f"{describe_type(raw)} {str(raw)[:SHOWN]!r}"
    return describe_type(raw)


def _payload_of(raw: Mapping[str, object]) -> object:
    return dict.get(raw, "payload") if isinstance(raw, LazyDict) else raw.get("payload")


def _merge_payload(raw: Mapping[str, object], sent: Mapping[str, object]) -> Mapping[str, object]:
    """With what the handler put into `payload` and the payload had not."""
    inner = _payload_of(raw)
    if inner is None or type(inner) is Lazy or "payload" in sent:
        return raw
    if not isinstance(inner, Mapping):
        raise BadArgument(f"`payload` must be a table, not {describe_type(inner)}")
    added = {key: value for key, value in raw_items(inner) if key not in sent}
    return {**added, **dict(raw_items(raw))} if added else raw


def _find_misspelled(
    name: str, row: EventRow, raw: Mapping[str, object], sent: Mapping[str, object], words: Container[str]
) -> dict[str, str]:
    """Keys that mean nothing and were probably meant to. Where the event guards something, or where it was a no that a gate would have
    heard, that is the handler's failure: raises BadAnswer."""
    known = (sent, KNOWN, row.writable, words, (OUTCOME,) if row.outcome else ())
    unknown = [key for key in raw if not any(key in names for names in known)]
    if not unknown:
        return {}
    from cru.core.api.answers.misspelled_keys import find_misspelled

    warnings = {}
    for key, match, refuses in find_misspelled(name, row, raw, [key for key in unknown if isinstance(key, str)]):
        what, hint = f"returned `{key}`, which means nothing on {name}", f"did you mean `{match}`?"
        if row.kind == "gate" and (refuses or row.fails == "deny"):
            raise BadAnswer(what, hint, refuses=True)
        warnings[key] = f"{what}; {hint}"
    return warnings


def _check_decides(
    name: str, row: EventRow, raw: Mapping[str, object], sent: Mapping[str, object], warnings: dict[str, str]
) -> None:
    """A guard that gives an error was meant to forbid something. A reason alone is told only: a `cancel` that is nil cannot be seen in
    Lua."""
    if row.fails != "deny" or not DECIDING_KEYS.isdisjoint(raw):
        return
    values = dict(raw_items(raw))
    if values.get("error") and type(values["error"]) is not Lazy and values["error"] != sent.get("error"):
        hint = "return {cancel = true, reason = …} to forbid it"
        raise BadArgument(f"`error` without a decision means nothing on {name}", hint)
    if values.get("reason") and "reason" not in sent:
        warnings["reason"] = f"`reason` without a decision means nothing on {name}"


def _check_partners(name: str, row: EventRow, sent: Mapping[str, object], words: dict[str, object]) -> None:
    """A word that stands beside another one needs it; a field of the event of the same name needs nothing."""
    for key, partner in BESIDE.items():
        if key not in words or not partner or partner in words:
            continue
        if key not in sent and field_of(name, key) not in row.writable:
            raise BadArgument(f"`{key}` without `{partner}` means nothing on {name}")
        del words[key]


def _from_words(name: str, row: EventRow, words: Mapping[str, object], warnings: dict[str, str]) -> Answer:
    """The answer that the words make, each by its type."""
    for key in (*DECIDING, "terminate"):
        if key in words:
            check_true(key, words[key])
    words = _without_idle_cancel(row, words, warnings)
    if "terminate" in words and row.name != "tool:before_call":
        warnings["terminate"] = f"`terminate` means nothing on {name}"
    for key in ("ask", "allow"):
        if key in words and row.fails != "deny":  # nobody is asked there
            what = f"`{key}` means nothing on {name}"
            if key == "ask" and row.kind == "gate":
                raise BadArgument(what, "return {cancel = true} to forbid it")
            warnings[key] = what
    if "ask" in words and "handled" in words:
        raise BadArgument("`ask` beside `handled`: what is done already cannot be asked", "return one of them")
    decision, reason = _decision(words, warnings), read_text("reason", words.get("reason"))
    return Answer(
        decision=decision,
        halt="halt" in words,
        reason=(reason or _reason(words)) if decision != "none" else "",
        context=(read_text("context", words["context"]),) if "context" in words else (),
        inject=read_inject(words["inject"], words.get("position"), words.get("model")) if "inject" in words else None,
        result=_result(row, words) if "handled" in words else None,
        outcome=read_outcome(words[OUTCOME], words.get("reason")) if OUTCOME in words else None,
    )


def _without_idle_cancel(row: EventRow, words: Mapping[str, object], warnings: dict[str, str]) -> Mapping[str, object]:
    """The words without a cancel that would forbid nothing and stands beside an inject: crucible reads the inject first and such an
    answer lets the handlers behind it run (docs/decisions/answers.md)."""
    cancel = _cancels(words)
    if not cancel or "inject" not in words or "halt" in words or (row.kind == "gate" and row.name != "turn:complete"):
        return words
    warnings[cancel] = f"`{cancel}` beside `inject` is left out: the handlers behind it run"
    return {key: value for key, value in words.items() if key not in CANCEL}


def _result(row: EventRow, words: Mapping[str, object]) -> object:
    """What the handler did instead; of a call with the note that the turn is to end with it."""
    result = words.get("result", "")
    if "terminate" not in words or row.name != "tool:before_call":
        return result
    return {**(result if is_whole_result(result) else {"content": result}), "terminate": True}


def _decision(words: Mapping[str, object], warnings: Mapping[str, str]) -> Decision:
    if "halt" in words or _cancels(words):
        return "deny"
    if "ask" in words and "ask" not in warnings:
        return "ask"
    return "allow" if "allow" in words and "allow" not in warnings else "none"


def _reason(words: Mapping[str, object]) -> str:
    return "halted" if "halt" in words else DEFAULT_REASON if _cancels(words) else ""


def _cancels(words: Mapping[str, object]) -> str:
    """The word that cancels, if one does."""
    return next((word for word in CANCEL if word in words), "")


def _without_stopped(row: EventRow, words: Mapping[str, object], answer: Answer, warnings: dict[str, str]) -> Answer:
    """The answer without what a stop leaves no room for. A cancel of a plugin on `turn:complete` only stops the handlers behind it."""
    stop = "halt" if "halt" in words else _cancels(words)
    without: dict[str, object] = {}
    if answer.halt or (answer.decision == "deny" and row.kind == "gate" and row.name != "turn:complete"):
        without.update(context=(), inject=None)
    if answer.decision == "deny" and row.kind == "gate" and (answer.halt or row.name != "turn:complete"):
        without.update(result=None, changes=())
    for part in without:
        if part == "changes":
            warnings.update(
                {change.field: f"`{change.field}` beside `{stop}` is left out" for change in answer.changes}
            )
        elif getattr(answer, part) not in ((), None):
            warnings[part] = f"`{part}` beside `{stop}` is left out"
    return replace(answer, **without) if without else answer


def _refuses(row: EventRow, words: Mapping[str, object]) -> bool:
    """Whether a gate would have heard a no."""
    no = ("halt",) if row.name == "turn:complete" else REFUSING
    return row.kind == "gate" and any(word in words for word in no)


def _changes(
    name: str, row: EventRow, raw: Mapping[str, object], sent: Mapping[str, object], words: Container[str]
) -> tuple[Change, ...]:
    """Whatever differs from what was sent, in `payload` or flat, whichever changed, but for the words that were `said`."""
    changes: dict[str, Change] = {}
    inner = _payload_of(raw)
    for now in (inner, raw) if isinstance(inner, Mapping) else (raw,):
        for key, value in raw_items(now):
            if type(value) is Lazy or key in words or (key in sent and _is_unchanged(sent[key], value)):
                continue
            field = field_of(name, key)
            if key not in sent and field not in row.writable:
                continue
            if iscoroutine(value):
                describe_type(value)
                raise BadArgument(f"`{key}` is a coroutine that nobody awaited", "await it")
            if field in changes and changes[field].value != value:
                raise BadArgument(f"`{key}` and `payload.{key}` differ", "change one of them")
            changes[field] = _make_change(field, value)
    if type(raw) is LazyDict:
        _check_complete(name, row, raw, sent)
    return tuple(changes.values())


def _check_complete(name: str, row: EventRow, event: LazyDict, sent: Mapping[str, object]) -> None:
    """That nothing that may be changed was taken out: that would change nothing."""
    for key in sent:
        if key not in event and field_of(name, key) in row.writable:
            raise BadArgument(f"`{key}` was taken out of the event", "give it a value")


def _is_same_table(before: object, now: object) -> bool | None:
    """Whether they are equal; None if they are no tables, or that takes a closer look."""
    if type(before) is not dict or type(now) is not dict:
        return None
    if before == now:
        return True
    return False if before.keys() == now.keys() and _FLAT.issuperset(map(type, before.values())) else None


def _is_unchanged(before: object, now: object) -> bool:
    """Equal, where an absent key counts as null: Lua knows no other null in a table. What a handler was given it may have changed."""
    if type(before) is Lazy:
        same = _is_same_table(before.small, now)
        if same is not None:
            return same
        before = before.make()
    if before == now:
        return True
    if isinstance(before, dict) and isinstance(now, dict):
        return all(_is_unchanged(before.get(key), now.get(key)) for key in before.keys() | now.keys())
    if isinstance(before, list) and isinstance(now, (list, tuple)):
        return len(before) == len(now) and all(map(_is_unchanged, before, now))
    return False
