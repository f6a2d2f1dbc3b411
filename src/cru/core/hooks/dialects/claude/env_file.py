"""CLAUDE_ENV_FILE: a hook of SessionStart writes shell code into it, and each later command of the agent is run behind that code: what it
exports, its functions, its plain variables and its options (`set -o`)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cru.core.base.files.atomic import write_private
from cru.core.base.files.regular import make_private_folder
from cru.core.events.answers import Answer, Change
from cru.core.events.payloads import ToolBeforeCall
from cru.core.events.stamp import Event
from cru.core.hooks import ENV_FOLDER as FOLDER
from cru.core.hooks.dialects.claude.fields import start_subject
from cru.core.hooks.errors import HookError
from cru.core.hooks.launch.process import run_hook_command
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.facts import FactsOf, SessionFacts
from cru.core.hooks.model.mapping import LaunchRules

if TYPE_CHECKING:
    from cru.core.base.process.confined import Confine, PreparedCommand

TRY = 'for file; do "$BASH" -n "$file" || exit 2; . "$file" >&2; done'
BEFORE = "BASH_ENV"
"""The variable that names what a bash reads before a command; bashes that the command starts do not have ours."""
AFRESH = ("startup", "clear")
"""Sources of a SessionStart whose hooks begin with an empty file; later ones add to it."""
LIMIT = 10.0


class EnvFiles:
    """The handler of `tool:before_call`. After each change the files are tried by a shell of their own, so that broken ones are told once
    and stop no command."""

    def __init__(self, entries: Sequence[HookEntry], facts_of: FactsOf) -> None:
        self._entries = entries
        self._facts_of = facts_of
        self._stamp: tuple[tuple[str, int, int], ...] = ()
        self._variables: dict[str, str] = {}

    @staticmethod
    def open(entry: HookEntry, event: Event, facts: SessionFacts) -> Path:
        """The entry's file, empty where a session begins. Raises OSError."""
        path = _path(entry, facts)
        make_private_folder(path.parent)
        if start_subject(event) in AFRESH or not path.exists():
            write_private(path, b"")
        return path

    async def __call__(self, event: Event) -> Answer | None:
        """Raises HookError if the files cannot be read, once for each change of theirs."""
        payload = event.payload
        if not isinstance(payload, ToolBeforeCall) or payload.name != "bash":
            return None
        facts = self._facts_of(event.stamp)
        # what a confined hook has written is not run outside of the sandbox
        is_outside = facts.confine is not None and bool(payload.args.get("outside_sandbox"))
        now = self._look(facts, [entry for entry in self._entries if not (is_outside and entry.of_project)])
        if now != self._stamp:
            self._stamp, self._variables = now, {}
            self._variables = await self._take([path for path, _, _ in now], facts) if now else {}
        return Answer(changes=(Change("env", "merge", self._variables),)) if self._variables else None

    def _look(self, facts: SessionFacts, entries: Sequence[HookEntry]) -> tuple[tuple[str, int, int], ...]:
        """The files of these entries that hold something."""
        files = []
        for entry in entries:
            path = _path(entry, facts)
            try:
                status = path.stat()
            except OSError:
                continue
            if status.st_size:
                files.append((str(path), status.st_mtime_ns, status.st_size))
        return tuple(files)

    async def _take(self, files: list[str], facts: SessionFacts) -> dict[str, str]:
        """The variables that make a bash read these files. Raises HookError if they cannot be read."""
        env = {name: value for name, value in facts.env.items() if name not in facts.secret_names}
        shell = ("--noprofile", "--norc", "-c", TRY, "bash", *files)
        reader = replace(self._entries[0], kind="command", command="bash", args=shell, timeout=LIMIT)
        confine = self._confinement(files, facts)
        done = await run_hook_command(reader, b"", env, facts.root, LaunchRules(), confine, facts.root)
        if done.exit is None:
            raise HookError(f"CLAUDE_ENV_FILE: {done.error or f'not read within {LIMIT:g} s'}", f"look into {files[0]}")
        if done.exit:
            raise HookError(f"CLAUDE_ENV_FILE: exit status {done.exit}: {done.stderr.strip()}", f"look into {files[0]}")
        return {BEFORE: str(self._write_wrapper(files, env.get(BEFORE, ""), facts))}

    def _confinement(self, files: Sequence[str], facts: SessionFacts) -> Confine | None:
        """What a hook of the project has written is read in the sandbox, if there is one."""
        confine = facts.confine
        written = {str(_path(entry, facts)) for entry in self._entries if entry.of_project}
        if confine is None or written.isdisjoint(files):
            return None

        from cru.core.base.process.confined import ProjectProgram

        async def run(argv: tuple[str, ...]) -> PreparedCommand | None:
            return await confine(ProjectProgram(argv, str(facts.root), str(facts.root), tuple(files)))

        return run

    def _write_wrapper(self, files: list[str], outer: str, facts: SessionFacts) -> Path:
        """What a bash reads: first what it would have read without us, `outer`, which its own children read, too."""
        own = [f"export {BEFORE}={quote(outer)}", f'. "${BEFORE}"'] if outer else [f"unset {BEFORE}"]
        lines = [*own, "shopt -s expand_aliases", *(f". {quote(file)}" for file in files)]
        path = facts.folder / FOLDER / f"{sha256(chr(0).join(files).encode()).hexdigest()[:12]}.bash"
        write_private(path, ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))
        return path


def _path(entry: HookEntry, facts: SessionFacts) -> Path:
    return facts.folder / FOLDER / f"{entry.id}.sh"
