"""/cost: what the last prompt, this run, and all that is recorded of this context have used."""

from __future__ import annotations

from cru.core.agents.usage import of_turn, read_usages, sum_usages
from cru.core.base.values.errors import CruError
from cru.core.base.values.messages import Usage
from cru.core.commands.context import CommandContext
from cru.core.models.prices import load_table
from cru.core.records.usage import (
    RecordedRequest,
    describe_cost,
    describe_tokens,
    priced,
    read_requests,
    table_price,
)
from cru.core.turn import compaction
from cru.core.turn.commands import CommandResult
from cru.core.turn.spending import UsageTotals

NOTHING = "nothing was asked of a model here yet"


async def cost(context: CommandContext, _words: str) -> CommandResult:
    """Raises StoreUnreadable."""
    parts = context.session.parts
    by_model: dict[str, UsageTotals] = {}
    everything = last = UsageTotals()
    turn, newest = "", 0.0

    def price(request: RecordedRequest, usage: Usage) -> float | None:
        own = context.models.own_price(request.provider, request.model)
        return table_price(request, usage) if own is None else own.cost(usage)

    parts.recorder.flush()
    for request in read_requests(parts.store.folder):
        usage = priced(request, price)
        everything = everything.plus(usage)
        by_model[request.label] = by_model.get(request.label, UsageTotals()).plus(usage)
        if (
            request.turn and request.turn != turn and request.time >= newest
        ):  # those that a kill has cut off come at the end
            turn, last = request.turn, UsageTotals()
        newest = max(newest, request.time)
        if request.turn == turn:
            last = last.plus(usage)
    if not everything.requests:
        return CommandResult(NOTHING)
    usages = read_usages(parts.store.folder, price)
    agents = sum_usages(usages)
    last = last.joined(sum_usages(of_turn(usages, turn)))
    everything = everything.joined(agents)
    run = parts.models.ledger.session.totals
    rows = [("last prompt", last), *([("this run", run)] if run.requests else []), ("recorded here", everything)]
    if len(by_model) > 1 or usages:
        rows += [(f"  {model}", totals) for model, totals in sorted(by_model.items())]
    if usages:
        rows.append((f"  {len(usages)} sub-agent{'' if len(usages) == 1 else 's'}", agents))
    return CommandResult("\n".join([*_render(rows), *await _window(context), *_advice(everything)]))


async def _window(context: CommandContext) -> list[str]:
    """How full the model's window is, if that is known."""
    parts = context.session.parts
    if not context.models.is_named():
        return []
    try:
        fill = compaction.fill(parts, await parts.models.choose(""), parts.prompt.sections())
    except CruError:
        return []  # of a model that cannot be asked: the next prompt says why
    if not fill.limit:
        return []
    return [f"the window is {fill.percent:.0f} % full: about {fill.used:,} of {fill.limit:,} tokens"]


def _render(rows: list[tuple[str, UsageTotals]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [
        f"{name:<{width}}  {_count(totals)}, {describe_tokens(totals)}, {describe_cost(totals)}"
        for name, totals in rows
    ]


def _count(totals: UsageTotals) -> str:
    return f"{totals.requests} request{'' if totals.requests == 1 else 's'}"


def _advice(totals: UsageTotals) -> list[str]:
    """How an unknown price becomes known."""
    if not totals.unpriced:
        return []
    why = load_table()[1]
    return [
        'a price that is not known can be set: `[models."ID"] input_price`, `output_price` (US dollars for a million tokens)'
        + (f"; {why}" if why else "")
    ]
