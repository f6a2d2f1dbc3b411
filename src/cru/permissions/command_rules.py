"""What a shell command runs, as far as can be said for certain. An allow rule needs certainty, so anything that this reader does
not understand makes the command opaque; a deny rule needs suspicion, so of an opaque command every word may be a command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from cru.files.glob import StarGlob, matches_text
from cru.shell.programs import (
    COMMAND_OPTIONS,
    INTERPRETERS,
    KEYWORDS,
    NAMING_OPTIONS,
    SHELLS,
    SUBCOMMAND_PROGRAMS,
    VARIABLE_SETTERS,
    WRAPPERS,
)

Words: TypeAlias = tuple[str, ...]

BLANK = " \t"
OPERATORS = ";|&<>()`\n"
_END_OF_WORD = frozenset(" \t\n;&|")
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class Command(Struct, frozen=True):
    """`parts` are the words of each simple command that was found, quotes removed; `opaque` says why the parts are not all there
    is ("" if they are); `suspect` says that words may hide commands."""

    raw: str
    parts: tuple[Words, ...] = ()
    opaque: str = ""
    suspect: bool = False


def read(text: str) -> Command:
    """Split a command line the way a POSIX shell does, or say why that cannot be done here."""
    reader = _Reader(text)
    try:
        reader.run()
    except _Opaque as stop:
        reader.opaque = str(stop)
        reader.keep()
    suspect = bool(reader.opaque) or any(_runs_code(word) for words in reader.parts for word in words)
    return Command(text, tuple(reader.parts), reader.opaque, suspect)


def allowed_text(words: Words) -> str:
    """The words as an allow rule sees them: blanks inside a word are no blanks."""
    return " ".join("".join("\0" if char in " \t\n" else char for char in word) for word in words)


def hits(command: Command, pattern: StarGlob) -> bool:
    """Whether a deny or ask rule's pattern finds a command of its own in this one, with or without further arguments."""
    forms = [pattern] if pattern[-1] == "" and len(pattern) > 1 else [pattern, (*pattern[:-1], pattern[-1] + " ", "")]
    if len(pattern) > 1 and pattern[-1] == "" and pattern[-2].endswith(" "):
        forms.append((*pattern[:-2], pattern[-2].rstrip()))
    return any(matches_text(form, text, start) for text, start in _candidates(command, pattern) for form in forms)


def _candidates(command: Command, pattern: StarGlob) -> Iterator[tuple[str, int]]:
    """The texts, and where in them a command may begin."""
    for words in command.parts:
        for form in (words, *_without_options(words)):
            text = " ".join(form)
            yield text, 0
            yield text, len(form[0]) - len(_base(form[0]))
    if any(char in piece for piece in pattern for char in OPERATORS):
        text = " ".join(command.raw.split())
        yield from ((text, start) for start in _starts(text, pattern))
    if command.suspect:
        for words in _segments(command.raw):
            for form in (words, *_without_options(words)):
                text = " ".join(form)
                yield from ((text, start) for start in _starts(text, pattern))


def _without_options(words: Words) -> Iterator[Words]:
    """`git push` for `git -C . push`: the words from each program that has subcommands, without the options before its own.
    Whether an option takes a value is not known, so both are tried."""
    for at, word in enumerate(words):
        name = _base(word)
        if name not in SUBCOMMAND_PROGRAMS:
            continue
        for first in range(at + 2, len(words)):
            if not (words[first - 1].startswith("-") or (first > at + 2 and words[first - 2].startswith("-"))):
                break
            yield (name, *words[first:])


def _segments(raw: str) -> Iterator[Words]:
    """The words of a suspect command, cut wherever a command might begin: once with the quotes taken away, so that pieces of a
    word come together, and once with everything but plain characters as a blank, so that nothing hangs before a command."""
    text = raw.replace("\\\n", "").replace("${IFS}", " ").replace("$IFS", " ")
    if "\\" in text:
        text = f"{text}\n{_unescaped(text)}"
    joined = text.replace("\\n", "\n").replace("$'", "").replace('$"', "")
    for char in "'\"\\":
        joined = joined.replace(char, "")
    apart = text.replace("\\n", "\n")
    for char in "'\"\\,[]{}=!@:$":
        apart = apart.replace(char, " ")
    for one in (joined, apart):
        for char in OPERATORS + "{}\r":
            one = one.replace(char, "\n")
        yield from (tuple(line.split()) for line in one.split("\n") if line and not line.isspace())


def _unescaped(text: str) -> str:
    """With `\\x72` and `\\162` as the letters they stand for in `$'…'` and in `printf`."""
    import re

    found = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|0?([0-7]{2,3}))")
    return found.sub(lambda m: chr(int(m[3], 8) if m[3] else int(m[1] or m[2], 16)), text)


def _starts(text: str, pattern: StarGlob) -> Iterator[int]:
    """Where in the text a command may begin: at each word, behind its `=` or its option's letter, at the last name of a path.
    A pattern that begins with a star finds everything from the start of the text."""
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
        if word.startswith("-"):  # `-Srm`
            yield at + 2
        at += len(word) + 1


