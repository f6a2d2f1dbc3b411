"""The front matter of agent cards: YAML, read as leniently as Claude Code reads it, since most cards are written for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from cru.core.base.files.yaml_text import BadYaml, parse_yaml

MOST_VALUES = 10_000
"""Aliases may repeat a few values any number of times, and whoever shows one of them writes them all."""
LONGEST_NUMBER = 4096
"""Bits. Python writes no number of more than 4,300 digits."""
LIMIT = 8 * 1024
"""Characters. What reading YAML costs grows with it, and a stranger's cards are many."""
_BLOCK = re.compile(r"\A---[ \t]*\r?\n(.*?)(?:^|\n)---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_PLAIN_LINE = re.compile(r"([a-zA-Z_-]+):\s+(\S.*)")
_SPECIAL = re.compile(r"[{}\[\]*&#!|>%@`]|: ")
"""What a value without quotes must not have in YAML, or only in places that few people know."""
_LIST_KEYS = ("tools", "allowed-tools", "disallowedTools", "denied_tools")
"""A list of these that is broken is never taken for text: what it withholds would not be withheld."""


class FrontMatterFault(Struct, frozen=True):
    """line: of the file, from 1; 0: not known. hint: the next step, "" if the text says it."""

    text: str
    line: int = 0
    hint: str = ""


class BadFrontMatter(ValueError):
    def __init__(self, fault: FrontMatterFault) -> None:
        super().__init__(fault.text)
        self.fault = fault


class NoFrontMatter(BadFrontMatter):
    """The file does not begin with `---`, or there is no second one: it may be a text about the cards beside it."""


class FrontMatter(Struct, frozen=True):
    """keys: as they are written. lines: where each of them stands in the file. body: the text below."""

    keys: Mapping[Any, Any]
    lines: Mapping[str, int]
    body: str

    def line(self, key: str) -> int:
        """0 if it is not there, or nobody knows where."""
        return self.lines.get(key, 0)


def read_front_matter(text: str) -> FrontMatter:
    """Take a file apart. Raises BadFrontMatter."""
    text = text.removeprefix("\ufeff")
    block = _BLOCK.match(text)
    if block is None:
        raise NoFrontMatter(
            FrontMatterFault(
                "no front matter", hint="begin with `---`, the keys (name, description, tools, …), and `---`"
            )
        )
    if len(block[1]) > LIMIT:
        raise BadFrontMatter(FrontMatterFault(f"the front matter is too long: the limit is {LIMIT} characters"))
    keys = _parse(block[1])
    if keys is not None and not isinstance(keys, dict):
        raise BadFrontMatter(FrontMatterFault("the front matter is not a table of keys", 2))
    _check_size(keys)
    return FrontMatter(keys or {}, dict(_key_lines(block[1])), text[block.end() :])


def _check_size(keys: object) -> None:
    """Raises BadFrontMatter: too many values, as one that is in itself has."""
    waiting, count = [keys], 0
    while waiting:
        value = waiting.pop()
        count += 1
        if count > MOST_VALUES:
            raise BadFrontMatter(FrontMatterFault(f"the front matter has more than {MOST_VALUES:,} values"))
        if isinstance(value, int) and value.bit_length() > LONGEST_NUMBER:
            raise BadFrontMatter(FrontMatterFault("the front matter has a number that is too large"))
        if isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list | tuple | set):
            waiting += value


def _parse(block: str) -> object:
    """As it is, else with quotes around the values that need them. What is wrong is told of the first: its lines are the author's."""
    try:
        return parse_yaml(block)
    except BadYaml as error:
        try:
            return parse_yaml(_quote_values(block))
        except BadYaml:
            line = error.line + 1 if error.line else 0
            raise BadFrontMatter(FrontMatterFault(f"not YAML: {error.problem}", line)) from error


def _quote_values(block: str) -> str:
    """Line by line what Claude Code does when a card is no YAML: `description: Use it: now` is meant as text; tabs indent."""
    return "\n".join(_quote_value(line.removesuffix("\r")) for line in block.split("\n"))


def _quote_value(line: str) -> str:
    plain = _PLAIN_LINE.fullmatch(line)
    if plain is None:
        return re.sub(r"\A\t+", lambda tabs: "  " * len(tabs[0]), line)
    key, value = plain.groups()
    if key in _LIST_KEYS and value[0] in "[{":
        return line
    if not _SPECIAL.search(value) or _is_quoted(value) or _is_list(value):
        return line
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{key}: "{escaped}"'


def _is_quoted(value: str) -> bool:
    return any(value.startswith(quote) and value.endswith(quote) for quote in "\"'")


def _is_list(value: str) -> bool:
    if not (value.startswith("[") and value.endswith("]")):
        return False
    try:
        return isinstance(parse_yaml(value), list)
    except BadYaml:
        return False


def _key_lines(block: str) -> Iterator[tuple[str, int]]:
    """Keys at the beginning of a line; the block begins in line 2."""
    for number, line in enumerate(block.split("\n"), 2):
        if key := re.match(r"""(["']?)([^\s"'#][^"':]*)\1\s*:""", line):
            yield key[2], number
