"""cru's own hooks: every event of the catalog, flat entries, answers in our own words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cru.extensions.hooks.model.locations import Footprint, HookLocations

if TYPE_CHECKING:
    from cru.extensions.hooks.model.entry import Layer

FILES = ("hooks.json", "config.toml")


def _places(where: HookLocations) -> list[tuple[Layer, Path]]:
    user: list[tuple[Layer, Path]] = [("user", where.home / file) for file in FILES]
    return [*user, *(("project", where.root / ".cru" / file) for file in FILES)]


FOOTPRINT = Footprint(order=0, places=_places, own=True)
