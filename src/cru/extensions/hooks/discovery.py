"""Whether there may be command hooks at all, told without loading their room: a start looks at a few files and goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from cru.files.regular import read_regular

HookPolicy = Literal["trusted", "none", "all"]
POLICIES: tuple[HookPolicy, ...] = ("trusted", "none", "all")
FilesStamp = tuple[tuple[str, int, int, int], ...]
"""Of each file that is there: path, time, size and number."""

# Beside these, what a dialect's `places` says; a test holds the two together.
SYSTEM: dict[str, tuple[str, ...]] = {
    "crush": ("/etc/crush/crush.json",),
    "claude": ("/etc/claude-code/managed-settings.json",),
    "gemini": ("/etc/gemini-cli/settings.json",),
}
PROJECT: dict[str, tuple[str, ...]] = {
    "cru": (".cru/hooks.json", ".cru/config.toml"),
    "crush": ("crush.json", ".crush.json", "crushrc", ".crushrc", ".crush/crush.json"),
    "claude": (".claude/settings.json", ".claude/settings.local.json"),
    "codex": (".codex/hooks.json", ".codex/config.toml"),
    "gemini": (".gemini/settings.json",),
}
WORDS = (b"hook", b"notify", b"\\u", b"\0")
"""A file without any of these holds no hooks: their names, letters written as numbers, and encodings that are not UTF-8."""
MAX_CONFIG_BYTES = 1 << 20
"""Bytes of a configuration; of a larger one nothing is read."""


class HookLocations(Struct, frozen=True):
    """Where hooks are looked for.

    home: cru's home folder
    user_home: HOME
    root: the project
    cwd: where the user stands
    env: of the session
    """

    home: Path
    user_home: Path
    root: Path
    cwd: Path
    env: Mapping[str, str]


def footprints(where: HookLocations) -> Iterator[tuple[str, str]]:
    """(dialect, path) of every file that may hold hooks, whether it is there or not."""
    for dialect, paths in SYSTEM.items():
        yield from ((dialect, path) for path in paths)
    for dialect, path in _user(where):
        yield dialect, os.fspath(path)
    for folder in folders(where.root, where.cwd):
        for dialect, names in PROJECT.items():
            yield from ((dialect, os.path.join(folder, name)) for name in names)


def _user(where: HookLocations) -> Iterator[tuple[str, Path]]:
    env, home = where.env, where.user_home
    yield from (("cru", where.home / "hooks.json"), ("cru", where.home / "config.toml"))
    config = Path(env.get("CRUSH_GLOBAL_CONFIG") or Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "crush")
    data = Path(env.get("CRUSH_GLOBAL_DATA") or Path(env.get("XDG_DATA_HOME") or home / ".local/share") / "crush")
    yield from (("crush", path) for path in (config / "crush.json", config / "crushrc", data / "crush.json"))
    claude = Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    yield from (("claude", folder / "settings.json") for folder in {claude, home / ".claude"})
    codex = Path(env.get("CODEX_HOME") or home / ".codex")
    yield from (
        ("codex", folder / name) for folder in {codex, home / ".codex"} for name in ("hooks.json", "config.toml")
    )
    yield "gemini", home / ".gemini" / "settings.json"


def folders(root: Path, cwd: Path) -> list[Path]:
    """From `root` down to `cwd`; both, if one does not lie in the other."""
    if not cwd.is_relative_to(root):
        return [root, cwd]
    parts = cwd.relative_to(root).parts
    return [root.joinpath(*parts[:n]) for n in range(len(parts) + 1)]


def stamp_files(where: HookLocations) -> FilesStamp:
    """The files that are there, and what tells that one has changed."""
    found = []
    for path in (*(path for _, path in footprints(where)), os.path.join(where.home, "trust.json")):
        try:
            about = os.stat(path)
        except OSError:
            continue
        found.append((path, about.st_mtime_ns, about.st_size, about.st_ino))
    return tuple(found)


def find_dialects(where: HookLocations, stamp: FilesStamp) -> list[str]:
    """Whose files are there and may hold hooks, or held some that a person accepted."""
    present = {path for path, *_ in stamp}
    found = [name for name, path in footprints(where) if path in present and _may_hold(path)]
    return list(dict.fromkeys([*found, *_accepted(where)]))


def _accepted(where: HookLocations) -> list[str]:
    """Dialects of which trust.json names a file of this project."""
    try:
        data = (where.home / "trust.json").read_bytes()
    except OSError:
        return []  # who reads it properly says what is wrong
    if b'"accepted"' not in data:
        return []
    return [
        name
        for folder in map(os.path.realpath, folders(where.root, where.cwd))
        for name, paths in PROJECT.items()
        if any(_quoted(os.path.join(folder, path)) in data for path in paths)
    ]


def _quoted(path: str) -> bytes:
    import msgspec

    return msgspec.json.encode(path.encode("utf-8", "replace").decode())


def _may_hold(path: str) -> bool:
    """Never False for a file that a reader would find hooks in, or could not read."""
    try:
        data = read_regular(path, MAX_CONFIG_BYTES).lower()
    except OSError:
        return True  # who reads it properly says what is wrong
    return any(word in data for word in WORDS) or (path.endswith("hooks.json") and not data.isspace() and data != b"")
