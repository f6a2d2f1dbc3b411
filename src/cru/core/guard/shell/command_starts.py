"""Where commands begin, what their first words stand for and in which folder they run, as far as that is certain before they run. Reads
from the left and ends at the first thing that it does not follow: what it has found by then is right, the rest is left to the shell."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from cru.core.guard.shell.parser import parse
from cru.core.guard.shell.syntax import (
    Compound,
    CompoundKind,
    PartKind,
    Pipeline,
    Redirection,
    Script,
    ShellNode,
    SimpleCommand,
    Word,
    WordPart,
)

_SPLITTING = frozenset(" \t\n*?[")
"""What in an unquoted value would make several words of it."""
_EXPANDING = frozenset("*?[{")
_MOVES_UNSEEN = ("pushd", "popd", "eval")
_NESTED = frozenset("'\"`$\\{")
"""What inside `${…}` is not followed."""
_LEFT_TO_THE_SHELL = (
    PartKind.ARITHMETIC, PartKind.DOLLAR_QUOTED, PartKind.BACKQUOTED, PartKind.ARRAY,
    CompoundKind.ARITHMETIC, CompoundKind.CASE, CompoundKind.FUNCTION, CompoundKind.COPROCESS,
)  # fmt: skip


class CommandStart(Struct, frozen=True):
    """A command's first word.

    at: where it begins
    text: what it stands for; None: that shows only when it runs
    folders: where it is run, one after another from the starting one; None: unknown
    """

    at: int
    text: str | None
    folders: tuple[str, ...] | None


def find_command_starts(source: str, env: Mapping[str, str]) -> list[CommandStart]:
    """Every command's beginning that can be told.

    env: the values of variables
    """
    parsed = parse(source)
    end = len(source) if parsed.problem is None else parsed.problem.at
    follower = _Follower(env, min((node.start for node in parsed.script.walk() if _is_left_out(node)), default=end))
    follower.script(parsed.script)
    return follower.starts


def _is_left_out(node: ShellNode) -> bool:
    if isinstance(node, WordPart) and node.kind is PartKind.COMPUTED:
        return not _NESTED.isdisjoint(node.value[2:-1])
    if isinstance(node, WordPart | Compound):
        return node.kind in _LEFT_TO_THE_SHELL
    return isinstance(node, Redirection) and node.operator.startswith("<<")


class _Follower:
    """One pass over the tree.

    end: what stands behind this is not followed
    folders: as in CommandStart
    changed: variables that the source itself may set
    is_branched: a command may not run at all
    """

    def __init__(self, env: Mapping[str, str], end: int) -> None:
        self.env = env
        self.end = end
        self.starts: list[CommandStart] = []
        self.folders: tuple[str, ...] | None = ()
        self.changed: set[str] = set()
        self.is_branched = False

    def script(self, script: Script) -> None:
        after = ""
        for pipeline in script.pipelines:
            for command in pipeline.commands:
                if isinstance(command, SimpleCommand):
                    self.simple(command, pipeline, after)
                else:
                    self.compound(command)
            after = pipeline.operator

    def nested(self, script: Script) -> None:
        """A process of its own: where it goes is no matter outside."""
        kept = self.folders
        self.script(script)
        self.folders = kept

    def compound(self, compound: Compound) -> None:
        is_subshell = compound.kind is CompoundKind.SUBSHELL
        self.is_branched = self.is_branched or not (is_subshell or compound.kind is CompoundKind.CONDITION)
        for node in compound.children():
            if isinstance(node, Script):
                self.nested(node) if is_subshell else self.script(node)
            elif isinstance(node, Word):
                self.word(node)
                self.changed.add(node.source)  # `for NAME in`
            elif isinstance(node, Redirection):
                self.redirection(node)

    def redirection(self, redirection: Redirection) -> None:
        for word in redirection.target:
            self.word(word)

    def simple(self, command: SimpleCommand, pipeline: Pipeline, after: str) -> None:
        """after: what stands before its pipeline"""
        words: list[str | None] = []
        for node in command.children():
            if isinstance(node, Redirection):
                self.redirection(node)
            elif isinstance(node, Word):
                text = self.word(node)
                if node.assigned_name:
                    self.changed.add(node.assigned_name)
                elif words:
                    self.changed.add(node.source)  # `read NAME`, `unset NAME`
                    words.append(text)
                elif node.source != "exec":
                    self.begin(node, text)
                    words.append(text)
        if words[:1] == ["cd"]:
            self.change_folder(words[1:], pipeline, after)
        elif words and words[0] in _MOVES_UNSEEN:
            self.folders = None

    def begin(self, word: Word, text: str | None) -> None:
        if word.end <= self.end and text != "cd" and text not in _MOVES_UNSEEN:
            self.starts.append(CommandStart(word.start, text, self.folders))

    def change_folder(self, arguments: list[str | None], pipeline: Pipeline, after: str) -> None:
        folder = arguments[0] if len(arguments) == 1 else None
        is_certain = pipeline.operator in ("&&", ";", "\n", "") and after != "||" and len(pipeline.commands) == 1
        if self.folders is None or not folder or folder.startswith("-") or self.is_branched or not is_certain:
            self.folders = None
        else:
            self.folders = (*self.folders, folder)

    # words -----------------------------------------------------------------------------------------------------------------------

    def word(self, word: Word) -> str | None:
        """What the word stands for, None if that shows only when it runs. Commands in it are followed."""
        texts = [self.part(part) for part in word.parts]
        if word.source.startswith("~") and texts[0] is not None:
            home = self.env.get("HOME") if word.source.startswith("~/") else None
            texts[0] = None if home is None else home + texts[0][1:]
        known = [text for text in texts if text is not None]
        return "".join(known) if len(known) == len(texts) else None

    def part(self, part: WordPart) -> str | None:
        if part.body is not None:
            self.nested(part.body)
        if part.kind is PartKind.TEXT:
            return part.value if part.quoted or _EXPANDING.isdisjoint(part.value) else None
        if part.kind is not PartKind.VARIABLE or part.name in self.changed:
            return None
        value = self.env.get(part.name)
        return value if value is not None and (part.quoted or _SPLITTING.isdisjoint(value)) else None
