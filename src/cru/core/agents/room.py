"""How many tasks run at once; the others wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from cru.core.agents import TaskSettings
from cru.core.agents.record import TaskKind, TaskRecord
from cru.core.base.files.glob import matches_text, parse_glob


class TaskRoom:
    """Agents of one depth share room, so that those that wait for agents below cannot keep these from running."""

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
