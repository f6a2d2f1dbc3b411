"""Conversations of a batch that are in the database, too (`--shared`): what is here goes there before, and can be fetched afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from cru.core.conversations import ContextHeld
from cru.core.conversations.home import Home
from cru.faces.cli.console import show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.fleet.batch_plan import BatchPlan
from cru.faces.cli.fleet.common import say_line
from cru.faces.cli.run_options import home_path
from cru.features.fleet.context_copy import ContextCopy, Restored
from cru.features.fleet.queued_batch import QueuedBatch


def copy_conversations(parsed: Parsed, batch: QueuedBatch, plan: BatchPlan) -> None:
    """Those that items go on with. Raises QueueUnavailable, OSError."""
    for _, copy in _copies(parsed, batch, (item.context for _, item in plan.items)):
        copy.copy_first()


def fetch_conversations(parsed: Parsed, batch: QueuedBatch) -> int:
    """Bring what other homes did; the exit status."""
    home = Home(home_path(parsed))
    outcomes: Counter[Restored] = Counter()
    held = 0
    for context, copy in _copies(parsed, batch, (row.context for row in batch.rows())):
        try:
            outcome = copy.restore()
        except ContextHeld as error:
            say_line(error.message)
            held += 1
            continue
        outcomes[outcome] += 1
        if outcome is not Restored.KEPT:
            home.enlist(context)
        if outcome is Restored.DIVERGED:
            say_line(f"{context}: what only this home had is put aside, in context.jsonl.diverged of its folder")
    batch.close()
    show(
        f"{batch.name}: {outcomes.total() - outcomes[Restored.KEPT]} conversations fetched, {outcomes[Restored.KEPT]} were here"
    )
    return 1 if held else 0


def _copies(parsed: Parsed, batch: QueuedBatch, contexts: Iterable[str]) -> Iterator[tuple[str, ContextCopy]]:
    folder = home_path(parsed) / "contexts"
    for context in dict.fromkeys(contexts):
        yield context, ContextCopy(batch.database, folder / context)
