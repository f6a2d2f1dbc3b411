"""What a shell command runs, as far as can be said for certain. An allow rule needs certainty, so anything that this reader does
not understand makes the command opaque; a deny rule needs suspicion, so of an opaque command every word may be a command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from cru.permissions.glob import Pieces, matches
from cru.permissions.programs import INTERPRETERS, KEYWORDS, RUNS_COMMANDS, SHELLS, WRAPPERS

Words: TypeAlias = tuple[str, ...]

BLANK = " \t"
OPERATORS = ";|&<>()`\n"
_END_OF_WORD = frozenset(" \t\n;&|")
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class Command(Struct, frozen=True):
    """`parts` are the words of each simple command, quotes removed; `opaque` says why the parts are not all there is ("" if
    they are); `suspect` says that words may hide commands."""

    raw: str
    parts: tuple[Words, ...] = ()
    opaque: str = ""
    suspect: bool = False


def read(text: str) -> Command:
    """Split a command line the way a POSIX shell does, or say why that cannot be done here."""
    reader = _Reader(text)
    try:
        parts = reader.run()
        for words in parts:
            _refuse_wrappers(words)
    except _Opaque as stop:
        return Command(text, opaque=str(stop), suspect=True)
    return Command(text, parts, suspect=any(_base(words[0]) in INTERPRETERS for words in parts))


def allowed_text(words: Words) -> str:
    """The words as an allow rule sees them: blanks inside a word are no blanks."""
    return " ".join("".join("\0" if char in " \t\n" else char for char in word) for word in words)


def hits(command: Command, pattern: Pieces) -> bool:
    """Whether a deny or ask rule's pattern finds a command of its own in this one, with or without further arguments."""
    forms = [pattern] if pattern[-1] == "" and len(pattern) > 1 else [pattern, (*pattern[:-1], pattern[-1] + " ", "")]
    if len(pattern) > 1 and pattern[-1] == "" and pattern[-2].endswith(" "):
        forms.append((*pattern[:-2], pattern[-2].rstrip()))
    return any(matches(form, text, start) for text, start in _candidates(command, pattern) for form in forms)


def _candidates(command: Command, pattern: Pieces) -> Iterator[tuple[str, int]]:
    """The texts, and where in them a command may begin."""
    for words in command.parts:
        text = " ".join(words)
        yield text, 0
        yield text, len(words[0]) - len(_base(words[0]))
    if any(char in piece for piece in pattern for char in OPERATORS):
        text = " ".join(command.raw.split())
        yield from ((text, start) for start in _starts(text, pattern))
    if command.suspect:
        for text in _segments(command.raw):
            yield from ((text, start) for start in _starts(text, pattern))


def _segments(raw: str) -> Iterator[str]:
    """An opaque command without quotes, cut wherever a command might begin."""
    text = raw.replace("\\\n", "").replace("${IFS}", " ").replace("$IFS", " ").replace("\\n", "\n")
    for char in "'\"\\":
        text = text.replace(char, "")
    for char in OPERATORS + "{}\r":
        text = text.replace(char, "\n")
    for line in text.split("\n"):
        yield " ".join(line.split())
        if "," in line and "{" in raw:
            yield " ".join(line.replace(",", " ").split())


def _starts(text: str, pattern: Pieces) -> Iterator[int]:
    """Where in the text a command may begin: at each word, behind its `=`, at the last name of a path. A pattern that begins
    with a star finds everything from the start of the text."""
    if pattern[0] == "":
        yield 0
        return
    at = 0
    for word in text.split(" "):
        yield at
        if "/" in word:
            yield at + word.rindex("/") + 1
        if "=" in word:
            yield at + word.index("=") + 1
        at += len(word) + 1


def _base(word: str) -> str:
    return word.rpartition("/")[2]


class _Opaque(Exception):
    pass


def _refuse_wrappers(words: Words) -> None:
    first = words[0]
    name = _base(first)
    head, assigned, _ = first.partition("=")
    if assigned and head.rstrip("+").partition("[")[0].isidentifier():
        raise _Opaque("a variable set for the command")
    if first in KEYWORDS:
        raise _Opaque(f"shell syntax (`{first}`)")
    if any(char in first for char in "$*?[{~!") and first != "[":
        raise _Opaque("a computed command name")
    if name in WRAPPERS or (name in SHELLS and any(_has_c(word) for word in words[1:])):
        raise _Opaque(f"`{name}`, which runs other commands")
    if any(word in RUNS_COMMANDS.get(name, ()) for word in words):
        raise _Opaque(f"`{name}` that runs other commands")


