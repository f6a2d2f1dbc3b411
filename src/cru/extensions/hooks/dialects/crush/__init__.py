"""Crush's hooks (charmbracelet/crush at 37f36e938, and what its documentation announces): flat entries in crush.json."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cru.extensions.hooks.model.locations import Footprint, HookLocations

if TYPE_CHECKING:
    from cru.extensions.hooks.model.entry import Layer


def _places(where: HookLocations) -> list[tuple[Layer, Path]]:
    """System, user, data folder, then from the project's root down to the working directory, the workspace's own last."""
    env, home = where.env, where.user_home
    user = Path(env.get("CRUSH_GLOBAL_CONFIG") or Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "crush")
    data = Path(env.get("CRUSH_GLOBAL_DATA") or Path(env.get("XDG_DATA_HOME") or home / ".local/share") / "crush")
    places: list[tuple[Layer, Path]] = [("system", Path("/etc/crush/crush.json"))]
    places += [("user", user / "crush.json"), ("user", user / "crushrc"), ("user", data / "crush.json")]
    for folder in _down(where.root, where.cwd):
        places += [("project", folder / name) for name in ("crush.json", ".crush.json", "crushrc", ".crushrc")]
    return [*places, ("project", where.cwd / ".crush" / "crush.json")]


def _down(root: Path, cwd: Path) -> list[Path]:
    """The folders from `root` to `cwd`, both among them; only `cwd` if it lies elsewhere."""
    if not cwd.is_relative_to(root):
        return [cwd]
    parts = cwd.relative_to(root).parts
    return [root.joinpath(*parts[:n]) for n in range(len(parts) + 1)]


FOOTPRINT = Footprint(order=1, places=_places)
