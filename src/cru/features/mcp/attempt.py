"""What the way to a server has seen of one request; the SDK's errors do not tell it."""

from __future__ import annotations

from contextvars import ContextVar


class Attempt:
    """is_forgotten: the server did not look at the request, since it does not know the session any more"""

    def __init__(self) -> None:
        self.is_forgotten = False


ATTEMPT: ContextVar[Attempt | None] = ContextVar("mcp_attempt", default=None)
"""Of the request that is being sent: the SDK carries the context of who asks along."""
