"""What can go wrong in a command.

CommandError (exit 2)
├── BadCommand  the words behind its name do not fit it
├── NotHere     the face that the user sits at has no such thing
└── NoSuchModel the model cannot be chosen; the old one stays (exit 5)
"""

from __future__ import annotations

from cru.core.base.values.errors import CruError


class CommandError(CruError):
    code = 2


class BadCommand(CommandError):
    pass


class NotHere(CommandError):
    pass


class NoSuchModel(CommandError):
    code = 5
