"""A task of this process: what is asked for, what does it, what comes of it, and how many tasks run at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from msgspec import Struct, field

from cru.core.agents import TaskSettings
from cru.core.agents.record import MAIN, TaskKind, TaskRecord
from cru.core.base.files.glob import matches_text, parse_glob


class TaskOutcome(Struct, frozen=True):
    """What came of a task.

    result: the whole answer of a sub-agent, or what a command printed last
    error: why it failed, "": it did not
    exit_status: of a command
    rounds: of a sub-agent
    note: what `result` says of a command beside its output
    """

    result: str = ""
    error: str = ""
    exit_status: int | None = None
    rounds: int = 0
    note: str = ""


class TaskRequest(Struct, frozen=True, kw_only=True):
    """What is asked for; handlers of `task:spawned` may change prompt, model and tools.

    tools: globs of those that a sub-agent may call, None: as its card says
    agent_id: of the agent that asks, "main" or the id of its task
    depth: of the agent that asks
    """

    kind: TaskKind
    prompt: str
    description: str = ""
    agent: str = ""
    model: str = ""
    tools: tuple[str, ...] | None = None
    call_id: str = ""
    agent_id: str = MAIN
    depth: int = 0
    background: bool = False
    detached: bool = False


class Task(Struct, eq=False):
    """One task of this process.

    folder: where its files are
    request: as the handlers left it
    context: texts of theirs for the sub-agent
    outcome: None: it has not ended
    on_end: hears of its end before the agent that started it does; it raises nothing
    cancel: asks its work to end; what is set here before it begins has no effect
    send: gives its work input, b"": its end; None: it takes none
    release: lets it go on without this process, which it outlives; None: it ends with the session
    """

    record: TaskRecord
    folder: Path
    request: TaskRequest
    context: tuple[str, ...] = ()
    outcome: TaskOutcome | None = None
    cancel: Callable[[], object] | None = None
    send: Callable[[bytes], Awaitable[None]] | None = None
    on_end: Callable[[Task], Awaitable[object]] | None = None
    release: Callable[[], object] | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    is_cancelled: bool = False
    is_released: bool = False

    @property
    def id(self) -> str:
        return self.record.id


Work = Callable[[Task], Awaitable[TaskOutcome]]
"""Does a task. It sets `task.cancel`; what it raises is the task's error."""


class TaskRoom:
    """The limit of tasks that run at once; the others wait. Agents of one depth share room, so that those that wait for agents below
    cannot keep these from running."""

    def __init__(self, settings: TaskSettings) -> None:
        self._settings = settings
        self._slots: dict[tuple[str, int], asyncio.Semaphore] = {}

    @asynccontextmanager
    async def entered(self, record: TaskRecord, model: str) -> AsyncIterator[None]:
        """Wait for room, and hold it for the block. `model`: provider:model that a sub-agent asks, if it has a limit. Who waits for a model
        takes no room from those of other models."""
        depth = record.depth if record.kind is TaskKind.SUBAGENT else 0
        async with AsyncExitStack() as room:
            for pattern, most in self._settings.per_model.items() if model else ():
                if matches_text(parse_glob(pattern), model):
                    await room.enter_async_context(self._slot(f"model {pattern}", depth, most))
            await room.enter_async_context(self._slot(record.kind.value, depth, self._settings.max_concurrent))
            yield

    def _slot(self, what: str, depth: int, most: int) -> asyncio.Semaphore:
        return self._slots.setdefault((what, depth), asyncio.Semaphore(most))
