"""What a command of cru's own dialect prints and exits with: our answer in JSON. Crush's envelope is a part of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from cru.core.base.config.closest import did_you_mean
from cru.core.events.answers import HANDLER_OUTCOMES, PASS, Answer, Change, Inject, TurnOutcome, add
from cru.core.events.catalog import EventRow
from cru.core.hooks.model.result import HookResult, HookRun
from cru.core.hooks.parsing import common

DENY, HALT = 2, 49
DECISIONS: dict[str, Literal["none", "allow", "ask", "deny"]] = {
    "none": "none", "allow": "allow", "approve": "allow", "ask": "ask", "deny": "deny", "block": "deny", "cancel": "deny",
}  # fmt: skip
# What an update means: the payload's field, the first that may be changed at the event.
UPDATES: dict[str, tuple[str, ...]] = {
    "updated_input": ("args",),
    "updated_prompt": ("content", "prompt"),
    "updated_output": ("result", "error", "display", "summary"),
}
NESTED = "hookSpecificOutput"
ENVELOPE = ("version", NESTED)
"""Keys that Crush's hooks may print beside ours."""
# Claude's nested shape, which Crush's hooks may print, in our words.
INNER = {
    "permissionDecision": "decision", "permissionDecisionReason": "reason", "additionalContext": "context",
    "updatedInput": "updated_input", "contextFiles": "context_files",
}  # fmt: skip


class CruOutput(Struct):
    """The JSON object.

    changes: edits {field, op, value}, or a table field → new value
    message: words for the person
    outcome: how the turn ends: a kind, with `reason` beside it, or {kind, reason, open, evidence}
    """

    decision: str | None = None
    halt: bool = False
    reason: str | None = None
    changes: list[Change] | dict[str, Any] | None = None
    updated_input: dict[str, Any] | str | None = None
    updated_prompt: str | None = None
    updated_output: str | None = None
    context: str | list[str | None] | None = None
    context_files: list[str] | None = None
    inject: str | Inject | None = None
    result: Any | UnsetType = UNSET
    message: str | None = None
    outcome: Any = None
    note: str | None = None


KEYS = CruOutput.__struct_encode_fields__


def read_output(run: HookRun, row: EventRow, label: str) -> HookResult:
    """Exit 2 denies, 49 halts, any other status is a failure; so is an output that is not empty and no JSON object of ours."""
    reason = run.stderr.strip()
    if run.exit == DENY:
        return HookResult(Answer(decision="deny", reason=reason or f"blocked by {label}"))
    if run.exit == HALT:
        return HookResult(Answer(decision="deny", halt=True, reason=reason or f"halted by {label}"))
    if run.exit:
        return common.failed_result(run)
    text = run.stdout.strip(common.BLANK)
    if not text:
        return HookResult()
    value, wrong = common.parse_json(text)
    if value is None and not wrong:
        return HookResult()
    if not isinstance(value, dict):
        return HookResult(failed=f"the output is {wrong}" if wrong else "the output is no JSON object")
    return read_object(value, row)


def read_object(value: Mapping[str, object], row: EventRow) -> HookResult:
    """What an object of ours says at the event, with what is nested in it. An unknown key makes it a failure, the rest counts."""
    inner = value.get(NESTED)
    strays = describe_unknown_keys(value, (*KEYS, *ENVELOPE))
    warnings: list[str] = []
    try:
        if inner is not None and not isinstance(inner, Mapping):
            raise _BadOutput(f"`{NESTED}` is no object")
        out = _output({key: field for key, field in value.items() if key in KEYS and key != "outcome"})
        answer = _answer(out, row, warnings)
        if (outcome := _outcome(value.get("outcome"), answer.reason, strays)) is not None:
            answer = replace(answer, outcome=outcome)
        if inner:
            strays += describe_unknown_keys(inner, (*INNER, "hookEventName"))
            nested = _output({ours: inner.get(foreign) for foreign, ours in INNER.items()})
            answer = add(answer, _answer(nested, row, warnings))
    except (msgspec.ValidationError, _BadOutput) as error:
        return HookResult(failed=f"the output does not fit: {error}")
    return HookResult(answer, to_user=out.message or "", warning="; ".join(warnings), failed="; ".join(strays))


def describe_unknown_keys(keys: Iterable[Any], known: Collection[str]) -> list[str]:
    """A sentence for each key that means nothing, with the closest one that does."""
    hints = {key: did_you_mean(str(key), known) for key in keys if key not in known}
    return [f"unknown key `{key}`" + (f" ({hint})" if hint else "") for key, hint in hints.items()]


class _BadOutput(Exception):
    """A value that means nothing."""


def _output(value: dict[str, object]) -> CruOutput:
    """Null is as good as nothing, but for a result."""
    return msgspec.convert(
        {key: field for key, field in value.items() if field is not None or key == "result"}, CruOutput
    )


def _answer(out: CruOutput, row: EventRow, warnings: list[str]) -> Answer:
    decision = DECISIONS.get((out.decision or "none").lower())
    if decision is None:
        raise _BadOutput(f"`decision` is {out.decision!r}, not one of {', '.join(dict.fromkeys(DECISIONS.values()))}")
    if out.halt:
        decision = "deny"
    texts = out.context if isinstance(out.context, list) else [out.context]
    answer = Answer(
        decision=decision, halt=out.halt, reason=out.reason or "", changes=tuple(_changes(out, row, warnings)),
        context=tuple(text for text in texts if text), context_files=tuple(out.context_files or ()),
        inject=Inject(out.inject) if isinstance(out.inject, str) else out.inject,
        result=None if out.result is UNSET else "" if out.result is None else out.result, note=out.note or "",
    )  # fmt: skip
    return PASS if answer == PASS else answer


def _outcome(value: object, reason: str, wrong: list[str]) -> TurnOutcome | None:
    """The outcome. One that means nothing is added to `wrong`, and the rest of the answer counts: a halt beside it must hold."""
    if value is None:
        return None
    table = {"kind": value} if isinstance(value, str) else value
    if isinstance(table, Mapping):
        strays = describe_unknown_keys(table, TurnOutcome.__struct_encode_fields__)
        kind = table.get("kind")
        if isinstance(kind, str) and kind not in HANDLER_OUTCOMES:
            strays.append(f"the kind is {kind!r}, not one of {', '.join(HANDLER_OUTCOMES)}")
        if strays:
            wrong += [f"`outcome`: {stray}" for stray in strays]
            return None
    try:
        return msgspec.convert({"reason": reason, **table} if isinstance(table, Mapping) else table, TurnOutcome)
    except msgspec.ValidationError as error:
        wrong.append(f"`outcome` does not fit: {error}")
        return None


def _changes(out: CruOutput, row: EventRow, warnings: list[str]) -> list[Change]:
    listed = out.changes or []
    changes = (
        [Change(field, "set", value) for field, value in listed.items()] if isinstance(listed, dict) else list(listed)
    )
    for key, fields in UPDATES.items():
        value = getattr(out, key)
        field = next((name for name in fields if name in row.writable), "")
        if value is None:
            continue
        if not field:
            warnings.append(f"`{key}` has no place on {row.name}")
            continue
        if key == "updated_input":
            changes.append(Change(field, "merge", _table(value)))
        else:
            changes.append(Change(field, "set", value))
    return changes


def _table(value: dict[str, object] | str) -> dict[str, object]:
    """An object, or a text that holds one."""
    if isinstance(value, str):
        value, _ = common.parse_json(value)
    if not isinstance(value, dict):
        raise _BadOutput("`updated_input` is no object")
    return value
