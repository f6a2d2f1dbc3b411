"""What was meant to guard and does not: one record for hooks, plugins and settings. With --strict-hooks none of them may be there; a run
and `cru hooks check` find them with the same functions (docs/decisions/answers.md)."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class LossKind(Enum):
    """Why a guard does not do its work."""

    AWAITING = "awaiting"
    """A person has not accepted it yet, or not as it is now."""
    CHANGED = "changed"
    """A person had accepted it, and it is not there as it was."""
    MISSING = "missing"
    """It is required, or was active, and is not there."""
    LEFT_OUT = "left out"
    """A file or a part of one cannot be understood, or cannot be read."""
    UNAVAILABLE = "unavailable"
    """There is nothing here that could run it."""
    POWERLESS = "powerless"
    """It is active, and cannot run or meets nothing."""
    SWITCHED_OFF = "switched off"
    """It is required, and somebody has switched it off."""


class LostGuard(Struct, frozen=True):
    """Something that was meant to guard and does not do its work.

    owner: the id of the hook or the name of the plugin; "": it is about a file or a setting
    file: where it stands: a path, or what else holds it ("plugins", "settings")
    line: 1-based; 0: not known
    text: what is wrong, for a person
    hint: the next step, "" if the text says it
    """

    kind: LossKind
    owner: str
    file: str
    text: str
    hint: str = ""
    line: int = 0

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" + (f" ({self.hint})" if self.hint else "")
