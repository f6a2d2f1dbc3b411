"""Long pastes: in the input, and in the scrollback, stands how long they are; what is sent is all of it."""

from __future__ import annotations

import re

LINES, CHARACTERS = 20, 2_000
"""A paste of more is folded."""


class Pastes:
    """Those of one chat, by what stands for them."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, text: str) -> str:
        """What stands for a paste; a short one stands for itself."""
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines <= LINES and len(text) <= CHARACTERS:
            return text
        size = f"{lines:,} lines" if lines > LINES else f"{len(text):,} characters"
        mark, number = f"[pasted {size}]", 1
        while self._texts.setdefault(mark, text) != text:
            number += 1
            mark = f"[pasted {size}, {number}]"
        return mark

    def unfold(self, text: str) -> str:
        """With all of each paste that stands there whole. What looks like a mark within a paste is a part of it."""
        return _replace_all(text, self._texts)

    def fold_again(self, text: str) -> str:
        """What `unfold` was given, as far as pastes are in it."""
        return _replace_all(text, {paste: mark for mark, paste in self._texts.items()})

    def keep(self, mark: str) -> str:
        """A mark that stands for something else, and is sent as it is."""
        return self._texts.setdefault(mark, mark)

    def mark_before(self, text: str) -> str:
        """What stands for a paste at the end of the text; "" if nothing does."""
        return next((mark for mark in self._texts if text.endswith(mark)), "")


def _replace_all(text: str, texts: dict[str, str]) -> str:
    """Each key by its value, in one go; a longer key comes before one that it begins with."""
    if not texts:
        return text
    keys = sorted(texts, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, keys)), lambda match: texts[match[0]], text)
