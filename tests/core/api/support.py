"""A session on a scripted model, and calls of the namespace inside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import isawaitable
from pathlib import Path
from typing import Any

from tests.core.turn.support import World

from cru.core.api.host import HOST, Host, Plugin, PluginSession


class Room:
    """`room(function, ...)` calls a function of the namespace as the plugin `demo` does, and waits for what it gives."""

    def __init__(self, tmp_path: Path, script: str = "", *, config: dict[str, Any] | None = None, **more: Any) -> None:
        self.world = World(tmp_path, script, **more)
        self.path = tmp_path
        self.root = tmp_path / "project"
        self.parts = self.world.session.parts
        self.parts.models.transport = None  # each call has a loop of its own, and so a transport of its own
        self.session = PluginSession(self.parts, tmp_path / "home")
        self.host = self.host_of("demo", config)

    def host_of(self, name: str, config: dict[str, Any] | None = None) -> Host:
        return Host(self.session, Plugin(name, self.path, "python", config or {}))

    def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        async def main() -> Any:
            try:
                return await awaited(function, *args)
            finally:
                await self.close()

        return self.within(lambda: asyncio.run(main()))

    def within(self, work: Callable[[], Any]) -> Any:
        """Run with the host set, on no loop."""
        token = HOST.set(self.host)
        try:
            return work()
        finally:
            HOST.reset(token)

    async def close(self) -> None:
        """What closing the session does: end what still runs."""
        for task in list(self.session.tasks):
            task.cancel()
        await asyncio.gather(*self.session.tasks, return_exceptions=True)
        if "transport" in self.session.shared:
            await self.session.shared.pop("transport").close()

    def notices(self) -> list[str]:
        return self.world.notices()

    def again(self, tmp_path: Path) -> Room:
        """The same context in a new process run."""
        return Room(tmp_path)


async def awaited(function: Callable[..., Any], *args: Any) -> Any:
    found = function(*args)
    return await found if isawaitable(found) else found
