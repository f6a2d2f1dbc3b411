"""Commands and skills as files, in a session; loaded where there is a folder that may have some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from cru.core.agents import TaskTable
from cru.core.agents.model_names import NamedModels, choose_model
from cru.core.base.config.layers import Settings
from cru.core.base.values.visible import visible
from cru.core.command_table import COMMANDS
from cru.core.commands.prompt_files import FileOrigin, PromptFileKind, PromptFilesTable, PromptPlaces
from cru.core.commands.prompt_files.commands import FileCommands
from cru.core.commands.prompt_files.files import find_files
from cru.core.commands.prompt_files.run import PromptFileRunner
from cru.core.commands.prompt_files.skills import SkillList, SkillTool
from cru.core.conversations.entries import LogProblem
from cru.core.conversations.reported import report_once
from cru.core.models import ModelSettings
from cru.core.turn.commands import split_command
from cru.core.turn.parts import Parts


class PromptFilesHere(Struct, frozen=True):
    """What there is. unread: folders that have no effect here; readable: folders whose files the model may read as those of the project"""

    places: PromptPlaces
    unread: tuple[Path, ...]
    kinds: tuple[PromptFileKind, ...]
    skills: SkillList | None
    readable: tuple[Path, ...]
    settings: Settings

    def join(self, parts: Parts) -> None:
        """Commands, and the tool that loads skills, in the session of these parts."""
        parts.services.lifecycle.opening.append(self._tell_unread)
        if not self.kinds:
            return
        runner = PromptFileRunner(parts, self.places)
        parts.services.lifecycle.idle.append(runner.take_back)
        if self.skills is not None:
            parts.prompt.skills = self.skills.section
            problem = parts.tools.add(SkillTool(self.skills, runner))
            if problem:
                parts.bus.stream.warn(problem)
        parts.services.lifecycle.opening.append(partial(_open, runner, self.skills, self.kinds, self.settings))

    def secrets(self, env: Mapping[str, str]) -> Iterable[str]:
        return ()

    async def _tell_unread(self, parts: Parts) -> None:
        """Once a context."""
        texts = [f"{folder} has no effect in cru" for folder in self.unread]
        for problem in report_once(
            parts.store.folder, [LogProblem("", 0, visible(text), _key(text)) for text in texts]
        ):
            parts.bus.stream.warn(problem.message)


def find_here(places: PromptPlaces, settings: Settings, unread: tuple[Path, ...]) -> PromptFilesHere | None:
    """None if what is there is switched off."""
    table = settings.of(PromptFilesTable) if settings.is_set("prompt_files") else PromptFilesTable()
    chosen = table.prompt_files
    switched = ((PromptFileKind.COMMAND, chosen.commands), (PromptFileKind.SKILL, chosen.skills))
    kinds = tuple(kind for kind, is_on in switched if is_on and places.has(kind))
    if not kinds and not unread:
        return None
    has_skills = PromptFileKind.SKILL in kinds
    own = (
        folder
        for origin, folder in places.folders(PromptFileKind.SKILL)
        if origin is FileOrigin.USER and folder.is_dir()
    )
    skills = SkillList(places, chosen.skill_budget) if has_skills else None
    return PromptFilesHere(places, unread, kinds, skills, tuple(own) if has_skills else (), settings)


async def _open(
    runner: PromptFileRunner,
    skills: SkillList | None,
    kinds: Sequence[PromptFileKind],
    settings: Settings,
    parts: Parts,
) -> None:
    async def choose(name: str) -> str:
        return await _choose_model(parts, settings, name)

    parts.services.commands.sources.append(FileCommands(runner, kinds, choose))
    _tell_left_out(parts, runner.places, kinds, skills)


async def _choose_model(parts: Parts, settings: Settings, name: str) -> str:
    """What a file's `model` means; that nobody knows it is told."""

    async def own_model() -> str:
        return (await parts.models.choose("")).model.name

    chosen = settings.of(ModelSettings)
    known = (*(known for known, about in chosen.models.items() if about.model), *chosen.categories)
    models = NamedModels(settings.of(TaskTable).agents.model_aliases, lambda: known)
    model = await choose_model(name, models, own_model, "the configured one")
    if model.problem:
        parts.bus.stream.warn(model.problem)
    return model.name


def _tell_left_out(
    parts: Parts, places: PromptPlaces, kinds: Sequence[PromptFileKind], skills: SkillList | None
) -> None:
    """Once a context: files whose names are those of commands of cru, names that nobody can type, and skills with mistakes."""
    problems, unreadable = list[LogProblem](), list[str]()
    for kind in kinds:
        for _, name, path in find_files(places, kind, unreadable):
            if name in COMMANDS:
                why = f"/{name} is a command of cru, so {path} is not one"
            elif split_command(f"/{name}") != (name, ""):
                why = f"{path} is no command: a name is letters, digits, `-`, `_` and `:`"
            else:
                continue
            problems.append(LogProblem(str(path), 0, visible(why), _key(str(path))))
    for file in skills.load().values() if skills is not None else ():
        for text in (*file.faults, *file.problems):
            problems.append(LogProblem(str(file.path), 0, visible(text), _key(text)))
    for text in unreadable:
        parts.bus.stream.warn(visible(text))
    for problem in report_once(parts.store.folder, problems):
        parts.bus.stream.warn(problem.message)


def _key(path: str) -> str:
    """By which it is known that this was told."""
    return f"prompt_file:{sha256(path.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
