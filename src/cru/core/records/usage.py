"""What requests have used, out of the trace: one after another, so that a long trace takes no memory (`/cost`, `cru trace`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.values.messages import Usage
from cru.core.conversations.entries import BROKEN
from cru.core.conversations.record_files import RecordFiles
from cru.core.models.prices import table_cost
from cru.core.records.requests import TraceLine
from cru.core.records.trace import FILE
from cru.core.turn.spending import UsageTotals, format_cost

_REQUEST, _REPLY = b'{"k":"request",', b'{"k":"reply",'


class RecordedRequest(Struct, frozen=True):
    """A request of the trace. usage: as recorded; None: nothing is known of how it ended (a kill)."""

    n: int
    turn: str
    provider: str
    model: str
    time: float
    base_url: str = ""
    purpose: str = ""
    category: str = ""
    usage: Usage | None = None

    @property
    def label(self) -> str:
        return f"{self.provider}:{self.model}"


class _RecordedCounts(Struct):
    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0
    cost: float | None = None
    is_estimated: bool | None = None


class _RecordedReply(Struct):
    n: int
    turn: str
    usage: _RecordedCounts


Pricer = Callable[[RecordedRequest, Usage], float | None]
"""The cost of a request whose cost is not recorded, in US dollars; None if it is not known."""

_decode_request = msgspec.json.Decoder(RecordedRequest).decode
_decode_reply = msgspec.json.Decoder(_RecordedReply).decode


def decode_usage(usage: dict[str, Any]) -> Usage:
    """The counts of a reply line. Raises msgspec.ValidationError."""
    return _to_usage(msgspec.convert(usage, _RecordedCounts))


def requests_of(lines: Sequence[TraceLine]) -> Iterator[RecordedRequest]:
    """The requests of a turn, of its lines."""
    usages = {line.data["n"]: decode_usage(line.data["usage"]) for line in lines if line.kind == "reply"}
    for line in lines:
        if line.kind == "request":
            yield replace(msgspec.convert(line.data, RecordedRequest), usage=usages.get(line.data["n"]))


def _to_usage(counts: _RecordedCounts) -> Usage:
    """As it was recorded. Older versions wrote a cost of 0 where it was not known."""
    cost = counts.cost if counts.cost or counts.is_estimated is not None else None
    return Usage(
        counts.input, counts.output, counts.cache_read, counts.cache_write, cost, bool(counts.is_estimated)
    )  # fmt: skip


def read_requests(folder: Path) -> Iterator[RecordedRequest]:
    """The requests of the context in this folder, in the order of their replies; those without one come last. Lines that cannot be read
    are left out (`cru trace` names them). Raises StoreUnreadable."""
    waiting: dict[tuple[str, int], RecordedRequest] = {}
    with RecordFiles(folder / FILE) as files:
        for _, block in files.blocks():
            for line in block.split(b"\n"):
                try:
                    if line.startswith(_REQUEST):
                        request = _decode_request(line)
                        waiting[request.turn, request.n] = request
                    elif line.startswith(_REPLY):
                        reply = _decode_reply(line)
                        asked = waiting.pop((reply.turn, reply.n), None)
                        if asked is not None:
                            yield replace(asked, usage=_to_usage(reply.usage))
                except BROKEN:
                    continue
    yield from waiting.values()


def table_price(request: RecordedRequest, usage: Usage) -> float | None:
    """By the table of prices, as they were then."""
    return table_cost(request.provider, request.model, request.base_url, usage, request.time)


def sum_up(requests: Iterable[RecordedRequest], price: Pricer = table_price) -> UsageTotals:
    """Of all that are known; what is not recorded of their cost is asked of `price`."""
    totals = UsageTotals()
    for request in requests:
        totals = totals.plus(priced(request, price))
    return totals


def priced(request: RecordedRequest, price: Pricer) -> Usage:
    """What a request used, with its cost if that is known."""
    usage = request.usage or Usage()
    if usage.cost is not None or not usage.tokens:
        return usage
    return replace(usage, cost=price(request, usage))


def describe_tokens(usage: Usage | UsageTotals) -> str:
    """Tokens in words."""
    is_estimated = usage.is_estimated if isinstance(usage, Usage) else usage.estimated
    about = "about " if is_estimated else ""
    return f"{about}{usage.input} tokens in ({usage.cache_read} cached), {about}{usage.output} out"


def describe_cost(totals: UsageTotals) -> str:
    """The cost of all, and of how many requests it is not known."""
    if totals.cost is None:
        return "cost not known" if totals.unpriced else "no cost"
    unknown = f" and {totals.unpriced} of unknown price" if totals.unpriced else ""
    return f"{format_cost(totals.cost)}{unknown}"
