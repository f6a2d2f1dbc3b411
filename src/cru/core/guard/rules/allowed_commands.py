"""Allow rules on shell commands: each program that a command runs must be covered, and nothing be uncertain."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol, TypeVar

from cru.core.base.files import glob
from cru.core.guard.rules.paths import JudgedCall
from cru.core.guard.shell.analysis import CommandAnalysis, Words, analyze
from cru.core.guard.shell.option_uses import find_option_uses
from cru.core.guard.shell.options import OptionUse
from cru.core.guard.shell.parser import parse
from cru.core.guard.shell.programs import names
from cru.core.guard.shell.simplify import bare_command_words, has_condition, simplify
from cru.core.guard.shell.syntax import EXPANSION


class PatternRule(Protocol):
    """What is wanted of a rule."""

    @property
    def pattern(self) -> str | None: ...
    @property
    def pieces(self) -> glob.StarGlob: ...


AnyRule = TypeVar("AnyRule", bound=PatternRule)
_FOR_LATER = names("cd dirs hash popd pushd shift times ulimit umask")
"""Builtins that change what commands behind them do, if they stand in no subshell."""
_STAR = re.compile(r"(?<!\\)\*")
_MOST_WORDS = 100
"""Of a rule; a longer one names nothing."""
_REDUCED = ("git -", "nice ", "env ")


def find_command_rules(rules: Sequence[AnyRule], call: JudgedCall, root: str) -> tuple[AnyRule, ...]:
    """The rules that cover the command, each once: one without a star that is the whole command, or rules for all that it runs; () if
    something is not covered. root: where it runs; "": what stands around it needs rules, too"""
    whole = next((rule for rule in rules if rule.pieces == (call.detail.strip(),)), None)
    covering = (whole,) if whole is not None else _find_covering(rules, call.command)
    if not covering and root:
        text = simplify(call.detail, root)
        if text or any(bare_pattern(rule.pattern or "") for rule in rules):
            covering = _find_covering(rules, analyze(text) if text else call.command, is_bare=True)
    return covering


def bare_command(call: JudgedCall, root: str) -> CommandAnalysis:
    """The command without what changes nothing; as it is, if that is not one program, or runs on a condition, or is one for what comes
    behind it (`cd`)."""
    is_plain = not call.command.opaque and len(call.command.parts) == 1
    if is_plain or not (text := simplify(call.detail, root)) or has_condition(parse(call.detail).script):
        return call.command
    bare = analyze(text)
    is_program = len(bare.parts) == 1 and not bare.opaque and bare.parts[0][0] not in _FOR_LATER
    return bare if is_program else call.command


def _find_covering(rules: Sequence[AnyRule], command: CommandAnalysis, *, is_bare: bool = False) -> tuple[AnyRule, ...]:
    """is_bare: rules, too, mean what they say without what changes nothing (`git --no-pager log *`)"""
    if command.opaque:
        return ()
    rules_needed: list[AnyRule] = []
    patterns = [(rule, *_pattern_of(rule, is_bare=is_bare)) for rule in rules]
    for words, uses in zip(command.parts, command.uses, strict=True):
        text = allowed_text(words)
        matching = ((rule, written) for rule, written, pieces in patterns if matches_command(pieces, text))
        covering = next((rule for rule, written in matching if names_uses(written, words, uses)), None)
        if covering is None:
            return ()
        if covering not in rules_needed:
            rules_needed.append(covering)
    return tuple(rules_needed)


def _pattern_of(rule: PatternRule, *, is_bare: bool) -> tuple[str, glob.StarGlob]:
    """What it says, as it is written and in pieces."""
    pattern = rule.pattern or ""
    bare = bare_pattern(pattern) if is_bare else ""
    return (bare, glob.parse_glob(bare)) if bare else (pattern, rule.pieces)


@lru_cache(maxsize=1024)
def bare_pattern(pattern: str) -> str:
    """The same without what changes nothing; "" if there is nothing of that, or it says of several commands, or of no certain program,
    what they may be."""
    if not pattern.startswith(_REDUCED) and "=" not in pattern.partition(" ")[0]:
        return ""
    words = bare_command_words(pattern)
    bare = " ".join(word.source for word in words)
    return bare if bare != pattern.strip() and words and "*" not in words[0].source else ""


def matches_command(pattern: glob.StarGlob, text: str) -> bool:
    """Whether it matches; a closing " *" may also stand for nothing at all."""
    return glob.matches_text(pattern, text) or (pattern[-1] == "" and glob.matches_text(pattern, text + " "))


def allowed_text(words: Words) -> str:
    """The words as an allow rule sees them: blanks inside a word are no blanks."""
    return " ".join("".join("\0" if char in " \t\n" else char for char in word) for word in words)


def names_uses(pattern: str, words: Words, uses: Sequence[OptionUse]) -> bool:
    """Whether an allow rule writes out each option of these words that does more than the program's name says; each word of it stands for
    one, and none if it is harmless as the rule writes it (`curl -o /dev/null *` says nothing about another `-o`)."""
    naming = [*_naming_words(pattern, words[:2])] if uses else []
    for use in uses:
        text = allowed_text((use.word,))
        named = next((word for word in naming if len(word[0]) >= use.length and glob.matches_text(word, text)), None)
        if named is None:
            return False
        naming.remove(named)
    return True


@lru_cache(maxsize=1024)
def _naming_words(pattern: str, heads: Words) -> tuple[glob.StarGlob, ...]:
    """Words of a rule but for options that are harmless with the value that it gives them, and would not be with another one. heads: what
    stands in the place of a program or subcommand that it leaves open"""
    words = pattern.split()
    if len(words) > _MOST_WORDS:
        return ()
    closed = (head if "*" in word and word[0] != "-" else word for head, word in zip(heads, words, strict=False))
    marked = tuple(_STAR.sub(EXPANSION, word) for word in (*closed, *words[len(heads) :]))
    own = Counter(use.word for use in find_option_uses(marked))
    naming = []
    for at, word in enumerate(words):
        if word.startswith("-") and at + 1 < len(words):
            other = find_option_uses((*marked[: at + 1], EXPANSION, *marked[at + 2 :]))
            if Counter(use.word for use in other)[word] > own[word]:
                continue
        naming.append(glob.parse_glob(word))
    return tuple(naming)
