"""What can go wrong in the event room.

EventError
├── UnknownEvent   no such event (names the closest)
├── BadAnswer      a handler's answer does not fit (its own failure, journalled)
├── BadHandler     a registration does not fit
├── TooSlow        a handler did not answer within its limit
├── CancelledItself  a handler cancelled the task that it runs in, and nobody else did
├── NotYours       other people's code reaches for what runs everybody (the event loop)
└── TooDeep        handlers raise events in one another beyond the limit
"""

from __future__ import annotations

from cru.core.base.values.errors import CruError


class EventError(CruError):
    pass


class UnknownEvent(EventError):
    pass


class BadAnswer(EventError):
    """`refuses`: as far as it can be read it says no, so on a gate its failure denies, unless the handler's `on_error` says otherwise."""

    def __init__(self, message: str, hint: str = "", *, refuses: bool = False) -> None:
        super().__init__(message, hint)
        self.refuses = refuses


class BadHandler(EventError):
    pass


class TooSlow(EventError):
    pass


class CancelledItself(EventError):
    def __init__(self) -> None:
        super().__init__("it cancelled the task that cru runs it in", "let it return, or raise an error")


class NotYours(EventError):
    pass


class TooDeep(EventError):
    pass
