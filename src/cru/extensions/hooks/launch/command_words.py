"""Where in a shell's source commands begin, as far as can be said without running it. Reads from the left and stops at the first thing
that it does not understand: what it has found by then is right, the rest is left to the shell."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

BEFORE_A_COMMAND = frozenset(("if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "exec"))
NOT_READ = frozenset(("case", "function", "coproc"))
DEEPEST = 50
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)\+?=", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_END = frozenset(" \t\n;&|<>()")
_SPLIT = frozenset(" \t\n*?[")
"""What in an unquoted value would make several words of it."""
_NESTED = frozenset("'\"`$\\{")
"""What inside `${…}` would need a reader of its own."""


class CommandStart(Struct, frozen=True):
    """A command's first word: where it begins, what it stands for (None = that shows only when it runs), and the folders it is run in,
    one after another from the starting one (None = unknown)."""

    at: int
    text: str | None
    moves: tuple[str, ...] | None


class _Stop(Exception):
    pass


def find_command_starts(source: str, env: Mapping[str, str]) -> list[CommandStart]:
    """Every command's beginning that can be told. `env` gives the values of variables."""
    reader = _Reader(source, env)
    try:
        reader.commands("")
    except _Stop:
        pass
    return reader.found


class _Reader:
    """One pass. `first`: the next word begins a command · `moves`: as in Begin · `changed`: variables that the source itself may set ·
    `cd`: the words of a `cd` so far · `branched`: a command may not run at all."""

    def __init__(self, text: str, env: Mapping[str, str]) -> None:
        self.text = text
        self.env = env
        self.at = 0
        self.first = True
        self.found: list[CommandStart] = []
        self.moves: tuple[str, ...] | None = ()
        self.changed: set[str] = set()
        self.cd: list[str | None] | None = None
        self.branched = False
        self.depth = 0

    def peek(self, ahead: int = 0) -> str:
        return self.text[self.at + ahead : self.at + ahead + 1]

    def commands(self, close: str) -> None:
        """Commands up to `close`, or to the end of the text."""
        self.first = True
        while True:
            char = self.peek()
            if char == close:
                self.at += 1
                self.moved("\n")
                return
            if not char or char == ")":
                raise _Stop
            if char in " \t":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = end if end >= 0 else len(self.text)
            else:
                self.token(char)

    def token(self, char: str) -> None:
        if char in "<>" or self.text.startswith("&>", self.at):
            self.redirection()
        elif char in ";&|\n":
            self.operator()
        elif char == "(":
            self.group()
        else:
            self.a_word()

    def operator(self) -> None:
        char = self.peek()
        double = char in "&|;" and self.peek(1) in (char, "&" if char == "|" else char)
        self.moved(char * (2 if double else 1))
        self.at += 2 if double else 1
        self.first = True

    def group(self) -> None:
        """A subshell; what it changes stays in it. Arithmetic, functions and arrays are not read."""
        if not self.first or self.peek(1) == "(":
            raise _Stop
        self.at += 1
        self.nested()
        self.first = False

    def nested(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _Stop
        kept = self.first, self.moves, self.cd
        self.cd = None
        self.commands(")")
        self.first, self.moves, self.cd = kept
        self.depth -= 1

    def redirection(self) -> None:
        if self.text.startswith("<<", self.at):
            raise _Stop
        if self.peek() in "<>" and self.peek(1) == "(":  # a process for a file
            self.at += 2
            self.nested()
            return
        while self.peek() and self.peek() in "<>&|":
            self.at += 1
        while self.peek() and self.peek() in " \t":
            self.at += 1
        self.word()

    def a_word(self) -> None:
        start = self.at
        text = self.word()
        raw = self.text[start : self.at]
        if raw.isdigit() and self.peek() and self.peek() in "<>":
            return
        assigned = _ASSIGNED.match(raw)
        if assigned:
            self.changed.add(assigned[1])
        elif self.first:
            self.begin(start, raw, text)
        else:
            if _NAME.fullmatch(raw):  # `read NAME`, `for NAME in`, `unset NAME`
                self.changed.add(raw)
            if self.cd is not None:
                self.cd.append(text)

    def begin(self, start: int, raw: str, text: str | None) -> None:
        if raw in NOT_READ:
            raise _Stop
        if raw in BEFORE_A_COMMAND:
            self.branched = self.branched or raw not in ("!", "time", "exec")
            return
        self.first = False
        if raw == "[[":
            self.condition()
        elif text == "cd":
            self.cd = []
        elif text in ("pushd", "popd", "eval"):
            self.moves = None
        else:
            self.found.append(CommandStart(start, text, self.moves))

    def condition(self) -> None:
        """Up to `]]`: operators are none there."""
        while self.peek():
            start = self.at
            if self.peek() in _END:
                self.at += 1
            else:
                self.word()
            if self.text[start : self.at] == "]]":
                return
        raise _Stop

    def moved(self, operator: str) -> None:
        """At a command's end: where the next one runs."""
        words, self.cd = self.cd, None
        if words is None or self.moves is None:
            return
        word = words[0] if len(words) == 1 else None
        plain = word and not word.startswith("-") and operator in ("&&", ";", "\n") and not self.branched
        self.moves = (*self.moves, word) if word and plain else None

    def word(self) -> str | None:
        """What the word stands for. None if that shows only when it runs."""
        parts: list[str | None] = []
        if self.peek() == "~":
            self.at += 1
            parts.append(self.env.get("HOME") if self.peek() == "/" else None)
        while self.peek() and self.peek() not in _END:
            parts.append(self.piece())
        if self.peek() == "(":  # an array, a function, a pattern
            raise _Stop
        known = [part for part in parts if part is not None]
        return "".join(known) if len(known) == len(parts) else None

    def piece(self) -> str | None:
        char = self.peek()
        self.at += 1
        if char == "\\":
            return self.escaped()
        if char == "'":
            return self.upto("'")
        if char == '"':
            return self.double()
        if char == "$":
            value = self.dollar()
            return None if value is None or not _SPLIT.isdisjoint(value) else value
        if char == "`":
            raise _Stop
        return None if char in "*?[{" else char

    def escaped(self) -> str:
        char = self.peek()
        if not char:
            raise _Stop
        self.at += 1
        return "" if char == "\n" else char

    def upto(self, close: str) -> str:
        end = self.text.find(close, self.at)
        if end < 0:
            raise _Stop
        start, self.at = self.at, end + 1
        return self.text[start:end]

    def double(self) -> str | None:
        parts: list[str | None] = []
        while (char := self.peek()) != '"':
            if not char or char == "`":
                raise _Stop
            self.at += 1
            if char == "$":
                parts.append(self.dollar())
            elif char == "\\" and self.peek() in tuple('"\\$`\n'):
                parts.append(self.escaped())
            else:
                parts.append(char)
        self.at += 1
        known = [part for part in parts if part is not None]
        return "".join(known) if len(known) == len(parts) else None

    def dollar(self) -> str | None:
        """The value behind a `$`."""
        following = self.peek()
        if following == "(":
            if self.peek(1) == "(":
                raise _Stop
            self.at += 1
            self.nested()
            return None
        if following and following in "'\"[":
            raise _Stop
        if following == "{":
            self.at += 1
            inner = self.upto("}")
            if not _NESTED.isdisjoint(inner):
                raise _Stop
            return self.value(inner) if _NAME.fullmatch(inner) else None
        name = _NAME.match(self.text, self.at)
        if name is None:
            self.at += bool(following) and following in "?#@*!-$0123456789"
            return None
        self.at = name.end()
        return self.value(name[0])

    def value(self, name: str) -> str | None:
        return None if name in self.changed else self.env.get(name)