def _base(word: str) -> str:
    return word.rpartition("/")[2]


def _runs_code(word: str) -> bool:
    name = _base(word)
    return name in SHELLS or not {name, name.rstrip("0123456789.-")}.isdisjoint(INTERPRETERS)


class _Opaque(Exception):
    pass


def _why_opaque(words: Words, globs: bool) -> str:
    """Why a simple command may run others, "" if it does not; `globs`: names of files may become words of it."""
    first = words[0]
    name = _base(first)
    head, assigned, _ = first.partition("=")
    if assigned and head.rstrip("+").partition("[")[0].isidentifier():
        return "a variable set for the command"
    if first in KEYWORDS:
        return f"shell syntax (`{first}`)"
    if any(char in first for char in "$*?[{~!") and first != "[":
        return "a computed command name"
    if name in WRAPPERS or name.startswith(("ld-linux", "ld.so")) or (name in SHELLS and not _has_script(words)):
        return f"`{name}`, which runs other commands"
    if name in VARIABLE_SETTERS or (name in NAMING_OPTIONS and (globs or _names_variables(words))):
        return f"`{name}`, which may run what stands in a name"
    if any(_is_option(word, option) for option in COMMAND_OPTIONS.get(name, ()) for word in words[1:]):
        return f"`{name}` that runs other commands"
    if globs and name in COMMAND_OPTIONS and name != "git":
        return f"`{name}` with names of files that may be options"
    if name in SUBCOMMAND_PROGRAMS and len(words) > 2 and words[1].startswith("-"):
        return f"an option before what `{name}` is to do"
    return ""


def _names_variables(words: Words) -> bool:
    name = _base(words[0])
    named = "\0" if name == "printf" else "["
    return any(named in word or word.startswith(NAMING_OPTIONS[name]) for word in words[1:])


def _has_script(words: Words) -> bool:
    """Whether a shell runs a file, not text: from an argument (`-c`) or its standard input (`-s`, or no argument)."""
    options = [word for word in words[1:] if word.startswith("-")]
    return len(options) < len(words) - 1 and not any("c" in word.lower() or "s" in word for word in options)


def _is_option(word: str, option: str) -> bool:
    """Whether the word is this option, with its value or shortened too."""
    head = word.partition("=")[0]
    if option.startswith("--"):
        return len(head) > 3 and (head.startswith(option) or option.startswith(head))
    if len(option) == 2:
        return head.startswith("-") and not head.startswith("--") and option[1] in head
    return head == option


class _Reader:
    """One pass over the text. `word` is None between words; `plain` says that the word holds no quotes so far, `braced` that it
    holds an open brace, `globs` that a word of the command does hold a pattern of file names."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.word: str | None = None
        self.plain = True
        self.braced = self.globs = False
        self.words: list[str] = []
        self.parts: list[Words] = []
        self.opaque = ""

    def run(self) -> None:
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

    def keep(self) -> None:
        """What was read of a command that cannot be read to its end."""
        words = [*self.words, *([] if self.word is None else [self.word])]
        if words:
            self.parts.append(tuple(words))

    def add(self, text: str, *, quoted: bool = False) -> None:
        self.word = (self.word or "") + text
        self.plain = self.plain and not quoted

    def end_word(self) -> None:
        if self.word is not None:
            if self.braced and ("," in self.word or ".." in self.word):
                raise _Opaque("a brace expansion")
            self.words.append(self.word)
        self.word, self.plain, self.braced = None, True, False

    def end_part(self) -> None:
        self.end_word()
        if self.words:
            self.parts.append(tuple(self.words))
            self.opaque = self.opaque or _why_opaque(self.parts[-1], self.globs)
        self.words, self.globs = [], False

    def ordinary(self, char: str) -> None:
        if char == "#" and self.word is None:
            raise _Opaque("a comment")  # a quote inside it would hide the next line
        self.braced = self.braced or char == "{"
        self.globs = self.globs or (char in "*?[" and bool(self.words))
        self.add(self.dollar(quoted=False) if char == "$" else char)

    def dollar(self, *, quoted: bool) -> str:
        """Behind a `$`: only `$name` and `${name}` are understood, and the second one is read."""
        following = self.text[self.at : self.at + 1]
        if following in ("(", "["):
            raise _Opaque("a command substitution")
        if following and following in "'\"" and not quoted:
            raise _Opaque("a $-quoted text")
        if following != "{":
            return "$"
        close = self.text.find("}", self.at)
        if close < 0 or not set(self.text[self.at + 1 : close]) <= _NAME:
            raise _Opaque("a computed value")
        start, self.at = self.at, close + 1
        return "$" + self.text[start : self.at]

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
                char = self.dollar(quoted=True)
            elif char == "\\" and self.text[self.at : self.at + 1] in tuple('"\\$`\n'):
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
