"""The first of two requests of an automatic compaction: the model chooses what may go."""

from __future__ import annotations

import re

import msgspec

from cru.core.base.bundled import CHOICE
from cru.core.base.values.messages import Span
from cru.core.events.stream import Notice
from cru.core.models.protocol import ModelError
from cru.core.turn import NothingToCompact
from cru.core.turn.compaction import requests
from cru.core.turn.compaction.units import Offer, Unit
from cru.core.turn.parts import Parts, ResolvedModel

SHOWN = 500
"""Characters of a unit that the model sees when it chooses."""
_ARRAY = re.compile(r"\[[^\[\]]*\]")


async def choose(parts: Parts, resolved: ResolvedModel, offered: Offer) -> set[int] | None:
    """The candidates that go, by their places; None: the oldest, since the setting wants it so, there is nothing to choose, or no
    usable choice came (which is told). Raises TurnStopped."""
    if parts.settings.compaction_choice != "model" or offered.count >= len(offered.candidates):
        return None
    try:
        answer = await requests.ask(parts, resolved, Span("compaction", "cru", CHOICE), question(parts, offered))
        return read(answer, offered)
    except (ModelError, NothingToCompact) as error:
        parts.bus.stream.tell(Notice("info", f"compaction takes the oldest messages: {error.message}"))
        return None


def question(parts: Parts, offered: Offer) -> str:
    """What the model chooses from; ids count from 1."""
    messages = [
        {"id": str(number), "role": unit.messages[0].role, "content": _short(unit)}
        for number, unit in enumerate(offered.candidates, 1)
    ]
    listed = "[messages]\n[" + ",\n".join(msgspec.json.encode(m).decode() for m in messages) + "]"
    task = f"Choose about {offered.count} of these {len(messages)} messages."
    return "\n\n".join([*requests.texts(parts), listed, task])


def read(answer: str, offered: Offer) -> set[int]:
    """The choice in an answer: the first JSON array of ids, whatever stands around it. Unknown ids do not count; if what is left is
    less than half of what was asked for, or everything, it is no choice. Raises NothingToCompact."""
    ids = next(filter(None, map(_ids, _ARRAY.findall(answer))), [])
    if not ids:
        raise NothingToCompact("the model named none")
    known = {str(number + 1): number for number in range(len(offered.candidates))}
    chosen = {known[i] for i in ids if i in known}
    if len(chosen) * 2 < offered.count:
        raise NothingToCompact(f"the model named {len(chosen)} of about {offered.count}")
    if len(chosen) == len(known):
        raise NothingToCompact("the model named them all")
    return chosen


def _ids(text: str) -> list[str]:
    try:
        return [str(entry_id) for entry_id in msgspec.json.decode(text, type=list[str | int])]
    except (msgspec.DecodeError, RecursionError):
        return []


def _short(unit: Unit) -> str:
    first, *rest = unit.messages
    text = "\n".join([requests.said(first), *map(requests.line, rest)])
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
