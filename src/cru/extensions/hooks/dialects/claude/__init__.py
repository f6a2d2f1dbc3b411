"""Claude Code's command hooks (its documentation of August 2026): settings.json of the user and of the project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cru.extensions.hooks.model.locations import Footprint, HookLocations

if TYPE_CHECKING:
    from cru.extensions.hooks.model.entry import Layer


def _places(where: HookLocations) -> list[tuple[Layer, Path]]:
    user = Path(where.env.get("CLAUDE_CONFIG_DIR") or where.user_home / ".claude")
    project = where.root / ".claude"
    return [
        ("system", Path("/etc/claude-code/managed-settings.json")), ("user", user / "settings.json"),
        ("project", project / "settings.json"), ("project", project / "settings.local.json"),
    ]  # fmt: skip


FOOTPRINT = Footprint(order=2, places=_places)
