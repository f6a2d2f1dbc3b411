"""What becomes of the text of a command or skill: arguments, `!` commands, `@` files. Pure: it runs and reads nothing.

As Claude Code 2.1.332 does it (tests/data/differential/claude.json, `C…`): `$0` is the first word behind the name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from msgspec import Struct

_ARGUMENT = re.compile(r"(\\)?(?:\$ARGUMENTS\[(\d+)\]|(\$ARGUMENTS)|\$(\d+)(?!\w)|\$([A-Za-z_]\w*))")
_COMMAND = re.compile(r"```![^\S\n]*\n(.*?)```|(?:(?<=\s)|^)!`([^`\n]+)`", re.DOTALL | re.MULTILINE)
_WORD = re.compile(r"""\s*((?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s"'\\])+)""", re.DOTALL)
_MENTION = re.compile(r"(?:(?<=\s)|^)@((?:[^\s\\`\"'()\[\]]|\\ )+)", re.MULTILINE)


class TextPiece(Struct, frozen=True):
    """Of an expanded text. is_command: in its place goes what the command prints"""

    text: str
    is_command: bool = False


class _Arguments:
    """What was typed behind a command's name. is_used: whether the text had a place for something of it"""

    def __init__(self, typed: str, names: Sequence[str]) -> None:
        self.is_used = False
        self._typed = typed
        self._words = split_words(typed)
        self._named = dict(zip(names, self._words, strict=False))

    def substitute(self, text: str) -> str:
        return _ARGUMENT.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        """Itself where there is no such argument; `\\$1` is the text `$1`."""
        if match[1]:
            return match[0][1:]
        value = self._typed if match[3] else self._find(match)
        self.is_used = self.is_used or value is not None
        return match[0] if value is None else value

    def _find(self, match: re.Match[str]) -> str | None:
        if match[5]:
            return self._named.get(match[5])
        number = int(match[2] or match[4])
        return self._words[number] if number < len(self._words) else None


def expand(body: str, typed: str, names: Sequence[str], variables: Mapping[str, str]) -> list[TextPiece]:
    """The text with what was typed; where it has no place for that, it stands at the end. What was typed adds no commands: these are the
    file's own."""
    for name, text in variables.items():
        body = body.replace(f"${{{name}}}", text)
    arguments = _Arguments(typed, names)
    pieces, at = [], 0
    for match in _COMMAND.finditer(body):
        pieces.append(TextPiece(arguments.substitute(body[at : match.start()])))
        command = match[1] if match[1] is not None else match[2]
        pieces.append(TextPiece(arguments.substitute(command.strip()), is_command=True))
        at = match.end()
    rest = arguments.substitute(body[at:])
    if typed and not arguments.is_used:
        rest = f"{rest.rstrip()}\n\nARGUMENTS: {typed}"
    return [*pieces, TextPiece(rest)]


def runs_commands(body: str) -> bool:
    return _COMMAND.search(body) is not None


def split_words(typed: str) -> list[str]:
    """The arguments; from a quote without its pair on all is one word, the quote too."""
    words, at = list[str](), 0
    while (match := _WORD.match(typed, at)) is not None:
        at = match.end()
        if at < len(typed) and not typed[at].isspace():
            return [*words, typed[match.start(1) :].rstrip()]
        words += shlex.split(match[1])
    rest = typed[at:].strip()
    return [*words, rest] if rest else words


def find_mentions(text: str) -> list[str]:
    """Paths behind `@`, each once."""
    return list(dict.fromkeys(match[1].replace("\\ ", " ") for match in _MENTION.finditer(text)))
