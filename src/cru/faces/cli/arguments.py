"""Arguments of a management command: a few switches and values. What does not fit may have been meant for the model."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from cru.core.base.config.closest import closest
from cru.core.command_table import COMMANDS
from cru.faces.cli.flag_places import command_or_prompt
from cru.faces.cli.flags import UsageProblem, find, flags_before

HELP_SWITCHES = ("--help", "-h")


class CommandArguments:
    """The parsed words after a command's name; raises UsageProblem with the nearest line that would do, and `cru -- …`; for a switch that
    is near no other one, with `--help`.

    words: the plain ones; the first of them is one of `verbs`, and there are `most` of them at most
    short: other names of values and switches
    beside: words of the same line that the caller reads; hints show them behind
    """

    def __init__(
        self,
        command: str,
        words: Sequence[str],
        *,
        help: str = "",
        values: Sequence[str] = (),
        switches: Sequence[str] = (),
        verbs: Sequence[str] = (),
        short: Mapping[str, str] | None = None,
        most: int = 0,
        beside: Sequence[str] = (),
    ) -> None:
        self._help = help
        if help:
            switches = (*switches, *HELP_SWITCHES)
        self._all = (command, *words, *beside)
        self._known = (*values, *switches, *verbs)
        self._given: dict[str, list[str]] = {}
        self.words: list[str] = []
        rest = list(words)
        while rest:
            word = rest.pop(0)
            name, mark, attached = word.partition("=")
            full = (short or {}).get(name, name)
            if full in switches and not mark:
                self._given.setdefault(full, []).append("")
            elif full in values and (attached or (rest and not mark)):
                self._given.setdefault(full, []).append(attached or rest.pop(0))
            elif (word == "-" or not word.startswith("-")) and len(self.words) < most:
                self.words.append(word)
            elif full in values:
                raise self._wrong_switch(f"{name} needs a value")
            else:
                is_verb = not (verbs and self.words) or self.words[0] in verbs
                raise self.unknown(word if is_verb else self.words[0])
        if verbs and self.words and self.words[0] not in verbs:
            raise self.unknown(self.words[0])

    def show_help(self) -> bool:
        """Whether help was asked for; it is printed then."""
        is_asked = any(map(self.has, HELP_SWITCHES))
        if is_asked:
            print(self._help, end="")
        return is_asked

    def has(self, name: str) -> bool:
        return name in self._given

    def value(self, name: str, default: str) -> str:
        return self._given.get(name, [default])[-1]

    def all(self, name: str) -> list[str]:
        """The values of one that may be given several times."""
        return self._given.get(name, [])

    def number(self, name: str, default: int) -> int:
        """A value that is a whole number."""
        try:
            return int(self.value(name, str(default)))
        except ValueError as error:
            raise self._wrong_switch(f"{name} needs a number, not {self.value(name, '')}") from error

    def unknown(self, word: str) -> UsageProblem:
        """The error for a word that the command does not know; the nearest line that it does know comes first."""
        message = f"`cru {self._all[0]}` does not take {word}"
        near = self._flags_first(word) or self._nearest(word)
        if near is None:
            return self._wrong_switch(message) if word.startswith("-") else self.wrong(message)
        return UsageProblem(message, command_or_prompt(near, self._all))

    def _nearest(self, word: str) -> list[str] | None:
        name, mark, value = word.partition("=")
        near = closest(name, self._known)
        return [*(near + mark + value if w == word else w for w in self._all)] if near else None

    def _flags_first(self, word: str) -> list[str] | None:
        """The line with a flag that belongs before the command moved there."""
        try:
            flag, attached = find(word)
        except UsageProblem:
            return None
        if flag.name not in flags_before(COMMANDS[self._all[0]]):
            return None
        at = self._all.index(word)
        end = at + 1 + (0 if attached is not None else len(flag.args))
        return [*self._all[at:end], *self._all[:at], *self._all[end:]]

    def _wrong_switch(self, message: str) -> UsageProblem:
        """Who writes switches means the command."""
        return (
            UsageProblem(message, f"cru {self._all[0]} --help says what it takes")
            if self._help
            else self.wrong(message)
        )

    def wrong(self, message: str) -> UsageProblem:
        prompt = f"cru -- {shlex.join(self._all)}"
        if not self._help:
            return UsageProblem(message, f"did you mean: {prompt}")
        return UsageProblem(message, f"cru {self._all[0]} --help says what it takes\nas a prompt: {prompt}")
