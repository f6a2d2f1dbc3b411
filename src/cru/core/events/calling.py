"""Calling other people's code: whatever it does, what comes back is an Answer or an Exception."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable
from copy import deepcopy
from math import isfinite
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.values.errors import CruError
from cru.core.events import BadAnswer, TooSlow
from cru.core.events.answers import LONGEST_NOTICE, OPERATIONS, PASS, STRENGTH, Answer, Change, cut
from cru.core.events.registry import Handler
from cru.core.events.stamp import Event

ASYNC_LIMIT = 60.0
DEEPEST_COPY, LARGEST = 20, 2**63 - 1
"""Levels of tables, and the integers, that are copied without a look at JSON."""
SLOW = 0.25
"""Seconds of one step after which everything else has waited too long."""


class LastSlowStep:
    """When the person was last warned of a slow step, in the whole process: the steps around it are not to blame."""

    at = 0.0


async def await_answer(handler: Handler, raw: Any) -> Answer:
    """Wait for what a handler returned, if it is to be waited for. Raises BadAnswer, TooSlow, and what the handler raises."""
    if hasattr(raw, "__await__"):
        raw = await _within(handler, raw)
    return validate_answer(raw)


async def in_thread(handler: Handler, event: Event) -> Answer:
    """Run plain code in a thread of its own. A daemon: one that hangs is abandoned at the limit and keeps no exit waiting."""
    import contextvars
    import threading

    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(value: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((value, error))

    def work() -> None:
        value, error = None, None
        try:
            value = context.run(handler.call, event)
        except BaseException as raised:  # noqa: BLE001  carried to the loop, and raised there
            error = raised
        try:
            loop.call_soon_threadsafe(deliver, value, error)
        except RuntimeError:  # the loop is closed: nobody waits any more
            pass

    threading.Thread(target=work, name=f"handler of {handler.owner}", daemon=True).start()
    value, error = await _within(handler, done)
    if error is not None:
        raise error
    return await await_answer(handler, value)


def validate_answer(raw: Any) -> Answer:
    """The answer, read as if it came over a wire: every field has its type, and nothing in it belongs to the handler any
    more. Raises BadAnswer."""
    if raw is None or raw is PASS:
        return PASS
    if not isinstance(raw, Answer):
        raise BadAnswer(f"answered with {type(raw).__name__}, not an Answer")
    copy = _copied_answer(raw)
    if copy is not None:
        return copy
    try:
        answer = _decoder().decode(msgspec.json.encode(raw))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        raise BadAnswer(f"the answer does not fit: {error}") from error
    if answer != raw:  # it is dear to look inside, and what came back the same holds none
        for change in raw.changes:
            _no_bytes(change.value, change.field)
        _no_bytes(raw.result, "result")
    return answer


class _NotPlain(Exception):
    """A value of which JSON might make another one."""


def _copied_answer(raw: Answer) -> Answer | None:
    """A copy of an answer of the most frequent kind: a decision, changes and texts. None of others, which JSON may change or refuse."""
    if not _is_usual(raw):
        return None
    if not raw.changes:
        return raw
    try:
        return replace(raw, changes=tuple([_copied_change(change) for change in raw.changes]))
    except _NotPlain:
        return None


def _is_usual(raw: Answer) -> bool:
    if type(raw) is not Answer or raw.result is not None or raw.inject or raw.outcome or type(raw.halt) is not bool:
        return False
    if raw.updates:
        return False
    if type(raw.changes) is not tuple or type(raw.context) is not tuple or type(raw.context_files) is not tuple:
        return False
    for text in (raw.decision, raw.reason, raw.note, *raw.context, *raw.context_files):
        if type(text) is not str or not text.isascii():
            return False
    return raw.decision in STRENGTH


def _copied_change(change: Change) -> Change:
    if type(change) is not Change or type(change.op) is not str or change.op not in OPERATIONS:
        raise _NotPlain
    if type(change.field) is not str or not change.field.isascii():
        raise _NotPlain
    return Change(change.field, change.op, _copied_data(change.value, DEEPEST_COPY))


def _copied_data(value: Any, depth: int) -> Any:
    """A copy of what JSON would give back as it is. Raises _NotPlain."""
    kind = type(value)
    if (kind is str and value.isascii()) or kind is bool or value is None:
        return value
    if kind is dict and depth:
        copy = {}
        for key, item in value.items():
            if type(key) is not str or not key.isascii():
                raise _NotPlain
            kind = type(item)
            is_plain = item.isascii() if kind is str else kind is int and -LARGEST <= item <= LARGEST
            copy[key] = item if is_plain else _copied_data(item, depth - 1)
        return copy
    if kind is list and depth:
        return [_copied_data(item, depth - 1) for item in value]
    if (kind is int and -LARGEST <= value <= LARGEST) or (kind is float and isfinite(value)):
        return value
    raise _NotPlain


def describe_error(raised: BaseException) -> str:
    """What went wrong, on one line where possible, for people and the journal."""
    if isinstance(raised, CruError):
        message = cut(raised.message, LONGEST_NOTICE) or f"{type(raised).__name__} without a message"
        return f"{message} ({raised.hint})" if raised.hint else message
    try:
        text = cut(str(raised), LONGEST_NOTICE)
        return f"{type(raised).__name__}: {text}" if text else type(raised).__name__
    except BaseException as again:  # noqa: BLE001  the boundary around other people's code: told in its place
        return f"{type(raised).__name__}, whose text cannot be made ({type(again).__name__})"


def _no_bytes(value: Any, where: str) -> None:
    """Raises BadAnswer: as JSON they would become base64, which nobody asked for."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise BadAnswer(f"the answer does not fit: `{where}` holds bytes", "value.decode() makes a text of them")
    if type(value) is not str and isinstance(value, (dict, list, tuple, set)):
        for item in value.values() if isinstance(value, dict) else value:
            _no_bytes(item, where)


async def _within(handler: Handler, work: Awaitable[Any]) -> Any:
    limit = handler.limit or ASYNC_LIMIT
    try:
        async with asyncio.timeout(limit) as clock:
            return await work
    except TimeoutError as error:
        if clock.expired():
            raise TooSlow(f"no answer within {limit:g} s") from error
        raise  # the handler's own


@functools.cache
def _decoder() -> msgspec.json.Decoder[Answer]:
    return msgspec.json.Decoder(Answer)


_FIXED = frozenset({str, int, float, bool, type(None)})


@functools.cache
def _changeable_fields(kind: type[Struct]) -> tuple[str, ...]:
    """Fields of a payload that can be changed in place."""
    hints = kind.__annotations__
    return tuple(f for f in kind.__struct_fields__ if str(hints[f]).startswith(("dict", "Any", "list")))


def copy_payload(payload: Struct) -> Struct:
    """The payload with copies of whatever can be changed in place: only an answer changes an event, never a side effect."""
    fields = _changeable_fields(type(payload))
    if not fields:
        return payload
    copies = {}
    for field in fields:  # deepcopy, at a tenth of the price for tables of texts and numbers
        value = getattr(payload, field)
        kind = type(value)
        flat = kind is dict and _FIXED.issuperset(map(type, value.values()))
        copies[field] = value.copy() if flat else value if kind in _FIXED else deepcopy(value)
    return replace(payload, **copies)
