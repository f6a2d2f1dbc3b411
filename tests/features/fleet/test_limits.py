"""Limits of a provider over all workers."""

from __future__ import annotations

import pytest
from tests.features.fleet.support import batch_of, fetched, items, joined, queue_at

from cru.core.turn.spending import UsageTotals
from cru.features.fleet.limits import ProviderLimit, admit, list_limits, set_limit
from cru.features.fleet.records import QueuedTask, WorkResult, WorkStatus


@pytest.mark.parametrize(
    ("limit", "admitted"),
    [
        (None, 4),
        (ProviderLimit("p", running=2), 2),
        (ProviderLimit("other", running=1), 4),
        (ProviderLimit("p", day_cost=1.0), 4),  # nothing has ended yet
    ],
)
def test_so_many_begin_at_once(url: str, limit: ProviderLimit | None, admitted: int) -> None:
    queue = queue_at(url)
    batch_of(queue).add(items("a", "b", "c", "d"), 5, False)
    if limit is not None:
        set_limit(queue, limit)
    worker = joined(queue)
    tasks = [task for _ in range(4) if (task := fetched(queue, worker)) is not None]
    assert sum(admit(queue, task.job, "p") for task in tasks) == admitted


def test_what_ends_or_is_handed_back_makes_room_and_what_it_cost_counts(url: str) -> None:
    queue = queue_at(url)
    batch_of(queue).add(items("a", "b", "c"), 5, False)
    set_limit(queue, ProviderLimit("p", running=1, day_cost=1.0))
    worker = joined(queue)
    a, b = fetched(queue, worker), fetched(queue, worker)
    assert isinstance(a, QueuedTask) and isinstance(b, QueuedTask)
    assert admit(queue, a.job, "p") and not admit(queue, b.job, "p")
    queue.hand_back(worker, a)
    assert admit(queue, b.job, "p")
    queue.finish(worker, b, WorkResult(WorkStatus.DONE, tokens=UsageTotals(cost=1.5)))
    assert list_limits(queue) == [ProviderLimit("p", 1, 1.0, 0, 1.5)]
    c = fetched(queue, worker)
    assert isinstance(c, QueuedTask) and not admit(queue, c.job, "p")
    set_limit(queue, ProviderLimit("p"))
    assert admit(queue, c.job, "p") and list_limits(queue) == []
