"""What the requests of an item have used, all runs of it together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cru.core.agents.usage import read_usages, sum_usages
from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import Entry, Usage
from cru.core.conversations.store import FileContext
from cru.core.records.usage import read_requests, sum_up
from cru.core.turn.history import INPUT_TOKENS
from cru.core.turn.idempotency import KEY
from cru.core.turn.spending import UsageTotals


def reported_usage(payload: Mapping[str, Any]) -> UsageTotals:
    """As the `result` of a run has it."""
    return msgspec.convert(payload.get("usage") or {}, UsageTotals)


def count_usage(home: Path, context: str, key: str, reported: UsageTotals) -> UsageTotals:
    """`reported` is of the last run. If the log has more replies to the prompt with this key, earlier runs have died or were handed back:
    then it is what the trace has since the prompt, or the log, if the trace is on another machine; and the records of sub-agents."""
    folder = home / "contexts" / context
    if not folder.is_dir():
        return reported
    try:
        entries = _entries_since(folder, key)
        logged = _sum_replies(entries)
        if logged.requests <= reported.requests:
            return reported
        begin = entries[0].timestamp
        traced = sum_up(request for request in read_requests(folder) if request.time >= begin)
        own = traced if traced.requests >= logged.requests else logged
        return own.joined(_agents_since(folder, begin))
    except CruError:
        return reported


def _entries_since(folder: Path, key: str) -> Sequence[Entry]:
    """The prompt with this key and all after it. Raises ContextError."""
    store = FileContext(folder)
    try:
        entries = list(store.everything())
    finally:
        store.close()
    begin = next((i for i in range(len(entries) - 1, -1, -1) if entries[i].metadata.get(KEY) == key), len(entries))
    return entries[begin:]


def _sum_replies(entries: Iterable[Entry]) -> UsageTotals:
    """By the log alone: it has no tokens of replies that the server did not count, and no unknown prices."""
    totals = UsageTotals()
    for entry in entries:
        if "reply" not in entry.metadata or "model" not in entry.metadata:
            continue
        read, written = (int(entry.metadata.get(name, 0)) for name in (INPUT_TOKENS, "output_tokens"))
        usage = Usage(read, written, cost=entry.metadata.get("cost"), is_estimated=not read + written)
        totals = totals.plus(usage)
        if usage.cost is None and not usage.tokens:
            totals = msgspec.structs.replace(totals, unpriced=totals.unpriced + 1)
    return totals


def _agents_since(folder: Path, begin: float) -> UsageTotals:
    return sum_usages(usage for usage in read_usages(folder) if usage.record.created >= begin)
