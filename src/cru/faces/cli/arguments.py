"""Arguments of a management command: a few switches and values. What does not fit may have been meant for the model."""

from __future__ import annotations

from collections.abc import Sequence

from cru.faces.cli.flags import UsageProblem
from cru.faces.cli.start import as_prompt


class Arguments:
    """Parsed words after a command's name; raises UsageProblem with `did you mean: cru -- …`. `words` are the plain ones."""

    def __init__(
        self,
        command: str,
        words: Sequence[str],
        *,
        values: Sequence[str] = (),
        switches: Sequence[str] = (),
        most: int = 0,
    ) -> None:
        self._all = (command, *words)
        self._given: dict[str, str] = {}
        self.words: list[str] = []
        rest = list(words)
        while rest:
            word = rest.pop(0)
            name, mark, attached = word.partition("=")
            if word in switches:
                self._given[word] = ""
            elif name in values and (attached or (rest and not mark)):
                self._given[name] = attached or rest.pop(0)
            elif not word.startswith("-") and len(self.words) < most:
                self.words.append(word)
            elif name in values:
                raise self.wrong(f"{name} needs a value")
            else:
                raise self.wrong(f"`cru {command}` does not take {word}")

    def has(self, name: str) -> bool:
        return name in self._given

    def number(self, name: str, default: int) -> int:
        """A value that is a whole number."""
        try:
            return int(self._given.get(name, default))
        except ValueError as error:
            raise self.wrong(f"{name} needs a number, not {self._given[name]}") from error

    def wrong(self, message: str) -> UsageProblem:
        return UsageProblem(message, as_prompt(self._all))
