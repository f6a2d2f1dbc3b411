"""Every simple command of a shell text, if it is certain that none of them runs another one: their programs treat their words, their input
and the files that the text writes as data. Deny and ask rules then look at these commands only (docs/decisions/command-rules.md)."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TypeAlias

from cru.core.guard.shell.analysis import Words, has_braces, writes_nothing
from cru.core.guard.shell.inner_commands import find_plainly_run, only_looks_up
from cru.core.guard.shell.literal_values import write_out_values
from cru.core.guard.shell.option_uses import find_option_uses
from cru.core.guard.shell.options import OptionEffect
from cru.core.guard.shell.parser import parse
from cru.core.guard.shell.programs import CODE_VARIABLE_PREFIXES, KINDS, VARIABLES, names
from cru.core.guard.shell.simplify import LONGEST, UNCLEAR_IN_COMMENTS, is_read_alike
from cru.core.guard.shell.syntax import (
    EXPANSION,
    Compound,
    CompoundKind,
    PartKind,
    Redirection,
    Script,
    ShellNode,
    SimpleCommand,
    Word,
    WordPart,
)
from cru.core.guard.shell.wrapping import is_harmless_assignment, is_plain_format, is_silent_builtin

PlacedWords: TypeAlias = tuple[Words, tuple[int, ...]]
"""The words of a command, and the places of those that may begin one."""

_DEEPEST = 3
"""Texts of `sh -c` in each other."""
_KINDS = (
    CompoundKind.SUBSHELL, CompoundKind.GROUP, CompoundKind.CONDITION, CompoundKind.IF, CompoundKind.WHILE, CompoundKind.UNTIL,
    CompoundKind.FOR,
)  # fmt: skip
_FOLDERS = r"(?:(?!(?i:bin|sbin|etc|hooks|cron[\w.-]*|[\w.-]*\.d)/)[\w+@%,=-][\w.+@%,=-]*/)*"
"""Folders whose files no program runs, or reads as settings, under any name."""
_WORK_FOLDER = re.compile(rf"(?:~/|/)?(?:\.{{1,2}}/)*{_FOLDERS}")
_DOCUMENT = re.compile(
    rf"(?:/tmp/|\./)?{_FOLDERS}(?!CMakeLists|requirements)"
    r"(?:[\w+@%,=-][\w.+@%,=-]*\.(?:adoc|csv|diff|log|md|out|patch|rst|tsv|txt)|err|log|notes|out|output)"
)
"""A file that no program takes for code or settings; in no hidden folder, since hooks and settings are there. What it is relative to is
checked where the line enters a folder."""
_DELIMITER = re.compile(r"'([A-Za-z_]\w*)'|\"([A-Za-z_]\w*)\"|\\?([A-Za-z_]\w*)", re.ASCII)
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)\+?=", re.ASCII)
_CODE_PREFIXES = tuple(prefix.upper() for prefix in CODE_VARIABLE_PREFIXES)
"""In capitals, since npm reads `Npm_Config_x`, too."""
_PAGERS = names("LESS MORE")
_SETTING = re.compile(r"[\w.,:@%+=/-]*", re.ASCII)
"""A value, with its name, that holds no command with an operand: a program may take it from its environment, and run what is in it."""
_VALUE = re.compile(r"\$\{[A-Za-z_]\w*(?:#{1,2}|%{1,2}|:?-)[\w./* -]*\}", re.ASCII)
"""A variable without its beginning or end, or with a plain default."""
_READ = re.compile(r"read(?: -r)?((?: [A-Za-z_]\w*)+)", re.ASCII)
_SHELLS = names("bash dash sh")
"""Shells whose texts are read. zsh is none of them: it runs what stands in a number (`shift 'a[$(rm x)]'`, `"$a[b[\\$(rm x)]]"`)."""
_SHELL_TEXT = re.compile(r"-[elu]*c")
_COMPARISONS = ("=", "==", "!=")
_TESTS = names("-d -e -f -h -L -n -r -s -w -x -z")
_SUBSTITUTIONS = (PartKind.COMMAND, PartKind.BACKQUOTED)


class _Uncertain(Exception):
    """Something that may run a command which is not among those that are found."""


def find_every_command(text: str) -> tuple[PlacedWords, ...] | None:
    """Return the words of every simple command of the text, nested ones and those of `sh -c TEXT` included, once with variables and
    substitutions as they are written and once without. None: other commands may run."""
    try:
        commands = _read(text)
        written = write_out_values(text, "$`()")
        commands += _read(written) if written else []
    except _Uncertain:
        return None
    return tuple(dict.fromkeys(commands))


def _read(text: str) -> list[PlacedWords]:
    finder = _CommandFinder()
    finder.text(text)
    if (finder.writes and finder.moves and finder.count > 1) or (finder.feeds and finder.copies):
        raise _Uncertain
    return finder.commands


class _CommandFinder:
    """One pass over all commands. Its methods raise _Uncertain.

    count: of simple commands
    writes, moves: whether one of them writes a file or gets a here-document, or may put a file in another place
    feeds, copies: whether one of them gets the output of another one, or may copy that
    """

    def __init__(self) -> None:
        self.commands: list[PlacedWords] = []
        self.count = 0
        self.writes = False
        self.moves = False
        self.feeds = False
        self.copies = False
        self._texts = 0
        self._substitutions = 0

    def text(self, text: str) -> None:
        if self._texts > _DEEPEST or len(text) > LONGEST or any(char < " " and char not in "\t\n" for char in text):
            raise _Uncertain
        parsed = parse(text)
        comments = "".join(text[start:end] for start, end in parsed.comments)
        if parsed.problem is not None or "\x7f" in text or any(char in comments for char in UNCLEAR_IN_COMMENTS):
            raise _Uncertain
        self._texts += 1
        self._script(parsed.script)
        self._texts -= 1

    def _script(self, script: Script) -> None:
        for pipeline in script.pipelines:
            self.feeds = self.feeds or len(pipeline.commands) > 1
            for command in pipeline.commands:
                self._compound(command) if isinstance(command, Compound) else self._simple(command)

    def _compound(self, compound: Compound) -> None:
        if compound.kind not in _KINDS:
            raise _Uncertain
        if compound.kind is CompoundKind.FOR:
            _check_loop_name(compound.words[0].source)
        if compound.kind is CompoundKind.CONDITION and not _is_plain_test(compound.words[:-1]):
            raise _Uncertain
        self._children(compound)

    def _simple(self, command: SimpleCommand) -> None:
        self._children(command)
        is_read = bool(command.words) and command.words[0].source == "read"
        for word in command.assignments:
            if not (is_read and word.source.startswith("IFS=")):
                self._assignment(word, is_literal=bool(command.words))
        self.count += 1
        first = len(command.assignments) + (self._program(command) + 1 if command.words else 0)
        words = (*command.assignments, *command.words)
        emptied = [text for at, word in enumerate(words) if (text := _text(word, "")) or at < first]
        for texts in (tuple(map(_text, words)), tuple(emptied)):
            if texts:
                self.commands.append((texts, tuple(range(first))))

    def _children(self, node: ShellNode) -> None:
        for child in node.children():
            if isinstance(child, Redirection):
                self._redirection(child)
            elif isinstance(child, Word):
                self._word(child)
            elif isinstance(child, Script):
                self._script(child)

    def _word(self, word: Word) -> None:
        if word.has_unquoted("{") and has_braces(word.text):
            raise _Uncertain
        for part in word.parts:
            self._part(part)

    def _part(self, part: WordPart) -> None:
        is_input = part.kind is PartKind.PROCESS and part.value.startswith("<")
        self.feeds = self.feeds or is_input
        if part.body is not None and (part.kind in _SUBSTITUTIONS or is_input):
            self._substitutions += 1
            self._script(part.body)
            self._substitutions -= 1
        elif part.kind is PartKind.COMPUTED:
            if not _VALUE.fullmatch(part.value):
                raise _Uncertain
        elif part.kind not in (PartKind.TEXT, PartKind.VARIABLE):
            raise _Uncertain

    # what is read and written ----------------------------------------------------------------------------------------------------

    def _redirection(self, redirection: Redirection) -> None:
        if redirection.operator.startswith("<<"):
            self.writes = self.feeds = True
        if redirection.operator in ("<<", "<<-"):
            self._check_document(redirection)
            return
        for word in redirection.target:
            self._word(word)
        if redirection.operator not in ("<", "<<<") and not writes_nothing(redirection):
            if redirection.operator not in (">", ">>", ">|", "&>", "&>>") or redirection.stream.startswith("{"):
                raise _Uncertain
            self._write(redirection.target[0])

    def _write(self, target: Word) -> None:
        if not _is_literal(target) or not _DOCUMENT.fullmatch(target.text):
            raise _Uncertain
        self.writes = True

    def _check_document(self, redirection: Redirection) -> None:
        """Check that a here-document holds no expansions, and that each shell sees the same end of it."""
        delimiter = _DELIMITER.fullmatch(redirection.target[0].source)
        if delimiter is None:
            raise _Uncertain
        name = redirection.target[0].text
        lines = (line.lstrip("\t") for line in redirection.text.split("\n"))
        is_expanded = delimiter[3] is not None and not delimiter[0].startswith("\\")
        if any(line.startswith(name) for line in lines) or (is_expanded and any(c in redirection.text for c in "$`\\")):
            raise _Uncertain
        if self._substitutions and sys.platform == "darwin" and not is_read_alike(redirection.text):
            raise _Uncertain

    def _assignment(self, word: Word, *, is_literal: bool) -> None:
        """Check it. A program may read a file that its environment names as settings: then no document of the line may become that file."""
        _check_assignment(word, is_literal=is_literal)
        reaches_programs = is_literal or _names_setting(word.source.partition("=")[0].rstrip("+"))
        if reaches_programs and not is_harmless_assignment(word):
            self.moves = self.copies = True

    # what the programs do --------------------------------------------------------------------------------------------------------

    def _program(self, command: SimpleCommand) -> int:
        """Return the place of the program among the words."""
        words = command.words
        marked = tuple(_text(word, EXPANSION) for word in words)
        if marked[0] == "xargs":
            raise _Uncertain
        if only_looks_up(marked):
            return 0
        if marked[0] == "env":
            at = next((at for at, word in enumerate(words) if at and not word.assigned_name), len(words))
            for word in words[1:at]:
                self._assignment(word, is_literal=True)
        else:
            at = find_plainly_run(marked)
        own = words[at:]
        is_plain = bool(own) and (own[0].source == "[" or _is_literal(own[0])) and self._is_plain(own, marked[at:])
        has_settings = bool(command.assignments) or marked[0] == "env"
        if not is_plain or (has_settings and marked[at] in KINDS.literal_programs):
            raise _Uncertain
        return at

    def _is_plain(self, words: Sequence[Word], marked: Words) -> bool:
        """Return whether the program runs nothing but, if it is a shell, the commands of its text, which are read, too."""
        name = marked[0]
        if name in _SHELLS:
            return self._read_shell_text(words)
        if name == "tee":
            for word in words[1:]:
                if word.source != "-a":
                    self._write(word)
            return True
        if name in ("[", "test"):
            return _is_plain_test(words[1 : -1 if name == "[" else None])
        if name == "printf":
            return len(words) > 1 and is_plain_format(words[1])
        return is_silent_builtin(words) or _is_plain_read(words) or self._treats_words_as_data(words, marked)

    def _read_shell_text(self, words: Sequence[Word]) -> bool:
        """Read the commands of `sh -c TEXT`. Return False for any other call of a shell."""
        if len(words) != 3 or not _SHELL_TEXT.fullmatch(words[1].source) or not _is_literal(words[2]):
            return False
        self.text(words[2].text)
        return True

    def _treats_words_as_data(self, words: Sequence[Word], marked: Words) -> bool:
        name = marked[0]
        at = 1
        while name == "git" and marked[at : at + 1] in (("--no-pager",), ("-P",), ("-C",)):
            at += 2 if marked[at] == "-C" else 1
        marked = (name, *marked[at:])
        is_literal = all(map(_is_literal, words[1:])) and "::" not in "".join(marked)
        if any(use.effect is not OptionEffect.SENDS for use in find_option_uses(marked, reads_operands=False)):
            return False
        self.copies = self.copies or name in KINDS.copiers or (name == "uniq" and len(words) > 2)
        subcommand = marked[1] if len(marked) > 1 and all(map(_is_literal, words[: at + 1])) else ""
        enters = name in ("cd", "pushd") and not _is_work_folder(words)
        self.moves = self.moves or enters or name in KINDS.movers or (name == "git" and subcommand == "mv")
        if subcommand in KINDS.groups_of.get(name, ()):
            return len(marked) > 2 and marked[2] in KINDS.data_in_groups | KINDS.created_in_groups.get(
                name, frozenset()
            )
        if name in KINDS.data_programs or subcommand in KINDS.data_subcommands.get(name, ()):
            return True
        return is_literal and (name in KINDS.literal_programs or subcommand in KINDS.literal_subcommands.get(name, ()))


def _text(word: Word, computed: str = "$") -> str:
    """Return the word without quotes. computed: what stands for the `$` of what a shell puts in; "": the same without that"""
    values = (
        part.value
        if part.kind is PartKind.TEXT
        else computed + (part.value[1:] if part.kind is PartKind.VARIABLE else "()")
        if computed
        else ""
        for part in word.parts
    )
    return "".join(values)


def _is_literal(word: Word) -> bool:
    return all(part.kind is PartKind.TEXT for part in word.parts) and not word.has_unquoted("*?[{~")


def _is_plain_test(words: Sequence[Word]) -> bool:
    """Return whether it looks for a file, or compares texts: what is tested otherwise may be a name that the shell runs."""
    words = words[1:] if words and words[0].source == "!" else words
    if any(not part.quoted and part.kind is not PartKind.TEXT for word in words for part in word.parts):
        return False
    if len(words) == 3:
        return words[1].source in _COMPARISONS
    return len(words) == 1 or (len(words) == 2 and words[0].source in _TESTS)


def _is_work_folder(words: Sequence[Word]) -> bool:
    """Return whether the words of `cd` lead to a folder in which a document is only a document."""
    if len(words) != 2 or any(part.kind is not PartKind.TEXT for part in words[1].parts):
        return False
    target = words[1].text
    return not target.startswith("-") and _WORK_FOLDER.fullmatch(f"{target.rstrip('/')}/") is not None


def _is_plain_read(words: Sequence[Word]) -> bool:
    match = _READ.fullmatch(" ".join(word.source for word in words))
    for name in match[1].split() if match else ():
        _check_loop_name(name)
    return match is not None


def _check_assignment(word: Word, *, is_literal: bool) -> None:
    """is_literal: a value that the shell computes is uncertain"""
    match = _ASSIGNED.match(word.source)
    if match is None:
        raise _Uncertain
    if is_harmless_assignment(word):
        return
    _check_name(match[1])
    texts = [part.value for part in word.parts if part.kind is PartKind.TEXT]
    has_document = "<<" in word.source and ("_" in match[1] or match[1] in _PAGERS)
    if has_document or (is_literal and len(texts) < len(word.parts)) or not _SETTING.fullmatch("".join(texts)):
        raise _Uncertain


def _check_loop_name(name: str) -> None:
    """Check the same of a variable that a loop or `read` sets, and whose value may be any text."""
    _check_name(name)
    if _names_setting(name):
        raise _Uncertain


def _names_setting(name: str) -> bool:
    """Return whether a program may take its settings from a variable of this name."""
    return (name.isupper() and "_" in name) or name in _PAGERS


def _check_name(name: str) -> None:
    """Check that no shell runs or computes what is in a variable of this name."""
    is_code = name in VARIABLES.code or name in VARIABLES.computed or name.upper().startswith(_CODE_PREFIXES)
    if is_code or not name.isidentifier():
        raise _Uncertain
