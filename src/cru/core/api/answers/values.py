"""The values behind the words of an answer, by their types, and how long they may be. All raise BadArgument, which names the word."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import iscoroutine
from typing import Any

from msgspec.structs import replace

from cru.core.api.host import BadArgument
from cru.core.base.config.closest import did_you_mean
from cru.core.events.answers import HANDLER_OUTCOMES, Answer, Inject, Position, TurnOutcome

DECIDING = ("cancel", "deny", "cancelled", "allow", "ask", "halt", "handled")
ADDING = ("inject", "context")
OUTCOME = "outcome"
"""A word on events that say how a turn ends, and beside a halt; elsewhere a plugin may use it for data of its own."""
BESIDE = {"reason": "", "result": "handled", "terminate": "handled", "model": "inject", "position": "inject"}
"""Those that are true, those that hold what is added, and those that mean something beside another one ("": beside any)."""

WORDS = frozenset((*DECIDING, *ADDING, *BESIDE))
CANCEL = ("cancel", "deny", "cancelled")
REFUSING = frozenset((*CANCEL, "ask", "halt"))
"""With these a handler forbids. One that cannot be read forbids all the same, on every gate."""

LISTED = {"notes:select": "results"}
"""Events on which a list is an answer, an empty one too: it is this field."""


POSITIONS: dict[str, Position] = {"user_prefix": "user_prefix", "user_suffix": "user_suffix"}
INJECT_KEYS = ("content", "position", "model")
OUTCOME_KEYS = ("kind", "reason", "open", "evidence")

LONGEST = 1 << 20
"""Characters of an inject, a context or a result; the rest is left out."""

MOST_ITEMS, LONGEST_ITEM = 100, 500
"""Open items, and pieces of evidence, of an outcome, and characters of each; the rest is left out."""

_KINDS: tuple[tuple[Any, str], ...] = (
    (bool, "a boolean"), (str, "a text"), ((int, float), "a number"), (Mapping, "a table"), (list, "a list"),
)  # fmt: skip


def describe_type(value: object) -> str:
    """What a value is called in messages. A coroutine is closed: nobody will await it any more."""
    if iscoroutine(value):
        value.close()
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    name = "function" if callable(value) and not isinstance(value, type) else type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def check_true(word: str, value: object) -> None:
    """That the value is true. 0, "" and {} are true in Lua and not in Python: neither language's truth counts."""
    if value is not True:
        raise BadArgument(f"`{word}` must be true or false, not {describe_type(value)}", f"return {{{word} = true}}")


def read_text(word: str, value: object) -> str:
    """A text, or a number; "" for None and False (`condition and "text"`). What is no Unicode in it becomes a question mark."""
    if value is None or value is False:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadArgument(f"`{word}` must be a text, not {describe_type(value)}")
    if not isinstance(value, str):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def read_inject(value: object, position: object = None, model: object = None) -> Inject:
    """A text, or {content, position?, model?}; `position` and `model` are those that stand beside it."""
    if isinstance(value, Mapping):
        _check_inject_keys(value)
        position, model = value.get("position") or position, value.get("model") or model
        value = value.get("content")
        if value is None or value is False:
            raise BadArgument("inject without content", 'return {inject = {content = "…", position = "user_prefix"}}')
    elif isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadArgument(f"`inject` must be a text or a table with content, not {describe_type(value)}")
    place = read_text("position", position) or "user_prefix"
    if place not in POSITIONS:
        raise BadArgument(f"inject: unknown position {place!r}", f"one of {', '.join(POSITIONS)}")
    return Inject(read_text("content", value), POSITIONS[place], read_text("model", model))


def _check_inject_keys(value: Mapping[str, object]) -> None:
    """Other systems put more into the table than we read; what is nearly one of our keys was meant to be it."""
    unknown = [key for key in value if key not in INJECT_KEYS and isinstance(key, str)]
    if not unknown:
        return
    for key in unknown:
        if near := did_you_mean(key, INJECT_KEYS):
            raise BadArgument(f"inject: `{key}` means nothing", near)


def read_outcome(value: object, reason: object) -> TurnOutcome:
    """Read a kind of outcome, or a table {kind, reason?, open?, evidence?}; `reason` is the one beside it. Raises BadArgument."""
    table = value if isinstance(value, Mapping) else {"kind": value}
    for key in table:
        if key not in OUTCOME_KEYS:
            raise BadArgument(
                f"outcome: `{key}` means nothing",
                did_you_mean(str(key), OUTCOME_KEYS) or f"one of {', '.join(OUTCOME_KEYS)}",
            )
    kind = read_text("outcome", table.get("kind"))
    if kind not in HANDLER_OUTCOMES:
        raise BadArgument(
            f"outcome: unknown {kind!r}",
            did_you_mean(kind, HANDLER_OUTCOMES) or f"one of {', '.join(HANDLER_OUTCOMES)}",
        )
    texts = {key: _read_texts(f"outcome.{key}", table.get(key)) for key in ("open", "evidence")}
    return TurnOutcome(kind, read_text("reason", table.get("reason") or reason), **texts)


def _read_texts(word: str, value: object) -> tuple[str, ...]:
    """Read a text or a list of texts; Lua's empty table is an empty list."""
    if value is None or value == {}:
        return ()
    texts = value if isinstance(value, list | tuple) else [value]
    return tuple(read_text(word, text)[:LONGEST_ITEM] for text in texts[:MOST_ITEMS])


def limit_texts(answer: Answer) -> Answer:
    """The same with texts of at most LONGEST characters."""
    if answer.context:
        answer = replace(answer, context=tuple(map(_shorten, answer.context)))
    if answer.inject is not None:
        answer = replace(answer, inject=replace(answer.inject, content=_shorten(answer.inject.content)))
    if isinstance(answer.result, str):
        return replace(answer, result=_shorten(answer.result))
    if isinstance(answer.result, dict) and "content" in answer.result:
        return replace(answer, result={**answer.result, "content": _shorten(answer.result["content"])})
    return answer


def _shorten(text: object) -> object:
    if not isinstance(text, str) or len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n[… {len(text) - LONGEST:,} more characters of a handler are left out]"
