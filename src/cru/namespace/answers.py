"""What a Lua handler returned, as our answer (the parse order of crucible 0.28, and what the seeds of cru add)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cru.events.answers import PASS, Answer, Change, Inject, Position, add
from cru.events.catalog import Row
from cru.namespace.host import BadArgument
from cru.namespace.lazy import Lazy, stored
from cru.namespace.vocabulary import field_of, word

POSITIONS: dict[str, Position] = {"user_prefix": "user_prefix", "user_suffix": "user_suffix"}


DECIDING = ("cancel", "deny", "allow", "ask", "halt", "handled")
ADDING = ("inject", "context")
BESIDE = ("reason", "result", "terminate", "model")
"""The words of an answer: those that are true, those that hold what is added, and those that stand beside them."""

UNDERSTOOD = frozenset((
    *DECIDING, *ADDING, *BESIDE, "cancelled",
    "type", "event_type", "summary", "name", "identifier", "timestamp_ms", "is_continuation", "payload",
))  # fmt: skip


# Words of other systems' answers, and ours.
ELSEWHERE = {
    "block": "cancel", "blocked": "cancel", "decision": "cancel, allow or ask", "permissionDecision": "cancel, allow or ask",
    "continue": "halt", "stop": "halt", "approved": "allow", "updated_input": "args", "updatedInput": "args",
    "updated_prompt": "content", "additionalContext": "context",
}  # fmt: skip


class Odd(Exception):
    """The return value means nothing: warn and pass."""


def answer(name: str, row: Row, raw: Any, sent: Mapping[str, Any]) -> Answer:
    """The answer of a return value. `sent` is the payload as the handler got it. Raises BadArgument (the handler's failure)
    for an inject without content, and Odd for a value that means nothing."""
    if raw is None:
        return PASS
    if not isinstance(raw, Mapping):
        raise Odd(f"returned {type(raw).__name__} {str(raw)[:40]!r}; a table or nil is understood")
    if not raw:
        return PASS
    if "type" not in raw:
        decided = _decision(raw, row)
        if decided is not None:
            return decided if decided.stops or decided.inject else add(decided, _transform(name, row, _rest(raw), sent))
    elif row.fails == "deny":
        _unsaid(raw, sent)
    if raw.get("cancelled") is True and row.kind == "gate" and "type" in raw:
        return Answer(decision="deny", reason=str(raw.get("reason") or "cancelled"))
    return _transform(name, row, raw, sent)


def _unsaid(raw: Mapping[str, Any], sent: Mapping[str, Any]) -> None:
    """crucible reads no decision in a returned event. Where it would have guarded something, that is the handler's failure: raises
    BadArgument (docs/decisions/0014)."""
    for key in ("cancel", "deny", "ask", "halt"):
        if key not in sent and raw.get(key):
            raise BadArgument(
                f"the event came back with `{key}` in it, which means nothing", f"return {{{key} = true}} alone"
            )


def misspelt(name: str, row: Row, raw: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, str]:
    """The keys that mean nothing and are nearly a word of an answer or a field that may be changed, and what was probably meant."""
    strays = [key for key in raw.keys() - sent.keys() - UNDERSTOOD if isinstance(key, str)]
    if not strays:
        return {}
    from cru.config.closest import closest

    fields = writable(name, row)
    found = {}
    for key in strays:
        if key in fields:
            continue
        if key in ELSEWHERE:
            found[key] = ELSEWHERE[key]
            continue
        words = [*sorted(fields), *(DECIDING if raw[key] is True else ADDING)]
        if any(one in raw for one in (*DECIDING, *ADDING)):
            words += BESIDE
        meant = closest(key, words)
        if meant:
            found[key] = meant
    return found


def writable(name: str, row: Row) -> set[str]:
    """The keys that a handler of this name may change."""
    return {key for key in (*word(name).keys, *row.writable) if field_of(name, key) in row.writable}


def _decision(raw: Mapping[str, Any], row: Row) -> Answer | None:
    """What the words of an answer say; None if there are none. An inject beside a cancel wins, but never over a halt, nor where the
    event guards something (docs/decisions/0014)."""
    reason = str(raw.get("reason") or "")
    cancels = raw.get("cancel") or raw.get("deny")
    if raw.get("halt"):
        return Answer(decision="deny", halt=True, reason=reason or "halted")
    if cancels and row.fails == "deny":
        return Answer(decision="deny", reason=reason or "cancelled")
    if raw.get("inject") is not None and raw.get("inject") is not False:
        return Answer(inject=_inject(raw["inject"], raw))
    if raw.get("handled"):
        result = raw.get("result")
        return Answer(result=result if result is not None else "", halt=bool(raw.get("terminate")))
    if cancels:
        return Answer(decision="deny", reason=reason or "cancelled")
    context = (raw["context"],) if isinstance(raw.get("context"), str) else ()
    if raw.get("allow"):
        return Answer(decision="allow", reason=reason, context=context)
    if raw.get("ask"):
        return Answer(decision="ask", reason=reason, context=context)
    return Answer(context=context) if context else None


def _rest(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields beside the words of an answer."""
    return {key: value for key, value in raw.items() if key not in (*DECIDING, *ADDING, "reason")}


def _inject(value: Any, raw: Mapping[str, Any]) -> Inject:
    model = raw.get("model") or ""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return Inject(_text(value), model=str(model))
    if not isinstance(value, Mapping):
        raise BadArgument(f"inject must be a text or a table with content, not {type(value).__name__}")
    content = value.get("content")
    if not isinstance(content, str | int | float) or isinstance(content, bool):
        raise BadArgument("inject without content", 'return {inject = {content = "…", position = "user_prefix"}}')
    position = POSITIONS.get(str(value.get("position") or "user_prefix"))
    if position is None:
        raise BadArgument(f"inject: unknown position {value['position']!r}", f"one of {', '.join(POSITIONS)}")
    return Inject(_text(content), position, str(value.get("model") or model))


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)


def _transform(name: str, row: Row, raw: Mapping[str, Any], sent: Mapping[str, Any]) -> Answer:
    """Whatever differs from what was sent, in `payload` or flat, whichever changed."""
    changes: dict[str, Change] = {}
    inner = dict.get(raw, "payload") if isinstance(raw, dict) else raw.get("payload")
    for now in (inner, raw) if isinstance(inner, Mapping) else (raw,):
        for key, value in stored(now):
            if type(value) is Lazy or (key in sent and _same(sent[key], value)):
                continue
            field = field_of(name, key)
            if key in sent or field in row.writable:
                changes[field] = Change(field, "merge" if field == "env" else "set", value)
    return Answer(changes=tuple(changes.values())) if changes else PASS


def _same(before: Any, now: Any) -> bool:
    """Equal, where an absent key counts as null: Lua knows no other null in a table. What a handler was given it may have changed."""
    if type(before) is Lazy:
        before = before.make()
    if before == now:
        return True
    if isinstance(before, dict) and isinstance(now, dict):
        return all(_same(before.get(key), now.get(key)) for key in before.keys() | now.keys())
    if isinstance(before, list) and isinstance(now, (list, tuple)):
        return len(before) == len(now) and all(map(_same, before, now))
    return False
