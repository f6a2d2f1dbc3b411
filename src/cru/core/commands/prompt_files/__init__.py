"""Commands and skills as Markdown files, as people bring them along from other agents.

PromptFileError
├── BadPromptFile      a file cannot be used, whatever it says
├── NotTrusted          it does more than inform, and nobody has accepted the project's file
└── ExpansionFailed    a command in it was refused, or failed
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from cru.core.base.values.errors import CruError

COMMAND_FOLDERS = (".claude/commands",)
SKILL_FOLDERS = (".agents/skills", ".claude/skills")


class PromptFileError(CruError):
    pass


class BadPromptFile(PromptFileError):
    pass


class NotTrusted(PromptFileError):
    pass


class ExpansionFailed(PromptFileError):
    pass


class FileOrigin(StrEnum):
    USER = "user"
    PROJECT = "project"


class PromptFileKind(StrEnum):
    COMMAND = "command"
    SKILL = "skill"


class PromptFileSettings(Struct, frozen=True):
    """`[prompt_files]`: commands and skills as files."""

    commands: bool = True
    skills: bool = True
    skill_budget: int = 8000


class PromptFilesTable(Struct, frozen=True):
    """The settings of this room."""

    prompt_files: PromptFileSettings = PromptFileSettings()


DOCS: dict[str, str] = {
    "prompt_files": "[commands and skills](commands.md#commands-and-skills-as-files) that are Markdown files",
    "prompt_files.commands": "whether files in `commands/` folders are commands",
    "prompt_files.skills": "whether skills are offered to the model, and are commands",
    "prompt_files.skill_budget": "characters of the system prompt that names and descriptions of skills may have together",
}


class PromptPlaces(Struct, frozen=True):
    """home: cru's; user_home: the person's; root: the project; cwd: where the person stands; claude_home: the user's folder of Claude
    Code; judges_calls: whether hooks of that name judge calls of tools"""

    home: Path
    user_home: Path
    root: Path
    cwd: Path
    claude_home: Path
    judges_calls: Callable[[str], bool] = bool

    def folders(self, kind: PromptFileKind) -> Iterator[tuple[FileOrigin, Path]]:
        """Every place, the strongest first: the user's own before the project's."""
        names, plural = (COMMAND_FOLDERS, "commands") if kind is PromptFileKind.COMMAND else (SKILL_FOLDERS, "skills")
        own = [self.home / plural, self.claude_home / plural]
        if kind is PromptFileKind.SKILL:
            own.append(self.user_home / ".agents" / plural)
        yield from ((FileOrigin.USER, folder) for folder in own)
        for at in dict.fromkeys((self.cwd, self.root)):
            for name in (f".cru/{plural}", *names):
                if at / name not in own:
                    yield FileOrigin.PROJECT, at / name

    def has(self, kind: PromptFileKind) -> bool:
        """Whether there may be some."""
        return any(os.path.isdir(folder) for _, folder in self.folders(kind))
