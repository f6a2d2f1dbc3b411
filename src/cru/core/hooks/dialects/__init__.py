"""The dialects of command hooks: `FOOTPRINTS` (**the** table) says where the files of each lie; all the rest of it is a folder here."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from cru.core.hooks import HOOKS_FILE, Footprint, HookLocations

if TYPE_CHECKING:
    from cru.core.hooks.model.entry import Layer
    from cru.core.hooks.model.mapping import Dialect


def _cru_places(where: HookLocations) -> list[tuple[Layer, Path]]:
    files = (HOOKS_FILE, "config.toml")
    user: list[tuple[Layer, Path]] = [("user", where.home / file) for file in files]
    return [*user, *(("project", where.root / ".cru" / file) for file in files)]


def _crush_places(where: HookLocations) -> list[tuple[Layer, Path]]:
    """System, user, data folder, then from the project's root down to the working directory, the workspace's own last."""
    env, home = where.env, where.user_home
    user = Path(env.get("CRUSH_GLOBAL_CONFIG") or Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "crush")
    data = Path(env.get("CRUSH_GLOBAL_DATA") or Path(env.get("XDG_DATA_HOME") or home / ".local/share") / "crush")
    places: list[tuple[Layer, Path]] = [("system", Path("/etc/crush/crush.json"))]
    places += [("user", user / "crush.json"), ("user", user / "crushrc"), ("user", data / "crush.json")]
    for folder in _folders_between(where.root, where.cwd):
        places += [("project", folder / name) for name in ("crush.json", ".crush.json", "crushrc", ".crushrc")]
    return [*places, ("project", where.cwd / ".crush" / "crush.json")]


def _folders_between(root: Path, cwd: Path) -> list[Path]:
    """The folders from `root` down to `cwd`, both among them; only `cwd` if it lies elsewhere."""
    if not cwd.is_relative_to(root):
        return [cwd]
    parts = cwd.relative_to(root).parts
    return [root.joinpath(*parts[:n]) for n in range(len(parts) + 1)]


def claude_folder(where: HookLocations) -> Path:
    """The user's own folder of Claude Code."""
    return Path(where.env.get("CLAUDE_CONFIG_DIR") or where.user_home / ".claude")


def _claude_places(where: HookLocations) -> list[tuple[Layer, Path]]:
    """Of the project those of its root and of the working directory: Claude Code reads the latter, and its guards and those of the
    root must hold alike."""
    user = claude_folder(where)
    folders = dict.fromkeys((where.root / ".claude", where.cwd / ".claude"))
    places: list[tuple[Layer, Path]] = [
        ("system", Path("/etc/claude-code/managed-settings.json")),
        ("user", user / "settings.json"),
    ]
    return [
        *places,
        *(("project", folder / file) for folder in folders for file in ("settings.json", "settings.local.json")),
    ]


def _codex_places(where: HookLocations) -> list[tuple[Layer, Path]]:
    """The user's, then from the project's root down to the working directory."""
    files = (HOOKS_FILE, "config.toml")
    user = Path(where.env.get("CODEX_HOME") or where.user_home / ".codex")
    places: list[tuple[Layer, Path]] = [("user", user / file) for file in files]
    folders = _folders_between(where.root, where.cwd)
    return [*places, *(("project", folder / ".codex" / file) for folder in folders for file in files)]


def _gemini_places(where: HookLocations) -> list[tuple[Layer, Path]]:
    """Of the project as for Claude Code: Gemini reads that of the working directory."""
    return [
        ("system", Path("/etc/gemini-cli/settings.json")),
        ("user", where.user_home / ".gemini" / "settings.json"),
        *(("project", folder / ".gemini" / "settings.json") for folder in dict.fromkeys((where.root, where.cwd))),
    ]


FOOTPRINTS: dict[str, Footprint] = {
    "cru": Footprint(_cru_places, own=True),
    "crush": Footprint(_crush_places),
    "claude": Footprint(_claude_places),
    "codex": Footprint(_codex_places),
    "gemini": Footprint(_gemini_places),
}
"""By the name of the dialect, which is that of its folder, in the order in which their hooks compose."""


def foreign_names() -> list[str]:
    """The dialects of other programs."""
    return [name for name, footprint in FOOTPRINTS.items() if not footprint.own]


def load_dialect(name: str) -> Dialect:
    dialect: Dialect = import_module(f"{__name__}.{name}.dialect").DIALECT
    return dialect


_JUDGES = ("tool:before_call", "permission:requested")


def judges_calls(event: str) -> bool:
    """Whether hooks of that name judge calls of tools, in any dialect."""
    mappings = (each for dialect in load_dialects().values() for each in dialect.events.get(event, ()))
    return any(each.event in _JUDGES for each in mappings)


def load_dialects(names: Iterable[str] | None = None) -> dict[str, Dialect]:
    """These dialects, or all of them, in the order in which their hooks compose."""
    selection = None if names is None else set(names)
    return {name: load_dialect(name) for name in FOOTPRINTS if selection is None or name in selection}
