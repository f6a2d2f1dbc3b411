"""The answer: one record that every handler returns, in whatever language it is written (docs/events.md).

A dialect only translates into this record; `add` is the one fold, and `apply` the one place where a payload is edited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cache
from typing import Any, Literal, TypeGuard, TypeVar, get_type_hints

import msgspec
from msgspec import Struct, defstruct

from cru.core.events import BadAnswer

LONGEST_NOTICE = LONGEST_REASON = 8_000
"""Characters of a message for a person, and of why something was refused: nobody reads more."""
LONGEST_VALUE = 16_000_000
"""Characters of a text that a handler puts into an event."""

Decision = Literal["none", "allow", "ask", "deny"]
Op = Literal["set", "merge", "prepend", "append", "keep", "drop"]
Position = Literal["user_prefix", "user_suffix"]
P = TypeVar("P", bound=Struct)

OutcomeKind = Literal["done", "gave_up", "out_of_budget", "needs_person", "failed", "interrupted"]
OUTCOMES: tuple[OutcomeKind, ...] = ("done", "gave_up", "out_of_budget", "needs_person", "failed", "interrupted")
"""From best to worst: of two, the worse counts."""
HANDLER_OUTCOMES = OUTCOMES[:-1]

STRENGTH: dict[str, int] = {"none": 0, "allow": 1, "ask": 2, "deny": 3}
HALT = 4


class Change(Struct, frozen=True):
    """One edit of a payload field. merge works on the top-level keys of a table, prepend and append on a text or a list; keep
    and drop name members of a list (a text itself, else its name, ref, id or path)."""

    field: str
    op: Op
    value: Any


class Inject(Struct, frozen=True):
    """Text that goes to the model as a user message; `model` holds for that leg only."""

    content: str
    position: Position = "user_prefix"
    model: str = ""


class TurnOutcome(Struct, frozen=True):
    """How a turn ended (docs/turn.md, "Outcomes").

    reason: one sentence for a person
    open: what is not done
    evidence: what shows that the rest is done
    """

    kind: OutcomeKind
    reason: str = ""
    open: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


class UpdateKind(StrEnum):
    """What becomes of the rules or folders: added, put in the place of all others, taken away; or the mode is changed."""

    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"
    MODE = "mode"


class GrantKind(StrEnum):
    """What is given: a rule of one of the three lists, or a folder that counts as part of the project."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"
    FOLDER = "folder"


class GrantScope(StrEnum):
    """How far it reaches. `local` and `project` both reach as far as the project; each holds only what was given there."""

    SESSION = "session"
    LOCAL = "local"
    PROJECT = "project"
    USER = "user"


TIGHTENING = (GrantKind.ASK, GrantKind.DENY)


class PermissionUpdate(Struct, frozen=True, omit_defaults=True):
    """One change of what is permitted.

    grant: what `items` are; without meaning for a mode
    items: rules in cru's writing, absolute folders, or the one mode
    by: the owner of the handler that gives it; the bus says it
    """

    kind: UpdateKind
    scope: GrantScope = GrantScope.SESSION
    grant: GrantKind = GrantKind.ALLOW
    items: tuple[str, ...] = ()
    by: str = ""

    @property
    def tightening(self) -> PermissionUpdate | None:
        """The part that forbids or asks more than before, which nobody has to permit; None if there is none."""
        if self.kind is UpdateKind.MODE:
            return None
        if self.kind is UpdateKind.REMOVE:
            return None if self.grant in TIGHTENING else self
        if self.grant not in TIGHTENING:
            return None
        return msgspec.structs.replace(self, kind=UpdateKind.ADD) if self.items else None


class Answer(Struct, frozen=True, omit_defaults=True):
    """What a handler decided.

    halt: the announced thing does not happen and the turn ends
    reason: of the decision, for the model and people
    changes: edits of the payload
    context: texts for the model
    context_files: files that are named to the model
    inject: a user message for the model
    result: the handler did the thing instead, and this came of it
    note: for the journal
    updates: what is permitted from now on
    outcome: how the turn ends, if it ends here
    """

    decision: Decision = "none"
    halt: bool = False
    reason: str = ""
    changes: tuple[Change, ...] = ()
    context: tuple[str, ...] = ()
    context_files: tuple[str, ...] = ()
    inject: Inject | None = None
    result: Any = None
    note: str = ""
    updates: tuple[PermissionUpdate, ...] = ()
    outcome: TurnOutcome | None = None

    @property
    def stops(self) -> bool:
        """Cancel or halt: the chain ends after the current group."""
        return self.halt or self.decision == "deny"


PASS = Answer()


def transform(**fields: Any) -> Answer:
    """Set fields of the payload."""
    return Answer(changes=tuple([Change(name, "set", value) for name, value in fields.items()]))


def cancel(reason: str = "cancelled") -> Answer:
    """The announced thing does not happen."""
    return Answer(decision="deny", reason=reason)


def halt(reason: str = "halted") -> Answer:
    """The announced thing does not happen and the turn ends."""
    return Answer(decision="deny", halt=True, reason=reason)


def allow(reason: str = "") -> Answer:
    return Answer(decision="allow", reason=reason)


def ask(reason: str = "") -> Answer:
    return Answer(decision="ask", reason=reason)


def inject(content: str, position: Position = "user_prefix", model: str = "") -> Answer:
    return Answer(inject=Inject(content, position, model))


def add_context(*texts: str) -> Answer:
    return Answer(context=texts)


