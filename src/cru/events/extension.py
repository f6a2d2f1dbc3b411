"""The one door through which other people's code gets in."""

from __future__ import annotations

from typing import Protocol

from cru.events.bus import Bus


class Extension(Protocol):
    """Somebody's code. `owner` names it in every message, `dialect` is the vocabulary that it speaks; `register` puts its
    handlers on the bus, all of them with that owner."""

    owner: str
    dialect: str

    def register(self, bus: Bus) -> None: ...
