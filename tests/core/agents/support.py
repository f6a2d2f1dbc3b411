"""A session whose model gives work to sub-agents, each on a script of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from tests.core.turn.support import World
from tests.kit import HomeDir

from cru.core.agents.record import TaskRecord, read_records
from cru.core.base.values.messages import Entry
from cru.core.turn.background import run_to_end
from cru.core.turn.turn import LegResult


def script(folder: Path, name: str, text: str) -> str:
    """A script in a file; the name of its model."""
    path = folder / f"{name}.txt"
    path.write_text(text)
    return f"scripted:{path}"


def call(agent: str, model: str, **more: Any) -> str:
    """A line of a script that calls `task`."""
    return "call: task " + json.dumps({"agent": agent, "prompt": f"do {agent}", "model": model, **more})


def rule_for_scripts(folder: Path) -> str:
    """Lines of a config.toml with a rule that lets calls name the scripts in this folder, which is outside of the project."""
    return f'[permissions]\nallow = ["read:{folder}/*.txt"]\n'


def configure_scripts(here: HomeDir, folder: Path, model: str, config: str = "") -> None:
    """A config.toml with this model, and that rule among those that it has."""
    rule = f'"read:{folder}/*.txt"'
    before, head, after = config.partition("[permissions]\n")
    if after.startswith("allow = ["):
        config = f"{before}{head}allow = [{rule}, {after.removeprefix('allow = [')}"
    else:
        config = f"{before}{head}allow = [{rule}]\n{after}" if head else f"{config}\n{rule_for_scripts(folder)}"
    here.configure(f'model = "{model}"\n{config}')


def allowing_scripts(folder: Path, settings: dict[str, Any] | None = None) -> dict[str, Any]:
    """Settings with a rule that lets calls name the scripts in this folder, which is outside of the project."""
    permissions = (settings or {}).get("permissions", {})
    return {
        **(settings or {}),
        "permissions": {**permissions, "allow": [*permissions.get("allow", ()), f"read:{folder}/*.txt"]},
    }


class ClosedWorld(World):
    """A session that is over after its one prompt, and what runs in the background with it."""

    def __init__(self, path: Path, script: str, *extensions: Any, **more: Any) -> None:
        super().__init__(
            path, script, *extensions, **{**more, "settings": allowing_scripts(path, more.get("settings"))}
        )

    async def asked(self, *prompts: str) -> LegResult:
        try:
            for prompt in prompts:
                self.session.submit(prompt)
            result = await run_to_end(self.session)
        finally:
            await self.session.close()
        assert result is not None
        return result


def records(world: World) -> list[TaskRecord]:
    return list(read_records(world.built.store.folder))


def task_log(world: World, record: TaskRecord) -> list[Entry]:
    """The log of a sub-agent's own context."""
    file = world.built.store.folder / "tasks" / record.id / "context.jsonl"
    return [msgspec.json.decode(line, type=Entry) for line in file.read_bytes().splitlines()]


def task_results(world: World, record: TaskRecord) -> list[str]:
    return [entry.content for entry in task_log(world, record) if entry.entry_type == "tool_result"]