def handled(result: Any) -> Answer:
    """The handler did it instead. Raises BadAnswer for None, which would mean that it did nothing."""
    if result is None:
        raise BadAnswer("handled without a result", 'use "" for an empty one')
    return Answer(result=result)


def is_whole_result(result: object) -> TypeGuard[dict[str, Any]]:
    """Whether the result of a call is {content, is_error?, terminate?}, rather than the content itself."""
    return isinstance(result, dict) and "content" in result


def strength(answer: Answer) -> int:
    """Halt > cancel (deny) > ask > allow > none."""
    return HALT if answer.halt else STRENGTH[answer.decision]


def add(a: Answer, b: Answer) -> Answer:
    """Fold two answers: the stronger decision wins with its reasons, the first result stays, the last inject wins, the rest
    adds up in order. Associative, and PASS changes nothing."""
    if b is PASS:
        return a
    if a is PASS:
        return b
    left, right = strength(a), strength(b)
    reasons = (a.reason if left >= right else "", b.reason if right >= left else "")
    return Answer(
        decision=a.decision if STRENGTH[a.decision] >= STRENGTH[b.decision] else b.decision,
        halt=a.halt or b.halt,
        reason="\n".join(filter(None, reasons)),
        changes=a.changes + b.changes,
        context=a.context + b.context,
        context_files=a.context_files + b.context_files,
        inject=b.inject or a.inject,
        result=a.result if a.result is not None else b.result,
        note="; ".join(filter(None, (a.note, b.note))),
        updates=a.updates + b.updates,
        outcome=join_outcomes(a.outcome, b.outcome),
    )


def join_outcomes(a: TurnOutcome | None, b: TurnOutcome | None) -> TurnOutcome | None:
    """Fold two outcomes: the worse kind with its reasons, and what is open and shown in both."""
    if a is None or b is None:
        return a or b
    kind = max(a.kind, b.kind, key=OUTCOMES.index)
    reasons = dict.fromkeys(each.reason for each in (a, b) if each.kind == kind and each.reason)
    still_open, evidence = dict.fromkeys(a.open + b.open), dict.fromkeys(a.evidence + b.evidence)
    return TurnOutcome(kind, "; ".join(reasons), tuple(still_open), tuple(evidence))


def stopped(answer: Answer) -> Answer:
    """A cancelled or halted dispatch: injects and context that were gathered in it are dropped."""
    return msgspec.structs.replace(answer, inject=None, context=(), context_files=())


def apply_change(payload: P, change: Change) -> P:
    """The payload with one change, checked against the field's type; raises BadAnswer."""
    edit = _OPS.get(change.op)
    if edit is None:
        raise BadAnswer(f"unknown change `{change.op}`", f"one of {', '.join(_OPS)}")
    holders = _holders(type(payload))
    holder = holders.get(change.field)
    if holder is None:
        raise BadAnswer(f"there is no field `{change.field}`", f"one of {', '.join(holders)}")
    try:
        edited = edit(getattr(payload, change.field), change.value)
        if is_too_large(edited):
            raise BadAnswer(f"{change.op} `{change.field}`: more than {LONGEST_VALUE:,} characters are too many")
        held: Any = msgspec.convert({"value": edited}, holder)
    except (msgspec.ValidationError, TypeError) as error:
        why = str(error).replace("$.value", "$").removesuffix(" - at `$`")
        raise BadAnswer(f"{change.op} `{change.field}`: {why}") from error
    return msgspec.structs.replace(payload, **{change.field: held.value})


@cache
def _holders(payload: type) -> dict[str, type[Struct]]:
    """For each field a record with one `value` of its type: msgspec reads a record's types once, and a bare type every time."""
    types = get_type_hints(payload, include_extras=True)
    return {field: defstruct("Holder", [("value", kind)]) for field, kind in types.items()}


def _merge(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        raise TypeError("only a table can be merged")
    return {**old, **new}


def _many(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _listed(value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError("only a list has members")
    return value


def _append(old: Any, new: Any) -> Any:
    return old + new if isinstance(old, str) else [*_listed(old), *_many(new)]


def _prepend(old: Any, new: Any) -> Any:
    return new + old if isinstance(old, str) else [*_many(new), *_listed(old)]


def _names(item: Any) -> set[str]:
    if isinstance(item, str):
        return {item}
    names = {getattr(item, key, None) for key in _NAMING}
    return {name for name in names if name}


def _keep(old: Any, names: Any) -> Any:
    return [item for item in _listed(old) if not _names(item).isdisjoint(_many(names))]


def _drop(old: Any, names: Any) -> Any:
    return [item for item in _listed(old) if _names(item).isdisjoint(_many(names))]


# What keep and drop know a member by, if it is not a text itself.
_NAMING = ("name", "ref", "id", "path")
_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda _old, new: new,
    "merge": _merge,
    "prepend": _prepend,
    "append": _append,
    "keep": _keep,
    "drop": _drop,
}
OPERATIONS = frozenset(_OPS)


def cut(text: str, limit: int) -> str:
    """The text, or its beginning and how much is missing."""
    return text if len(text) <= limit else f"{text[:limit]} [… {len(text) - limit:,} more characters are left out]"


def is_too_large(value: object) -> bool:
    """Whether a text, or one in a table, has more characters than an event may hold."""
    if type(value) is str:
        return len(value) > LONGEST_VALUE
    if type(value) is dict:
        return sum(len(item) for item in value.values() if type(item) is str) > LONGEST_VALUE
    return False
