"""Limits of all workers of a database together: how many items of a provider run at once, and what they may cost in a day."""

from __future__ import annotations

from msgspec import Struct

from cru.features.fleet.queue import WorkQueue


class ProviderLimit(Struct, frozen=True):
    """A limit and how far it is reached. running, day_cost: items at once, US dollars in 24 hours; 0: any number. now, spent: of those."""

    provider: str
    running: int = 0
    day_cost: float = 0.0
    now: int = 0
    spent: float = 0.0

    @property
    def is_reached(self) -> bool:
        return 0 < self.running <= self.now or 0 < self.day_cost <= self.spent


_LIMITS = """
SELECT l.provider, l.running, l.day_cost,
    (SELECT COUNT(*) FROM cru_items i JOIN procrastinate_jobs j ON j.id = i.job WHERE i.provider = l.provider AND j.status = 'doing'),
    (SELECT COALESCE(SUM(i.cost), 0) FROM cru_items i WHERE i.provider = l.provider AND i.ended_at > NOW() - INTERVAL '1 day')
FROM cru_limits l
"""


def admit(queue: WorkQueue, job: int, provider: str) -> bool:
    """Whether a job may begin: it counts as one of its provider then. Workers that ask at once are answered one after another."""
    with queue.database.transaction() as run:
        run("SELECT 1 FROM cru_limits WHERE provider = %(provider)s FOR UPDATE", provider=provider)
        rows = run(f"{_LIMITS} WHERE l.provider = %(provider)s", provider=provider)
        if rows and ProviderLimit(*rows[0]).is_reached:
            return False
        run("UPDATE cru_items SET provider = %(provider)s WHERE job = %(job)s", provider=provider, job=job)
    return True


def set_limit(queue: WorkQueue, limit: ProviderLimit) -> None:
    """Set a limit; one without numbers is removed."""
    with queue.database.transaction() as run:
        run("DELETE FROM cru_limits WHERE provider = %(provider)s", provider=limit.provider)
        if limit.running or limit.day_cost:
            run(
                "INSERT INTO cru_limits VALUES (%(provider)s, %(running)s, %(day_cost)s)",
                provider=limit.provider, running=limit.running, day_cost=limit.day_cost,
            )  # fmt: skip


def list_limits(queue: WorkQueue) -> list[ProviderLimit]:
    """All limits, by provider."""
    with queue.database.transaction() as run:
        return [ProviderLimit(*row) for row in run(f"{_LIMITS} ORDER BY l.provider")]
