"""How much is looked at for hooks in one session, at most: their words are a stranger's, and a start must not wait for them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from cru.extensions.hooks.trust.fingerprint import ReferencedFile

LOOKUPS = 20_000
"""Questions to the file system; a usual hook needs about ten."""
BYTES = 64 << 20
"""Of the files that hooks name."""


class LookupBudget(Struct):
    """What is left. read: files by path and times, so that one that several hooks name is read once."""

    lookups: int = LOOKUPS
    size: int = BYTES
    read: dict[tuple[str, tuple[int, ...]], ReferencedFile] = field(default_factory=dict)

    @property
    def over(self) -> bool:
        return self.lookups < 0 or self.size < 0

    def spend(self, lookups: int) -> bool:
        """Whether there is enough for these."""
        self.lookups -= lookups
        return not self.over

    def is_dir(self, path: str) -> bool:
        return self.spend(1) and os.path.isdir(path)

    def is_file(self, path: str) -> bool:
        return self.spend(1) and os.path.isfile(path)
