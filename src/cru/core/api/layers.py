"""Values that several plugins may set under the same key."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from cru.core.api.arguments import own
from cru.core.api.host import host


class Layers:
    """Values by key, each with the plugin that set it. The newest holds; what a plugin set goes with it, and the one before holds again."""

    def __init__(self) -> None:
        self._all: dict[Hashable, dict[str, object]] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._all

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._all)

    def get(self, key: Hashable, default: Any = None) -> Any:
        """The value that holds."""
        values = self._all.get(key)
        return next(reversed(values.values())) if values else default

    def set(self, owner: str, key: Hashable, value: object) -> None:
        values = self._all.setdefault(key, {})
        values.pop(owner, None)
        values[owner] = value

    def remove(self, where: str, key: Hashable) -> bool:
        """Take back what the calling plugin set; whether there was anything. Raises BadArgument if only others have set it."""
        values, name = self._all.get(key, {}), host().plugin.name
        if name in values:
            del values[name]
            if not values:
                del self._all[key]
            return True
        if values:
            own(where, f"`{key}`", next(reversed(values)))
        return False

    def drop(self, owner: str) -> list[Hashable]:
        """Take away what a plugin set; the keys."""
        keys = [key for key, values in self._all.items() if owner in values]
        for key in keys:
            del self._all[key][owner]
            if not self._all[key]:
                del self._all[key]
        return keys
