"""How much one reply may hold before it counts as broken: no model says as much, but a broken server can."""

from __future__ import annotations

from cru.models.protocol import BrokenReply

LINE = 32 << 20
EVENT = 256 << 20
ARGUMENTS = 64 << 20


def too_long(what: str, limit: int) -> BrokenReply:
    """The error for a part of a reply that is too long; asking again would bring the same."""
    error = BrokenReply(
        f"the reply holds {what} of more than {limit >> 20} MiB", "does base_url name a model server that works?"
    )
    error.retryable = False
    return error


class ArgumentBuffer:
    """Adds up the arguments of each call of one reply."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}

    def add(self, slot: int, text: str) -> None:
        """Raises BrokenReply."""
        size = self._sizes[slot] = self._sizes.get(slot, 0) + len(text)
        if size > ARGUMENTS:
            raise too_long("a tool call with arguments", ARGUMENTS)
