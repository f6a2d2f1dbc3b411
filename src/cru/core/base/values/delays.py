"""A pause between two tries of a request. A module of its own, since few runs need it."""

from __future__ import annotations

from msgspec import Struct


class Delayed(Struct, frozen=True):
    """A pause before the same request is sent again, since a try failed before anything of a reply came.

    until: when it is sent again, in Unix seconds; 0: that happens now
    is_rate_limited: whether the server said that there were too many requests
    """

    until: float = 0.0
    is_rate_limited: bool = False
