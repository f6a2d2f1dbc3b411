"""Regular expressions of strangers: whether one finds something in a text, in a number of steps that is bounded by both lengths.

`re` tries one way after the other, and an expression of twenty characters can have more ways than there is time. Here all ways are
followed at once, character by character (Thompson's construction), over what Python's own parser makes of the expression. What cannot be
followed like this (backreferences, possessive repetitions) is left to `re` if it repeats little and the text is short."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeAlias

from msgspec import Struct

STEPS = 200_000
"""Places in an expression that are looked at for one text: some 60 ms."""
LONGEST_TEXT = 4096
"""Characters of a text that is searched: no name and no path is longer."""
LONGEST_TRIED = 64
"""Characters of a text that is left to `re` although the expression repeats several things."""
MOST_TRIED = 4
"""Repetitions of such an expression, none of a group: the four ways of 64 characters take 60 ms."""
_LONGEST_PLAIN = 256
"""Characters of a text that is left to `re` if the expression repeats at most one thing."""
_LARGEST = 20_000
"""Instructions that an expression may become."""
_REPEATED_GROUP = re.compile(r"\)[*+?{]")
_NAMED_REFERENCE = re.compile(r"\(\?P=\w+\)")

_parser: Any = import_module("re._parser")
_constants: Any = import_module("re._constants")

CharTest: TypeAlias = Callable[[str], bool]


class _UnsupportedRegex(Exception):
    """What is not followed here, or becomes too large."""


class _RegexStep(Struct):
    """One place in an expression.

    test: takes one character, and goes on behind
    targets: where it goes on without taking one
    at: a position at which it goes on only; inner: an expression that must, or must not, match there
    """

    test: CharTest | None = None
    targets: tuple[int, ...] = ()
    at: str = ""
    inner: _RegexProgram | None = None
    is_negated: bool = False
    width_behind: int = 0


_RegexProgram: TypeAlias = "list[_RegexStep]"


def finds(pattern: str, text: str) -> bool | None:
    """Whether the expression matches anywhere in the text; None if that cannot be told within the limits. Raises re.error."""
    if len(text) > LONGEST_TEXT:
        re.compile(pattern)
        return None
    if not text or (len(text) <= _LONGEST_PLAIN and _is_plain(pattern)):
        return re.search(pattern, text) is not None
    return _finds(pattern, text)


@lru_cache(maxsize=1024)
def _finds(pattern: str, text: str) -> bool | None:
    try:
        program = _compile(pattern)
    except _UnsupportedRegex:
        is_short = len(text) <= LONGEST_TRIED and _repetitions(pattern) <= MOST_TRIED
        return re.search(pattern, text) is not None if is_short and not _repeats_group(pattern) else None
    return _RegexSearch(text).run(program)


def _is_plain(pattern: str) -> bool:
    """Whether it repeats one thing at most, and no group."""
    return _repetitions(pattern) < 2 and not _repeats_group(pattern)


def _repeats_group(pattern: str) -> bool:
    return _REPEATED_GROUP.search(_NAMED_REFERENCE.sub("x", pattern)) is not None


def _repetitions(pattern: str) -> int:
    return sum(map(pattern.count, "*+?{")) - pattern.count("(?")


class _RegexSearch:
    """One text, and how many steps are left for it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._steps = STEPS

    def run(self, program: _RegexProgram) -> bool | None:
        try:
            return self._matches(program, 0)
        except TimeoutError:
            return None

    def _matches(self, program: _RegexProgram, start: int, *, is_search: bool = True, end: int | None = None) -> bool:
        """From `start` on, from anywhere behind it if it is a search; to `end` exactly, if one is given."""
        current: dict[int, None] = {}
        for at in range(start, len(self._text) + 1):
            if at == start or is_search:
                self._reach(program, 0, at, current)
            if len(program) in current and (end is None or at == end):
                return True
            if at == len(self._text) or at == end or not (current or is_search):
                return False
            following: dict[int, None] = {}
            for place in current:
                test = program[place].test if place < len(program) else None
                if test is not None and test(self._text[at]):
                    self._reach(program, place + 1, at + 1, following)
            current = following
        return False

    def _reach(self, program: _RegexProgram, place: int, at: int, reached: dict[int, None]) -> None:
        """All places that are reached from one without a character."""
        waiting = [place]
        while waiting:
            here = waiting.pop()
            if here in reached:
                continue
            self._steps -= 1
            if self._steps < 0:
                raise TimeoutError
            reached[here] = None
            if here == len(program):
                continue
            instruction = program[here]
            if instruction.test is None and self._may_pass(instruction, at):
                waiting.extend(instruction.targets)

    def _may_pass(self, instruction: _RegexStep, at: int) -> bool:
        if instruction.at:
            return _is_at(instruction.at, self._text, at)
        if instruction.inner is None:
            return True
        start = at - instruction.width_behind
        end = at if instruction.width_behind else None
        holds = start >= 0 and self._matches(instruction.inner, start, is_search=False, end=end)
        return holds is not instruction.is_negated


