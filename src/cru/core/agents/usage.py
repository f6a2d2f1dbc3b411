"""What sub-agents have used: each record has the requests of its own agent, and sums are made of records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from cru.core.agents import FOLDER
from cru.core.agents.record import TaskKind, TaskRecord, read_records
from cru.core.conversations import ContextError
from cru.core.records.usage import Pricer, read_requests, sum_up, table_price
from cru.core.turn.spending import UsageTotals


class AgentUsage(Struct, frozen=True):
    """totals: of its own requests, without those of agents below it."""

    record: TaskRecord
    totals: UsageTotals


def read_usages(context: Path, price: Pricer = table_price) -> list[AgentUsage]:
    """Of every sub-agent of a context that has asked a model, the oldest first. `price`: of requests whose cost was not known then."""
    records = [record for record in read_records(context) if record.kind is TaskKind.SUBAGENT]
    usages = [AgentUsage(record, own_usage(context / FOLDER / record.id, record, price)) for record in records]
    return [usage for usage in usages if usage.totals.requests]


def own_usage(folder: Path, record: TaskRecord, price: Pricer = table_price) -> UsageTotals:
    """As its record has it. What the record does not know is in the trace: prices that nobody asked for, and all of an older version;
    a request that has no answer yet is counted nowhere."""
    recorded = record.usage
    if record.kind is not TaskKind.SUBAGENT or (recorded.requests and not recorded.unpriced):
        return recorded
    try:
        traced = sum_up((asked for asked in read_requests(folder) if asked.usage is not None), price)
    except ContextError:
        return recorded
    return traced if traced.requests >= recorded.requests else recorded


def sum_usages(usages: Iterable[AgentUsage]) -> UsageTotals:
    totals = UsageTotals()
    for usage in usages:
        totals = totals.joined(usage.totals)
    return totals


def of_turn(usages: Iterable[AgentUsage], turn: str) -> list[AgentUsage]:
    """Of the agents that were started in this turn of the main agent, and those below them."""
    return [usage for usage in usages if turn and usage.record.turn == turn]


def below(usages: Sequence[AgentUsage], task_id: str) -> list[AgentUsage]:
    """Of the agents below this one, however deep."""
    inside: Collection[str] = {task_id}
    while True:
        children = {usage.record.id for usage in usages if usage.record.parent in inside} - set(inside)
        if not children:
            return [usage for usage in usages if usage.record.id in inside and usage.record.id != task_id]
        inside = {*inside, *children}
