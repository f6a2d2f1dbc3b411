"""Files as commands: `/name` and `/folder:name` of a command, `/name` of a skill."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from cru.core.base.values.visible import visible
from cru.core.commands.prompt_files import BadPromptFile, FileOrigin, PromptFileKind
from cru.core.commands.prompt_files.files import FileStamp, PromptFile, find_files, read_file, stamp_file
from cru.core.commands.prompt_files.run import ModelChooser, PromptFileRunner
from cru.core.turn.commands import Command, CommandResult

OWNER = "files"
LONGEST = 120
"""Characters of a description in a list."""


class FileCommands:
    """A CommandSource. A name is looked up in the folders when it is typed; commands come before skills, and cru's own before both."""

    def __init__(self, runner: PromptFileRunner, kinds: Iterable[PromptFileKind], choose: ModelChooser) -> None:
        self._runner = runner
        self._kinds = tuple(kinds)
        self._choose = choose
        self._listed: dict[Path, tuple[FileStamp, Command | None]] = {}

    def commands(self) -> Iterable[Command]:
        """Only files that have changed since the last look are read: a person types, and completion asks at each key."""
        named: dict[str, Path] = {}
        listed: dict[Path, tuple[FileStamp, Command | None]] = {}
        for kind in self._kinds:
            for origin, name, path in find_files(self._runner.places, kind):
                if name not in named:
                    named[name], stamp = path, stamp_file(path)
                    known = self._listed.get(path)
                    if known is None or known[0] != stamp:
                        file = read_file(self._runner.places, kind, origin, name, path, only_head=True)
                        known = (stamp, self._command(file) if file.switch("user-invocable", True) else None)
                    listed[path] = known
        self._listed = listed
        return [command for _, command in listed.values() if command is not None]

    def find(self, name: str) -> Command | None:
        places = self._runner.places
        for kind in self._kinds:
            for origin, known, path in find_files(places, kind):
                if known == name:
                    return self._command(read_file(places, kind, origin, name, path, only_head=True))
        return None

    def _command(self, file: PromptFile) -> Command:
        about = visible(file.description)[:LONGEST] or f"a {file.kind.value} in {file.path}"
        whose = f"{file.kind.value} of {'yours' if file.origin is FileOrigin.USER else 'this project'}"
        which = (file.kind, file.origin, file.name, file.path)
        return Command(
            file.name, about, partial(self._run, *which), owner=OWNER, hint=visible(file.hint), where=str(file.path),
            whose=whose, expand=partial(self._expand, *which),
        )  # fmt: skip

    async def _run(self, kind: PromptFileKind, origin: FileOrigin, name: str, path: Path, typed: str) -> CommandResult:
        """Raises PromptFileError, NotAccepted."""
        file = read_file(self._runner.places, kind, origin, name, path)
        if not file.switch("user-invocable", True):
            raise BadPromptFile(f"the skill {file.name} is for the model alone", "ask for it in words")
        self._runner.check(file)
        self._runner.tell_oddities(file)
        model = file.keys.get("model")
        return CommandResult(is_typed=True, model=await self._choose(model) if isinstance(model, str) else "")

    async def _expand(self, kind: PromptFileKind, origin: FileOrigin, name: str, path: Path, typed: str) -> str:
        """Raises PromptFileError, NotAccepted."""
        file = read_file(self._runner.places, kind, origin, name, path)
        prompt = await self._runner.expand(file, typed, by_person=True)
        if not prompt.strip():
            raise BadPromptFile(f"{file.path} has no text: there is nothing to send", "write what the model is to do")
        return prompt
