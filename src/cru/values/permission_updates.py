"""What a hook gives or takes for calls to come, beside its answer about one call: rules, folders, a mode."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace


class UpdateKind(StrEnum):
    """What becomes of the rules or folders: added, put in the place of all others, taken away; or the mode is changed."""

    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"
    MODE = "mode"


class GrantKind(StrEnum):
    """What is given: a rule of one of the three lists, or a folder that counts as part of the project."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"
    FOLDER = "folder"


class GrantScope(StrEnum):
    """How far it reaches. `local` and `project` both reach as far as the project; each holds only what was given there."""

    SESSION = "session"
    LOCAL = "local"
    PROJECT = "project"
    USER = "user"


TIGHTENING = (GrantKind.ASK, GrantKind.DENY)


class PermissionUpdate(Struct, frozen=True, omit_defaults=True):
    """One change of what is permitted.

    grant: what `items` are; without meaning for a mode
    items: rules in cru's writing, absolute folders, or the one mode
    by: the owner of the handler that gives it; the bus says it
    """

    kind: UpdateKind
    scope: GrantScope = GrantScope.SESSION
    grant: GrantKind = GrantKind.ALLOW
    items: tuple[str, ...] = ()
    by: str = ""

    @property
    def tightening(self) -> PermissionUpdate | None:
        """The part that forbids or asks more than before, which nobody has to permit; None if there is none."""
        if self.kind is UpdateKind.MODE:
            return None
        if self.kind is UpdateKind.REMOVE:
            return None if self.grant in TIGHTENING else self
        if self.grant not in TIGHTENING:
            return None
        return replace(self, kind=UpdateKind.ADD) if self.items else None
