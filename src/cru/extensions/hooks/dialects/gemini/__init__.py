"""Gemini CLI's hooks: nested groups in settings.json, decisions in JSON or by exit status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cru.extensions.hooks.model.locations import Footprint, HookLocations

if TYPE_CHECKING:
    from cru.extensions.hooks.model.entry import Layer


def _places(where: HookLocations) -> list[tuple[Layer, Path]]:
    return [
        ("system", Path("/etc/gemini-cli/settings.json")),
        ("user", where.user_home / ".gemini" / "settings.json"),
        ("project", where.root / ".gemini" / "settings.json"),
    ]


FOOTPRINT = Footprint(order=4, places=_places)
