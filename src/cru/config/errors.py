"""What can be wrong with settings: problems that are reported together, and the error that carries them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cru.values.errors import CruError


class SettingsProblem(Struct, frozen=True):
    """One thing that is wrong.

    message: what it is, for people
    where: `file:line`, an environment variable or a layer's name; "": it has no place
    hint: the next step
    """

    message: str
    where: str = ""
    hint: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text} ({self.hint})" if self.hint else text


class ConfigError(CruError):
    """Settings cannot be used. `problems` holds each thing that is wrong, in the order of the layers and of their keys."""

    def __init__(self, problems: Sequence[SettingsProblem]) -> None:
        self.problems = tuple(problems)
        if len(self.problems) == 1:
            only = self.problems[0]
            super().__init__(str(SettingsProblem(only.message, only.where)), only.hint)
        else:
            listed = "\n".join(f"  {problem}" for problem in self.problems)
            super().__init__(f"{len(self.problems)} settings are wrong:\n{listed}")
