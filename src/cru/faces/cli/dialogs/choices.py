"""A list to choose from, on the terminal: how it looks, and what a typed line means. Numbers are from 1 here, indices from 0."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import Struct
from rich.cells import cell_len

from cru.core.base.values.visible import visible
from cru.faces.cli.console import cut_to_columns, one_line

NUMBERS = re.compile(r"\d+(-\d+)?([\s,]+\d+(-\d+)?)*,?")
LABEL_CHARACTERS, LABEL_COLUMNS = 200, 30


class Choices(Struct, frozen=True):
    """What there is to choose from; an entry's index is its place in `labels`.

    labels: the entries
    about: their descriptions; there may be fewer of them
    several: more than one may be chosen
    other: the person may give words of their own instead
    filters: `/text` narrows the list
    marked: the indices that Enter alone takes
    takes: what is shown in place of own words that are taken without `other`; "" for those that are not
    """

    labels: tuple[str, ...]
    about: tuple[str, ...] = ()
    several: bool = False
    other: bool = False
    filters: bool = False
    marked: tuple[int, ...] = ()
    takes: Callable[[str], str] | None = None

    def is_hidden(self, words: str) -> bool:
        """Whether they may not stand on the terminal."""
        return bool(shown := self.shown_for(words)) and shown != words

    def shown_for(self, words: str) -> str:
        return self.takes(words) if self.takes is not None else ""

    def matching(self, words: str) -> list[int]:
        """The entries that have every word in their text."""
        parts = words.casefold().split()
        texts = [f"{label} {self._about(at)}".casefold() for at, label in enumerate(self.labels)]
        return [at for at, text in enumerate(texts) if all(part in text for part in parts)]

    def lines(self, shown: Sequence[int], marked: Sequence[int], columns: int) -> list[str]:
        """One line an entry: mark, number, label, description; the description is cut where the terminal ends."""
        digits = len(str(len(self.labels)))
        labels = {at: one_line(_marked(self.labels[at]), LABEL_CHARACTERS) for at in shown}
        width = min(max(map(cell_len, labels.values()), default=0), LABEL_COLUMNS)
        rows = []
        for at in shown:
            line = f"{'*' if at in marked else ' '} {at + 1:>{digits}}  {labels[at]}"
            if self._about(at):
                line = f"{line}{' ' * (width - cell_len(labels[at]))}  {_marked(self._about(at))}"
                line = cut_to_columns(line, max(columns - 1, cell_len(labels[at]) + digits + 4))
            rows.append(line)
        return rows

    def hint(self, marked: Sequence[int], more: int = 0) -> str:
        """What may be typed now; `more` entries are not shown yet."""
        count = len(self.labels)
        parts = [f"1-{count}" if count > 1 else "1"] if count else []
        if count and self.several:
            parts[0] += ", several: 1,2, none: 0" if count > 1 else ", none: 0"
        if self.other:
            parts.append("or your own words" if count else "your answer")
        if self.filters:
            parts.append("/text filters")
        if more:
            parts.append(f"+ {more} more")
        taken = ",".join(str(at + 1) for at in marked)
        return ", ".join([*parts, f"Enter {taken}, Esc cancels" if taken else "Enter cancels"])

    def _about(self, at: int) -> str:
        return self.about[at] if at < len(self.about) else ""


class Selection(Struct, frozen=True):
    """What was chosen.

    selected: indices
    other: the person's own words, None if there are none
    """

    selected: tuple[int, ...] = ()
    other: str | None = None


def parse_choice(choices: Choices, line: str) -> Selection | str:
    """The answer in a line that is not empty; a text says why it is none."""
    words, count = line.strip(), len(choices.labels)
    if count and NUMBERS.fullmatch(words):
        return _numbers(choices, words)
    if choices.other and words[:1] == words[-1:] == '"' and NUMBERS.fullmatch(words[1:-1]):
        return Selection(other=words[1:-1])
    exact = [at for at, label in enumerate(choices.labels) if label.strip().casefold() == words.casefold()]
    if exact:
        return Selection((exact[0],))
    if choices.other or choices.shown_for(words):
        return Selection(other=words)
    begun = [at for at, label in enumerate(choices.labels) if label.strip().casefold().startswith(words.casefold())]
    if len(begun) == 1:
        return Selection((begun[0],))
    return f"{one_line(words, 40)} is none of them" if not begun else f"{one_line(words, 40)} may be several of them"


def _numbers(choices: Choices, words: str) -> Selection | str:
    count = len(choices.labels)
    indices: list[int] = []
    for part in re.split(r"[\s,]+", words.rstrip(",")):
        first, _, last = part.partition("-")
        low, high = int(first[:9]), int((last or first)[:9])
        if low == high == 0 and choices.several:
            continue
        if not 1 <= low <= high <= count:
            quoted = f'; "{words}" in quotes is your own answer' if choices.other else ""
            return f"there is no {part}, there are {count}{quoted}"
        indices += range(low - 1, high)
    if len(indices) > 1 and not choices.several:
        return "only one of them"
    return Selection(tuple(dict.fromkeys(indices)))


def _marked(text: str) -> str:
    """On one line, with marks for what cannot be seen, but for what makes pictures of characters."""
    return visible(" ".join(text.split()), keep="\u200d\ufe0f")
