"""What faces hear of a call that was interrupted. A module of its own, since few runs need it."""

from __future__ import annotations

from msgspec import Struct


class CallInterrupted(Struct, frozen=True):
    """A call of a tool that Ctrl-C, /stop or the end of the process cut short.

    output: what it had printed until then
    """

    name: str
    call_id: str
    output: str
