"""Files as they were before something of cru changed them: what is kept, what it was changed by, and how it comes back.

RevisionError
├── NotKept        the content is not there: too large, gone with age or size, or damaged
├── NoRevision     there is no revision of that number, or none of that file
└── StoreFailed    the folder of the revisions cannot be read or written
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from cru.core.base.values.errors import CruError

FOLDER = "revisions"
"""Below cru's home."""


class RevisionError(CruError):
    pass


class NotKept(RevisionError):
    pass


class NoRevision(RevisionError):
    pass


class StoreFailed(RevisionError):
    pass


class UndoSettings(Struct, frozen=True):
    """`[undo]`: what is kept of files before they are changed.

    revisions: of each file
    max_file_mb: a larger file is not kept
    max_total_mb: of one project
    max_age_days: how long
    commands: whether the work tree is looked at around commands, too
    command_seconds: how long one look may take
    """

    enabled: bool = True
    revisions: Annotated[int, Meta(ge=1, le=1000)] = 10
    max_file_mb: Annotated[int, Meta(ge=1, le=1024)] = 10
    max_total_mb: Annotated[int, Meta(ge=1)] = 200
    max_age_days: Annotated[int, Meta(ge=1, le=36_500)] = 30
    commands: bool = True
    command_seconds: Annotated[float, Meta(gt=0, le=600)] = 2.0


class UndoTable(Struct, frozen=True):
    """The settings of this room."""

    undo: UndoSettings = UndoSettings()


DOCS: dict[str, str] = {
    "undo": "what is kept of files before they are changed ([undo](undo.md))",
    "undo.enabled": "whether anything is kept",
    "undo.revisions": "how many revisions of each file are kept, beside what taking back the last turns needs",
    "undo.max_file_mb": "a larger file is not kept: `/undo` names it",
    "undo.max_total_mb": "how much is kept of one project; the oldest goes first",
    "undo.max_age_days": "how long a revision is kept",
    "undo.commands": "whether what commands change in a git work tree can be taken back",
    "undo.command_seconds": "how long looking through the work tree may take; what takes longer is named by `/undo`, not taken back",
}
