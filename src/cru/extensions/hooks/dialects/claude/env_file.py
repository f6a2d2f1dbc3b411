"""CLAUDE_ENV_FILE: a hook of SessionStart writes shell code into it, and later commands of the agent have what that exports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from cru.events.answers import Answer, Change
from cru.events.payloads import ToolBeforeCall
from cru.events.stamp import Event
from cru.extensions.hooks.errors import HookError
from cru.extensions.hooks.model.entry import HookEntry
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.model.mapping import LaunchRules

FOLDER = "hook_env"
READ = 'for file; do . "$file" >&2; done; env -0'
NOISE = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
LIMIT = 10.0


class EnvFiles:
    """Reads the files with a real shell, since they are one's own code (`export PATH="$PATH:…"`): once after each change. The handler
    of `tool:before_call`."""

    def __init__(self, entries: Sequence[HookEntry], facts: SessionFacts) -> None:
        self._entries = entries
        self._facts = facts
        self._stamp: tuple[tuple[str, int, int], ...] = ()
        self._found: dict[str, str] = {}

    @staticmethod
    def fresh(entry: HookEntry, facts: SessionFacts) -> Path:
        """The entry's file, empty. Raises OSError."""
        path = _path(entry, facts)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(b"")
        path.chmod(0o600)
        return path

    async def __call__(self, event: Event) -> Answer | None:
        """Raises HookError if the files cannot be read, once for each change of theirs."""
        payload = event.payload
        if not isinstance(payload, ToolBeforeCall) or payload.name != "bash":
            return None
        now = self._look()
        if now != self._stamp:
            self._stamp, self._found = now, {}
            self._found = await self._read([path for path, _, _ in now]) if now else {}
        return Answer(changes=(Change("env", "merge", self._found),)) if self._found else None

    def _look(self) -> tuple[tuple[str, int, int], ...]:
        """The files that hold something."""
        files = []
        for entry in self._entries:
            path = _path(entry, self._facts)
            try:
                status = path.stat()
            except OSError:
                continue
            if status.st_size:
                files.append((str(path), status.st_mtime_ns, status.st_size))
        return tuple(files)

    async def _read(self, files: list[str]) -> dict[str, str]:
        from cru.extensions.hooks.launch.process import run_hook_command

        facts = self._facts
        env = {name: value for name, value in facts.env.items() if name not in facts.secret_names}
        shell = ("--noprofile", "--norc", "-c", READ, "bash", *files)
        reader = replace(self._entries[0], kind="command", command="bash", args=shell, timeout=LIMIT)
        done = await run_hook_command(reader, b"", env, facts.root, LaunchRules())
        if done.exit:
            raise HookError(f"CLAUDE_ENV_FILE: exit status {done.exit}: {done.stderr.strip()}", f"look into {files[0]}")
        if done.exit is None:
            raise HookError(f"CLAUDE_ENV_FILE: {done.error or f'not read within {LIMIT:g} s'}", f"look into {files[0]}")
        variables = dict(line.split("=", 1) for line in done.stdout.split("\0") if "=" in line)
        return {name: value for name, value in variables.items() if name not in NOISE and env.get(name) != value}


def _path(entry: HookEntry, facts: SessionFacts) -> Path:
    return facts.folder / FOLDER / f"{entry.id}.sh"
