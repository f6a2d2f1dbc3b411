"""Codex' hooks: nested entries in hooks.json or config.toml, strict outputs, and the older `notify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cru.extensions.hooks.model.locations import Footprint, HookLocations

if TYPE_CHECKING:
    from cru.extensions.hooks.model.entry import Layer

FILES = ("hooks.json", "config.toml")


def _places(where: HookLocations) -> list[tuple[Layer, Path]]:
    user = Path(where.env.get("CODEX_HOME") or where.user_home / ".codex")
    places: list[tuple[Layer, Path]] = [("user", user / file) for file in FILES]
    return [*places, *(("project", where.root / ".codex" / file) for file in FILES)]


FOOTPRINT = Footprint(order=3, places=_places)
