"""A list to choose from that changes on the terminal: a pointer that moves, a filter as one types, marks. What was chosen stays in the
scrollback, the list goes away. Loads prompt_toolkit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings

from cru.faces.cli.console import cut_to_columns, one_line
from cru.faces.cli.dialogs.choices import NUMBERS, Choices, Selection, parse_choice

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.key_binding import KeyPressEvent

    from cru.faces.cli.dialogs.line_editor import LineEditor

SHOWN_AFTERWARDS = 10
"""Labels of what was chosen."""
ROOM_TO_TYPE = 44
"""Columns that stay free beside what may be left out of the hint."""
PAGE = 10
"""Entries that PgUp and PgDn pass over."""


async def pick(line: LineEditor, choices: Choices, words: str = "") -> Selection | None:
    """What the person chose; None if they cancelled. `words` filter the list at first."""
    picker = ListPicker(line, choices, words)
    chosen = await line.pick(picker.message, picker.keys(), picker.take_typed, choices.is_hidden)
    if chosen is not None:
        line.write(describe(choices, chosen))
    return chosen


def describe(choices: Choices, chosen: Selection) -> str:
    """What stays on the terminal."""
    if chosen.other is not None:
        return f"  > {one_line(choices.shown_for(chosen.other) or chosen.other, 200)}\n"
    labels = [one_line(" ".join(choices.labels[at].split()), 80) for at in chosen.selected[:SHOWN_AFTERWARDS]]
    more = len(chosen.selected) - len(labels)
    return "".join(f"  > {label}\n" for label in labels or ["none of them"]) + (f"  and {more} more\n" if more else "")


class ListPicker:
    """The list while it is on the terminal."""

    def __init__(self, line: LineEditor, choices: Choices, words: str) -> None:
        self._line, self._choices, self._words = line, choices, words
        self._shown = choices.matching(words)
        marked = [at for at in choices.marked if at in self._shown]
        self._marked = set(marked) if choices.several else set()
        self._at = self._shown.index(marked[0]) if marked else 0
        self._typed, self._is_pointed, self._problem = "", False, ""

    def message(self) -> StyleAndTextTuples:
        """What stands above and before the input."""
        below = self.below()
        room = max(self._line.rows - 5 - len(below), 3)
        first = max(0, min(self._at - room // 2, len(self._shown) - room))
        page = self._shown[first : first + room]
        columns = self._line.columns - 3
        parts: StyleAndTextTuples = []
        for at, text in enumerate(self._choices.lines(page, tuple(self._marked), columns), first):
            is_pointed = at == self._at
            parts.append(("bold" if is_pointed else "", f"{'> ' if is_pointed else '  '}{text}\n"))
        count = len(self._shown)
        if count > len(page):
            parts.append(("fg:ansibrightblack", f"  {first + 1}-{first + len(page)} of {count}\n"))
        if self._problem:
            parts.append(("", cut_to_columns(f"  {self._problem}", columns) + "\n"))
        return [*parts, *below, ("", f"  {self._hint()} > ")]

    def below(self) -> StyleAndTextTuples:
        """Lines between the list and the input."""
        return []

    def _hint(self) -> str:
        """As much of it as leaves room to type."""
        choices = self._choices
        parts = ["or your own words"] if choices.other else []
        parts += ["space marks"] if choices.several else []
        parts += ["/text filters" if choices.other else "typing filters"] if len(choices.labels) > 1 else []
        parts += ["0 is none"] if choices.several else []
        while len(", ".join(parts)) > self._line.columns - ROOM_TO_TYPE and parts:
            parts.pop()
        return ", ".join(["Enter takes", *parts, "Esc cancels"])

    # keys -----------------------------------------------------------------------------------------------------------------------------

    def keys(self) -> KeyBindings:
        keys = KeyBindings()
        steps = {"up": -1, "down": 1, "c-p": -1, "c-n": 1, "pageup": -PAGE, "pagedown": PAGE}
        for name, step in steps.items():
            self._bind_step(keys, name, step)

        @keys.add("enter")
        def _enter(event: KeyPressEvent) -> None:
            chosen = self._choose()
            if isinstance(chosen, Selection):
                event.app.exit(result=chosen)
            else:
                event.current_buffer.reset()
                self.take_typed(event.current_buffer)
                self._problem = chosen

        @keys.add("space", filter=Condition(lambda: self._choices.several and (self._is_pointed or not self._typed)))
        @keys.add("tab", filter=Condition(lambda: self._choices.several))
        def _mark(event: KeyPressEvent) -> None:
            self._marked ^= set(self._shown[self._at : self._at + 1])
            self._is_pointed = True

        return keys

    def _bind_step(self, keys: KeyBindings, name: str, step: int) -> None:
        @keys.add(name)
        def _move(event: KeyPressEvent) -> None:
            last = len(self._shown) - 1
            at = self._at + step
            self._at = at % (last + 1) if abs(step) == 1 and last >= 0 else max(0, min(at, last))
            self._is_pointed, self._problem = True, ""

    def take_typed(self, buffer: Buffer) -> None:
        """The text has changed: a number points at its entry, words filter."""
        self._typed = typed = buffer.text.strip()
        self._is_pointed, self._problem = False, ""
        number = int(typed) if re.fullmatch(r"\d{1,9}", typed) else 0
        filters = typed.startswith("/") or (bool(typed) and not self._choices.other and not NUMBERS.fullmatch(typed))
        before = self._shown
        self._shown = self._choices.matching(typed.removeprefix("/") if filters else "" if typed else self._words)
        if 0 < number <= len(self._choices.labels):
            self._at = number - 1
        elif self._shown != before:
            self._at = 0

    def _choose(self) -> Selection | str:
        """What Enter takes; a text says why it takes nothing."""
        typed = self._typed
        if typed == "/":
            self._words = ""
            return ""
        if self._is_pointed or not typed or (typed.startswith("/") and self._shown):
            return self._take_pointed() if self._shown else "there is nothing to take"
        if typed.startswith("/"):
            return f"nothing matches {one_line(typed[1:], 40)}"
        chosen = parse_choice(self._choices, typed)
        if isinstance(chosen, Selection) or not self._shown or NUMBERS.fullmatch(typed):
            return chosen
        return self._take_pointed()

    def _take_pointed(self) -> Selection:
        at = self._shown[self._at]
        if not self._choices.several:
            return Selection((at,))
        is_filter = bool(self._typed) and not self._is_pointed
        return Selection(
            tuple(sorted(self._marked | {at})) if is_filter or not self._marked else tuple(sorted(self._marked))
        )
