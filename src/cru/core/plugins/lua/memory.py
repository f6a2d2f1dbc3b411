"""Who holds the memory of a machine that several plugins share: each has a limit of its own.

Lua counts the machine as a whole. What it grows by during the calls of a plugin is that plugin's; a plugin that makes garbage pays for
collecting it, so that what is freed is freed during its own calls, but for a rest that is made good when the count contradicts itself.
"""

from __future__ import annotations

from typing import Any

from cru.core.plugins.lua.convert import LuaError

BIG = 8
"""The part of a share that one stretch may add before the machine is collected, so that garbage is not taken for what a plugin holds."""


class MemoryShares:
    """How much each plugin holds, and the limit of the one that runs.

    share: bytes that one plugin may hold
    total: bytes that all of them may hold
    held: bytes by plugin, of the present owner as it was when it became that; "" is the machine's own
    owner: whose it is what the machine takes now
    limit: bytes that the machine may hold while the present owner runs: it stays the same, however often that one is called
    """

    def __init__(self, lua: Any, share: int, total: int) -> None:
        self.share = share
        self.total = total
        self.held: dict[str, int] = {}
        self._used, self._set_limit, self._collect = lua.get_memory_used, lua.set_max_memory, lua.gccollect
        self.owner = ""
        self._mark = 0
        self.limit = share

    def switch(self, owner: str) -> None:
        """From now on what the machine takes is this one's."""
        before, used = self.owner, self._used()
        grown = used - self._mark
        if grown:
            self.held[before] = max(0, self.held.get(before, 0) + grown)
        if grown > self.share // BIG:
            self._collect()
            after = self._used()
            self.held[before] = max(0, self.held[before] - (used - after))
            used = after
        self.owner, self._mark = owner, used
        limit = self._limit_of(owner, used)
        if limit != self.limit:
            self.limit = limit
            self._set_limit(limit)

    def has_room(self, owner: str, size: int) -> bool:
        """Whether the machine can take `size` bytes more in this plugin's name."""
        used = self._used()
        if used + size < (self.limit if owner == self.owner else self._limit_of(owner, used)):
            return True
        self._collect()
        used = self._used()
        return bool(used + size < (self.limit if owner == self.owner else self._limit_of(owner, used)))

    def _limit_of(self, owner: str, used: int) -> int:
        held = self.held.get(owner, 0)
        if held > self.share // 2:
            held = self._judge(owner, used)
        return min(max(used - held, 0) + self.share, self.total)

    def _judge(self, owner: str, used: int) -> int:
        """What a plugin that seems to hold much holds indeed: garbage of its own may have gone while others ran."""
        counted = sum(self.held.values())
        if counted > used:
            self.held = {name: held * used // counted for name, held in self.held.items()}
        return self.held[owner]


def not_enough(share: int) -> LuaError:
    """What is told of a plugin that takes more."""
    return LuaError(f"not enough memory (a plugin may hold {share >> 20} MB)")
