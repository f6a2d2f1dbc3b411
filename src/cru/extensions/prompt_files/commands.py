"""Files as commands: `/name` and `/folder:name` of a command, `/name` of a skill."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from cru.engine.commands import Command, CommandResult
from cru.extensions.prompt_files import BadPromptFile, FileOrigin, PromptFileKind
from cru.extensions.prompt_files.files import PromptFile, find_files, load, read_file
from cru.extensions.prompt_files.run import ModelChooser, PromptFileRunner
from cru.values.visible import visible

OWNER = "files"
LONGEST = 120
"""Characters of a description in a list."""


class FileCommands:
    """A CommandSource. A name is looked up in the folders when it is typed; commands come before skills, and cru's own before both."""

    def __init__(self, runner: PromptFileRunner, kinds: Iterable[PromptFileKind], choose: ModelChooser) -> None:
        self._runner = runner
        self._kinds = tuple(kinds)
        self._choose = choose

    def commands(self) -> Iterable[Command]:
        files = {name: file for kind in reversed(self._kinds) for name, file in self._load(kind).items()}
        return [self._command(file) for file in files.values() if file.switch("user-invocable", True)]

    def _load(self, kind: PromptFileKind) -> dict[str, PromptFile]:
        return load(self._runner.places, kind)

    def find(self, name: str) -> Command | None:
        places = self._runner.places
        for kind in self._kinds:
            for origin, known, path in find_files(places, kind):
                if known == name:
                    return self._command(read_file(places, kind, origin, name, path))
        return None

    def _command(self, file: PromptFile) -> Command:
        about = visible(file.description)[:LONGEST] or f"a {file.kind.value} in {file.path}"
        whose = f"{file.kind.value} of {'yours' if file.origin is FileOrigin.USER else 'this project'}"
        run, hint = partial(self._run, file), visible(file.hint)
        return Command(file.name, about, run, owner=OWNER, hint=hint, where=str(file.path), whose=whose)

    async def _run(self, file: PromptFile, typed: str) -> CommandResult:
        """Raises PromptFileError, NotAccepted."""
        if not file.switch("user-invocable", True):
            raise BadPromptFile(f"the skill {file.name} is for the model alone", "ask for it in words")
        self._runner.tell_oddities(file)
        prompt = await self._runner.expand(file, typed)
        if not prompt.strip():
            raise BadPromptFile(f"{file.path} has no text: there is nothing to send", "write what the model is to do")
        model = file.keys.get("model")
        return CommandResult(prompt=prompt, model=await self._choose(model) if isinstance(model, str) else "")
