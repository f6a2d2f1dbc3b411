"""Which files are plugins, and in which language (docs/extensions.md, "Files in one folder")."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from msgspec import Struct

Kind = Literal["lua", "python"]
MANIFESTS = ("plugin.yaml", "plugin.yml", "manifest.yaml", "manifest.yml")
SKIPPED = ("lua", "tests", "__pycache__", "node_modules")


class Found(Struct, frozen=True):
    """One plugin: its name, its language, the files that are run in this order, and the folder of its helpers."""

    name: str
    kind: Kind
    files: tuple[Path, ...]
    folder: Path
    layer: str = "user"


def discover(folder: Path, layer: str) -> tuple[list[Found], list[str]]:
    """The plugins of one folder, sorted by name, and what is odd about the rest."""
    found: dict[str, Found] = {}
    problems: list[str] = []
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    except OSError as error:
        return [], [f"{folder}: {error.strerror}"]
    for entry in entries:
        if entry.name.startswith((".", "__")) or entry.name.endswith(".disabled"):
            continue
        made = _folder(Path(entry.path), problems) if entry.is_dir() else _file(Path(entry.path), problems)
        if made is None:
            continue
        if made.name in found:
            other = found.pop(made.name)
            problems.append(
                f"two plugins are called {made.name}: {other.files[0]} and {made.files[0]}; neither is loaded"
            )
            continue
        found[made.name] = Found(made.name, made.kind, made.files, made.folder, layer)
    return list(found.values()), problems


def _file(path: Path, problems: list[str]) -> Found | None:
    if path.suffix == ".lua":
        return Found(path.stem, "lua", (path,), path.parent)
    if path.suffix == ".fnl":
        problems.append(f"{path}: Fennel is not available yet")
    elif os.access(path, os.X_OK):
        problems.append(f"{path}: executable plugins are not available yet")
    elif path.suffix == ".py":
        return Found(path.stem, "python", (path,), path.parent)
    return None


def _folder(path: Path, problems: list[str]) -> Found | None:
    if (path / "init.lua").is_file():
        return Found(path.name, "lua", (path / "init.lua",), path)
    if (path / path.name).is_file() and os.access(path / path.name, os.X_OK):
        problems.append(f"{path / path.name}: executable plugins are not available yet")
        return None
    if (path / "__init__.py").is_file():
        return Found(path.name, "python", (path / "__init__.py",), path)
    if any((path / name).is_file() for name in MANIFESTS):
        problems.append(f"{path}: there is a manifest, but no init.lua")
        return None
    files = tuple(_scan(path, problems))
    return Found(path.name, "lua", files, path) if files else None


def _scan(path: Path, problems: list[str]) -> list[Path]:
    """Every Lua file below, but for helpers and tests."""
    files: list[Path] = []
    for root, folders, names in os.walk(path):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
        files += [
            Path(root, name) for name in sorted(names) if name.endswith(".lua") and not name.endswith("_test.lua")
        ]
        problems += [f"{Path(root, n)}: Fennel is not available yet" for n in names if n.endswith(".fnl")]
    return files
