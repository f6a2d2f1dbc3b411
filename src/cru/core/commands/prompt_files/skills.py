"""Skills as the model sees them: names and descriptions in the prompt, the text of one when it asks for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from cru.core.base.config.closest import did_you_mean
from cru.core.base.values.messages import Span, ToolSpec
from cru.core.base.values.visible import visible
from cru.core.commands.prompt_files import FileOrigin, PromptFileError, PromptFileKind, PromptPlaces
from cru.core.commands.prompt_files.files import FileStamp, PromptFile, find_files, read_file, stamp_file
from cru.core.commands.prompt_files.run import PromptFileRunner
from cru.core.guard import NotAccepted
from cru.core.tools.arguments import decode_object
from cru.core.tools.protocol import Access, ArgumentError, Kind, ToolContext, ToolError, ToolResult
from cru.core.turn.parts import ACTING, Parts

NAME = "skill"
LONGEST = 1024
"""Characters of one description, as the standard has it."""
SHORTEST = 40
"""Of a description, below which names alone are listed."""
MOST_FOUND = 20
"""Skills that one search gives."""
HEADING = (
    "Skills are instructions for a kind of work. Before such work call `skill` with the name, and follow what it says."
)
_WORD = re.compile(r"\w+")


class SkillList:
    """The skills of a session, read anew when a file has changed."""

    def __init__(self, places: PromptPlaces, budget: int) -> None:
        self._places = places
        self._budget = budget
        self._stamp: tuple[FileStamp, ...] = ()
        self._files: dict[str, PromptFile] = {}

    def load(self) -> Mapping[str, PromptFile]:
        """By name, those that cannot be used among them; without their texts."""
        first: dict[str, tuple[FileOrigin, Path]] = {}
        for origin, name, path in find_files(self._places, PromptFileKind.SKILL):
            first.setdefault(name, (origin, path))
        stamp = tuple(stamp_file(path) for _, path in first.values())
        if stamp != self._stamp or not self._files:
            self._files = {
                name: _without_text(read_file(self._places, PromptFileKind.SKILL, origin, name, path, only_head=True))
                for name, (origin, path) in first.items()
            }
            self._stamp = stamp
        return self._files

    def offered(self) -> list[PromptFile]:
        """Those that the model may load."""
        return [
            file
            for file in self.load().values()
            if not file.faults and not file.switch("disable-model-invocation", False)
        ]

    def section(self) -> Span:
        """The section of the system prompt, with what it is made of."""
        text, count = self.describe(), len(self.offered())
        origin = f"{count} skill files" if count != 1 else "1 skill file"
        return Span("skills", origin, f"--- SKILLS ---\n{text}" if text else "")

    def describe(self) -> str:
        """For the system prompt, within the budget: descriptions are shortened, then left out, then names are."""
        files = self.offered()
        if not files:
            return ""
        names = [visible(file.name) for file in files]
        about = [visible(file.description)[:LONGEST] for file in files]
        room = self._budget - len(HEADING) - sum(len(name) + 5 for name in names)
        limit = _fair_share([len(text) for text in about], room)
        if limit < SHORTEST and any(len(text) > limit for text in about):
            return "\n".join([HEADING, *self._names_only(names)])
        lines = [f"- {name}: {_cut(text, limit)}" for name, text in zip(names, about, strict=True)]
        return "\n".join([HEADING, *lines])

    def _names_only(self, names: list[str]) -> Iterable[str]:
        room, listed = self._budget - len(HEADING) - 100, 0
        for name in names:
            room -= len(name) + 2
            if room < 0:
                break
            listed += 1
        yield ", ".join(names[:listed])
        more = f"; {len(names) - listed} more are not listed" if listed < len(names) else ""
        yield f"`skill` with `search` finds them by words of their descriptions{more}."

    def search(self, words: str) -> list[PromptFile]:
        """Those in which a word stands, the best first."""
        words_asked = {word.casefold() for word in _WORD.findall(words)}
        scored = [(_score(words_asked, file), file) for file in self.offered()]
        best = sorted((item for item in scored if item[0]), key=lambda item: -item[0])
        return [file for _, file in best[:MOST_FOUND]]


def _without_text(file: PromptFile) -> PromptFile:
    return replace(file, keys={**file.keys, "description": file.description, "when_to_use": None}, body="", text="")


def _fair_share(lengths: list[int], room: int) -> int:
    """The most characters that each may have so that all together fit."""
    left = len(lengths)
    for length in sorted(lengths):
        if length * left > room:
            return max(room // left, 0)
        room -= length
        left -= 1
    return LONGEST


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _score(words_asked: set[str], file: PromptFile) -> int:
    names = {word.casefold() for word in _WORD.findall(file.name.replace("-", " ").replace("_", " "))}
    about = {word.casefold() for word in _WORD.findall(file.description)}
    return 3 * len(words_asked & names) + len(words_asked & about)


class SkillTool:
    """`skill`: the text of a skill. What its scripts do is judged when they are called."""

    kind: Kind = "flow"
    parallel = False
    source = "skills"

    def __init__(self, skills: SkillList, runner: PromptFileRunner) -> None:
        text = {"type": "string"}
        parameters = {
            "type": "object",
            "properties": {
                "name": {**text, "description": "of a skill"},
                "arguments": {**text, "description": "words for it"},
                "search": {**text, "description": "in place of a name: words; gives the skills that fit"},
            },
            "additionalProperties": False,
        }
        self.spec = ToolSpec(NAME, "Loads the instructions of a skill.", parameters)
        self._skills = skills
        self._runner = runner

    def check(self, arguments: str | Mapping[str, object]) -> dict[str, object]:
        """Raises ArgumentError."""
        args = decode_object(arguments)
        for key in args:
            if key not in ("name", "arguments", "search"):
                raise ArgumentError(f"`{key}`: there is no such argument")
            if not isinstance(args[key], str):
                raise ArgumentError(f"`{key}`: expected text")
        if not args.get("name") and not args.get("search"):
            raise ArgumentError("`name`: it is missing")
        return args

    def subject(self, args: Mapping[str, object]) -> str:
        return str(args.get("name") or "")

    def paths(self, args: Mapping[str, object]) -> Iterable[tuple[Access, str]]:
        return ()

    async def run(self, args: dict[str, object], running: ToolContext) -> ToolResult:
        """Raises ToolError."""
        name = str(args.get("name") or "")
        if not name:
            fitting = self._skills.search(str(args["search"]))
            lines = [f"- {visible(file.name)}: {_cut(visible(file.description), LONGEST)}" for file in fitting]
            return ToolResult("\n".join(lines) or "no skill fits; other words may")
        file = self._skills.load().get(name.removeprefix("/"))
        if file is None or file.switch("disable-model-invocation", False):
            near = did_you_mean(name, [file.name for file in self._skills.offered()])
            raise ToolError(f"there is no skill {name!r}", near)
        agent: Parts | None = ACTING.get()
        try:
            whole = read_file(self._runner.places, PromptFileKind.SKILL, file.origin, file.name, file.path)
            return ToolResult(await self._runner.expand(whole, str(args.get("arguments") or ""), agent))
        except (PromptFileError, NotAccepted) as error:
            raise ToolError(error.message, error.hint) from error
