"""Which options of a command an allow rule writes out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from cru.core.base.files.glob import StarGlob, matches_text, parse_glob
from cru.core.guard.shell.analysis import Words
from cru.core.guard.shell.option_effects import OptionUse
from cru.core.guard.shell.option_uses import find_option_uses
from cru.core.guard.shell.syntax import EXPANSION

_STAR = re.compile(r"(?<!\\)\*")
_MOST_WORDS = 100
"""Of a rule; a longer one names nothing."""


def allowed_text(words: Words) -> str:
    """The words as an allow rule sees them: blanks inside a word are no blanks."""
    return " ".join("".join("\0" if char in " \t\n" else char for char in word) for word in words)


def names_uses(pattern: str, words: Words, uses: Sequence[OptionUse]) -> bool:
    """Whether an allow rule writes out each option of these words that does more than the program's name says; each word of it stands for
    one, and none if it is harmless as the rule writes it (`curl -o /dev/null *` says nothing about another `-o`)."""
    naming = [*_naming_words(pattern, words[:2])] if uses else []
    for use in uses:
        text = allowed_text((use.word,))
        named = next((word for word in naming if len(word[0]) >= use.length and matches_text(word, text)), None)
        if named is None:
            return False
        naming.remove(named)
    return True


@lru_cache(maxsize=1024)
def _naming_words(pattern: str, heads: Words) -> tuple[StarGlob, ...]:
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
        naming.append(parse_glob(word))
    return tuple(naming)
