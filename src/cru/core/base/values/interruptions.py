"""What faces hear when something was held up or cut short. A module of its own, since few runs need it."""

from __future__ import annotations

from msgspec import Struct


class Delayed(Struct, frozen=True):
    """A pause before the same request is sent again, since a try failed before anything of a reply came.

    until: when it is sent again, in Unix seconds; 0: that happens now
    is_rate_limited: whether the server said that there were too many requests
    """

    until: float = 0.0
    is_rate_limited: bool = False


class CallInterrupted(Struct, frozen=True):
    """A call of a tool that Ctrl-C, /stop or the end of the process cut short.

    output: what it had printed until then
    """

    name: str
    call_id: str
    output: str