def _is_at(kind: str, text: str, at: int) -> bool:
    if kind == "AT_BEGINNING_STRING":
        return at == 0
    if kind == "AT_BEGINNING_LINE":
        return at == 0 or text[at - 1] == "\n"
    if kind == "AT_END_STRING":
        return at == len(text)
    if kind == "AT_END":
        return text[at:] in ("", "\n")
    if kind == "AT_END_LINE":
        return text[at : at + 1] in ("", "\n")
    before, behind = at > 0 and _is_word(text[at - 1]), at < len(text) and _is_word(text[at])
    return (before is not behind) is (kind == "AT_BOUNDARY")


# from what Python's parser says to a program ----------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _compile(pattern: str) -> _RegexProgram:
    parsed = _parser.parse(pattern)
    compiler = _RegexCompiler()
    compiler.add(parsed, parsed.state.flags)
    return compiler.program


class _RegexCompiler:
    def __init__(self) -> None:
        self.program: _RegexProgram = []

    def add(self, items: Iterable[tuple[Any, Any]], flags: int) -> None:
        for operation, argument in items:
            self._add_one(str(operation), argument, flags)

    def _emit(self, instruction: _RegexStep) -> int:
        if len(self.program) >= _LARGEST:
            raise _UnsupportedRegex
        self.program.append(instruction)
        return len(self.program) - 1

    def _add_one(self, operation: str, argument: Any, flags: int) -> None:
        if operation in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = argument
            self._repeat(least, most, inner, flags)
        elif operation == "SUBPATTERN":
            _, more, fewer, inner = argument
            self.add(inner, (flags | more) & ~fewer)
        elif operation == "BRANCH":
            self._branch(argument[1], flags)
        elif operation in ("ASSERT", "ASSERT_NOT"):
            self._look(argument, flags, is_negated=operation == "ASSERT_NOT")
        elif operation == "AT":
            self._emit(_RegexStep(at=_position(str(argument), flags), targets=(len(self.program) + 1,)))
        else:
            self._emit(_RegexStep(test=_character_test(operation, argument, flags)))

    def _repeat(self, least: int, most: Any, inner: Any, flags: int) -> None:
        """Each repetition is written out: what has too many is left to `re`."""
        for _ in range(least):
            self.add(inner, flags)
        if most is _constants.MAXREPEAT:
            start = self._emit(_RegexStep())
            self.add(inner, flags)
            end = self._emit(_RegexStep(targets=(start,)))
            self.program[start].targets = (start + 1, end + 1)
            return
        skips = []
        for _ in range(int(most) - least):
            skips.append(self._emit(_RegexStep()))
            self.add(inner, flags)
        for skip in skips:
            self.program[skip].targets = (skip + 1, len(self.program))

    def _branch(self, choices: Any, flags: int) -> None:
        start = self._emit(_RegexStep())
        begins, ends = [], []
        for choice in choices:
            begins.append(len(self.program))
            self.add(choice, flags)
            ends.append(self._emit(_RegexStep()))
        self.program[start].targets = tuple(begins)
        for end in ends:
            self.program[end].targets = (len(self.program),)

    def _look(self, argument: Any, flags: int, *, is_negated: bool) -> None:
        direction, inner = argument
        compiler = _RegexCompiler()
        compiler.add(inner, flags)
        width = 0
        if direction < 0:
            width = inner.getwidth()[0]
            if width == 0:
                raise _UnsupportedRegex
        self._emit(
            _RegexStep(
                inner=compiler.program, is_negated=is_negated, width_behind=width, targets=(len(self.program) + 1,)
            )
        )


def _position(kind: str, flags: int) -> str:
    if flags & re.ASCII and "BOUNDARY" in kind:
        raise _UnsupportedRegex
    if flags & re.MULTILINE and kind in ("AT_BEGINNING", "AT_END"):
        return f"{kind}_LINE"
    return "AT_BEGINNING_STRING" if kind == "AT_BEGINNING" else kind


def _character_test(operation: str, argument: Any, flags: int) -> CharTest:
    """For one character; letters of either case are the same where the flags say so."""
    if operation == "ANY":
        return (lambda char: True) if flags & re.DOTALL else (lambda char: char != "\n")
    if operation == "LITERAL":
        tests, is_negated = [_literal(argument)], False
    elif operation == "NOT_LITERAL":
        tests, is_negated = [_literal(argument)], True
    elif operation == "IN":
        is_negated = str(argument[0][0]) == "NEGATE"
        tests = [_member(str(kind), value, flags) for kind, value in argument if str(kind) != "NEGATE"]
    else:
        raise _UnsupportedRegex
    if flags & re.IGNORECASE:
        return lambda char: any(test(letter) for test in tests for letter in _cases(char)) is not is_negated
    return lambda char: any(test(char) for test in tests) is not is_negated


def _literal(code: int) -> CharTest:
    return chr(code).__eq__


def _member(kind: str, value: Any, flags: int) -> CharTest:
    if kind == "LITERAL":
        return _literal(value)
    if kind == "RANGE":
        low, high = map(chr, value)
        return lambda char: low <= char <= high
    if flags & re.ASCII:
        raise _UnsupportedRegex
    name = str(value).removeprefix("CATEGORY_")
    test = {"DIGIT": str.isdecimal, "SPACE": str.isspace, "WORD": _is_word}[name.removeprefix("NOT_")]
    return (lambda char: not test(char)) if name.startswith("NOT_") else test


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _cases(char: str) -> tuple[str, ...]:
    return (char, *(other for other in (char.lower(), char.upper()) if len(other) == 1))
