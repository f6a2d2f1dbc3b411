"""Hooks' commands, run the way a session runs them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from cru.core.hooks.dialects import load_dialect
from cru.core.hooks.launch.process import run_hook_command
from cru.core.hooks.model.entry import HookEntry, HookSource
from cru.core.hooks.model.mapping import LaunchRules
from cru.core.hooks.model.result import HookRun

PATH = "/usr/local/bin:/usr/bin:/bin"


def entry(command: str, dialect: str = "crush", **more: Any) -> HookEntry:
    source = HookSource(dialect, "user", Path("/nowhere/crush.json"), "")
    return HookEntry(id="one", dialect=dialect, event="PreToolUse", source=source, line=1, command=command, **more)


class Hooks:
    """A working directory, and commands run in it."""

    def __init__(self, folder: Path, rules: LaunchRules | None = None) -> None:
        self.cwd = folder
        self.rules = rules
        self.env = {"PATH": PATH, "HOME": str(folder), "LANG": "C.UTF-8"}

    def script(self, name: str, text: str | bytes, mode: int = 0o644) -> Path:
        path = self.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(mode)
        return path

    async def arun(self, command: str, stdin: bytes = b"", dialect: str = "crush", **more: Any) -> HookRun:
        env = {**self.env, **more.pop("also", {})}
        return await run_hook_command(
            entry(command, dialect, **more), stdin, env, self.cwd, self.rules or load_dialect(dialect).launch
        )

    def run(self, command: str, stdin: bytes = b"", dialect: str = "crush", **more: Any) -> HookRun:
        return asyncio.run(self.arun(command, stdin, dialect, **more))

    def out(self, command: str, stdin: bytes = b"", **more: Any) -> str:
        """What it prints; it must end well and say nothing else."""
        made = self.run(command, stdin, **more)
        assert (made.exit, made.stderr, made.error, made.note) == (0, "", "", ""), made
        return made.stdout


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