def _has_c(word: str) -> bool:
    return word.startswith("-") and not word.startswith("--") and "c" in word.lower()


class _Reader:
    """One pass over the text. `word` is None between words; `plain` says that the word holds no quotes so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.word: str | None = None
        self.plain = True
        self.words: list[str] = []
        self.parts: list[Words] = []

    def run(self) -> tuple[Words, ...]:
        if any((char < " " and char not in "\t\n") or char == "\x7f" for char in self.text):
            raise _Opaque("a control character")
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char in BLANK:
                self.end_word()
            elif char in OPERATORS:
                self.operator(char)
            elif char == "\\":
                self.escaped()
            elif char == "'":
                self.single()
            elif char == '"':
                self.double()
            else:
                self.ordinary(char)
        self.end_part()
        return tuple(self.parts)

    def add(self, text: str, *, quoted: bool = False) -> None:
        self.word = (self.word or "") + text
        self.plain = self.plain and not quoted

    def end_word(self) -> None:
        if self.word is not None:
            self.words.append(self.word)
        self.word, self.plain = None, True

    def end_part(self) -> None:
        self.end_word()
        if self.words:
            self.parts.append(tuple(self.words))
        self.words = []

    def ordinary(self, char: str) -> None:
        if char == "$":
            self.dollar(quoted=False)
        if char == "#" and self.word is None:
            raise _Opaque("a comment")  # a quote inside it would hide the next line
        self.add(char)

    def dollar(self, *, quoted: bool) -> None:
        """Behind a `$`: only `$name` and `${name}` are understood."""
        following = self.text[self.at : self.at + 1]
        if following in ("(", "["):
            raise _Opaque("a command substitution")
        if following and following in "'\"" and not quoted:
            raise _Opaque("a $-quoted text")
        if following == "{":
            close = self.text.find("}", self.at)
            if close < 0 or not set(self.text[self.at + 1 : close]) <= _NAME:
                raise _Opaque("a computed value")

    def escaped(self) -> None:
        if self.at >= len(self.text):
            raise _Opaque("a backslash at the end")
        if self.text[self.at] != "\n":
            self.add(self.text[self.at], quoted=True)
        self.at += 1

    def single(self) -> None:
        close = self.text.find("'", self.at)
        if close < 0:
            raise _Opaque("an open quote")
        self.add(self.text[self.at : close], quoted=True)
        self.at = close + 1

    def double(self) -> None:
        self.add("", quoted=True)
        while True:
            char = self.text[self.at : self.at + 1]
            self.at += 1
            if not char:
                raise _Opaque("an open quote")
            if char == '"':
                return
            if char == "`":
                raise _Opaque("a command substitution")
            if char == "$":
                self.dollar(quoted=True)
            if char == "\\" and self.text[self.at : self.at + 1] in tuple('"\\$`\n'):
                char = self.text[self.at].replace("\n", "")
                self.at += 1
            self.add(char, quoted=True)

    def operator(self, char: str) -> None:
        following = self.text[self.at : self.at + 1]
        if char == "`":
            raise _Opaque("a command substitution")
        if char in "()":
            raise _Opaque("a subshell or function")
        if char == "<":
            raise _Opaque("an input redirection")
        if char == ">" or (char == "&" and following == ">"):
            self.redirection(char)
            return
        if char in "&|" and following in (char, "&" if char == "|" else char):
            self.at += 1
        self.end_part()

    def redirection(self, char: str) -> None:
        """Only what writes no file is understood: to /dev/null, or one stream into another."""
        if char == ">" and self.plain and self.word is not None and self.word.isdigit():
            self.word = None  # it is the stream's number
        self.end_word()
        self.at += char == "&"
        copies = char == ">" and self.text.startswith("&", self.at)
        self.at += copies or self.text.startswith(">", self.at)
        while self.text[self.at : self.at + 1] in tuple(BLANK):
            self.at += 1
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in _END_OF_WORD:
            self.at += 1
        target = self.text[start : self.at]
        if target != "/dev/null" and not (copies and (target == "-" or (target.isascii() and target.isdigit()))):
            raise _Opaque("a redirection to a file")
