"""What stands in the queue: items, tasks, results."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from msgspec import Struct

from cru.core.turn.spending import UsageTotals

VERSION = 2
"""Of items in the queue: a worker leaves alone what a newer cru has put there. 2: `agent`, `max_cost`, lists in `set`."""

Setting = str | int | float | bool | list[str | int | float | bool]
Interrupted = Literal["", "ask-model", "retry", "fail"]


class TaskState(StrEnum):
    """Where a task stands."""

    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"


class WorkStatus(StrEnum):
    """How a task ended."""

    DONE = "done"
    DENIED = "denied"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    DEAD = "dead"
    CANCELLED = "cancelled"


class BatchItem(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One prompt of a batch, as its line says it, and with its defaults filled in as the queue holds it.

    id: names it in its batch
    context: where the conversation is kept
    cwd: the folder in which the run works, absolute in the queue
    attach: text files that go with the prompt
    agent: the card of the agent that answers, as with --agent
    set: settings by dotted name, as with -s
    seconds, fuel, max_cost: limits of its run (seconds, batches of calls, US dollars); 0: none of its own
    on_interrupted: what becomes of calls that were running at a kill; "": as the settings say
    """

    prompt: str
    id: str = ""
    context: str = ""
    cwd: str = ""
    model: str = ""
    mode: str = ""
    attach: tuple[str, ...] = ()
    set: dict[str, Setting] = {}
    seconds: float = 0.0
    fuel: int = 0
    on_interrupted: Interrupted = ""
    strict_hooks: bool = False
    agent: str = ""
    max_cost: float = 0.0

    @property
    def version(self) -> int:
        """The first version that knows all of it."""
        return 2 if self.agent or self.max_cost or any(isinstance(value, list) for value in self.set.values()) else 1


class Death(Struct, frozen=True):
    """A run of a task that ended without a result.

    worker, host: where it ran
    at: Unix seconds
    why: what is known of its end
    """

    worker: str
    host: str
    at: float
    why: str


class WorkResult(Struct, frozen=True, omit_defaults=True):
    """What came of a task.

    response: the text of its last reply
    code: the exit status of its run
    error, hint: what a person reads
    notices: what its run warned of, and why calls came to nothing, the first few
    refused: calls that were not let run, by a rule or a hook, or that no tool could take
    context: where the conversation is
    tokens: what its requests have used, as in `result.usage` of --json, all runs of it together
    seconds: from its claim to its end, in its last run
    deaths: runs that ended without a result
    resume: the command that goes on with it by hand, "" if it is done
    """

    status: WorkStatus
    response: str = ""
    code: int = 0
    error: str = ""
    hint: str = ""
    notices: tuple[str, ...] = ()
    refused: int = 0
    context: str = ""
    worker: str = ""
    tokens: UsageTotals = UsageTotals()
    seconds: float = 0.0
    deaths: tuple[Death, ...] = ()
    resume: str = ""


class QueuedTask(Struct, frozen=True):
    """An item that is to run.

    key: of its prompt, so that it is asked once
    max_deaths: so many runs without a result are the last
    is_shared: its conversation is in the database, too
    job: of Procrastinate, 0 on one machine
    version: of its shape
    """

    batch: str
    id: str
    key: str
    item: BatchItem
    deaths: int
    max_deaths: int
    is_shared: bool = False
    job: int = 0
    version: int = VERSION


class TaskRow(Struct, frozen=True):
    """What the queue knows of a task of a batch."""

    id: str
    line: int
    state: TaskState
    prompt: str
    context: str
    worker: str
    deaths: int
    result: WorkResult | None
