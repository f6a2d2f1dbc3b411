"""Which files of one folder are plugins, and in which language (docs/extensions.md, "Which files are plugins")."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from cru.core.base.files.regular import NOT_REGULAR, open_regular
from cru.core.plugins.discovery.manifest import Manifest, manifest_file, read_manifest
from cru.core.plugins.errors import BadManifest

Kind = Literal["lua", "python", "executable"]
Layer = Literal["path", "user", "runtime", "project", "package", "bundled"]
SKIPPED = ("lua", "tests", "__pycache__", "node_modules")
LUA_SUFFIXES = (".lua", ".fnl")
"""What runs in the machine of Lua; Fennel is compiled to it."""


class DiscoveredPlugin(Struct, frozen=True):
    """One plugin as its files say. Only one that is enabled, trusted and without a problem is loaded.

    files: what is run, in this order; of an installed package only where it is
    folder: where its helpers lie
    source: the folder that a person edits, if `folder` is the copy of it that was trusted
    problem: why it cannot be loaded, "" if it can
    trusted: False for one of a project that nobody accepted
    enabled: what its manifest and the settings say together
    module: what to import of an installed package, "" for all others
    is_locked: it is a program by its first line, and not executable
    """

    name: str
    kind: Kind
    files: tuple[Path, ...]
    folder: Path
    layer: Layer = "user"
    manifest: Manifest | None = None
    problem: str = ""
    trusted: bool = True
    enabled: bool = True
    module: str = ""
    is_locked: bool = False
    source: Path | None = None

    def edited(self, file: Path) -> Path:
        """One of its files, as a person knows it."""
        return file if self.source is None else self.source / file.relative_to(self.folder)

    @property
    def loadable(self) -> bool:
        return self.enabled and self.trusted and not self.problem


def discover_folder(folder: Path, layer: Layer) -> tuple[list[DiscoveredPlugin], list[str]]:
    """The plugins of one folder, sorted by name, and what is odd about the rest. A missing folder has none."""
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except (FileNotFoundError, NotADirectoryError):
        return [], [f"{folder}: {text}" for text in [describe_missing(folder)] if text]
    except OSError as error:
        return [], [f"{folder} cannot be read: {error.strerror}"]
    plugins: list[DiscoveredPlugin] = []
    problems: list[str] = []
    for entry in entries:
        if not is_skipped(entry.name) and (plugin := _read_entry(Path(entry.path), problems)) is not None:
            plugins.append(msgspec.structs.replace(plugin, layer=layer))
    return merge_same_names(plugins), problems


def describe_missing(folder: Path) -> str:
    """Why a folder of plugins is none although somebody meant it to be, "" if nobody did."""
    if os.path.islink(folder) and not os.path.exists(folder):
        return f"it is a link to {os.readlink(folder)}, which is not there"
    return "it is no folder" if os.path.exists(folder) else ""


def list_untrusted(folder: Path) -> list[DiscoveredPlugin]:
    """What in a project's folder looks like plugins. Nothing is opened and no link followed: nobody has accepted it."""
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except OSError:  # whoever judged the folder has said so
        return []
    plugins: dict[str, DiscoveredPlugin] = {}
    for entry in entries:
        name, suffix = os.path.splitext(entry.name)
        is_folder = entry.is_dir(follow_symlinks=False)
        is_program = not is_folder and suffix not in LUA_SUFFIXES and _is_program(entry)
        if not is_skipped(entry.name) and (is_folder or is_program or suffix in (*LUA_SUFFIXES, ".py")):
            path = Path(entry.path)
            kind: Kind = "python" if suffix == ".py" or (is_folder and (path / "__init__.py").exists()) else "lua"
            kind = "executable" if is_program or (is_folder and os.access(path / entry.name, os.X_OK)) else kind
            plugin_name = entry.name if is_folder else name
            plugin = DiscoveredPlugin(plugin_name, kind, (path,), folder, "project", trusted=False)
            plugins.setdefault(plugin_name, plugin)
    return list(plugins.values())


def _is_program(entry: os.DirEntry[str]) -> bool:
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)


def is_skipped(name: str) -> bool:
    """Whether an entry of a folder of plugins is none by its name."""
    return name.startswith((".", "__")) or name.endswith(".disabled")


def merge_same_names(plugins: list[DiscoveredPlugin]) -> list[DiscoveredPlugin]:
    """Sorted by name; those of one place that share a name become one that cannot be loaded and names all of them."""
    by_name: dict[str, list[DiscoveredPlugin]] = {}
    for plugin in sorted(plugins, key=lambda plugin: plugin.is_locked):
        same = by_name.setdefault(plugin.name, [])
        if not same or not plugin.is_locked:  # it may be meant as it is, beside a plugin of its name
            same.append(plugin)
    return [_merge(name, by_name[name]) for name in sorted(by_name)]


def _merge(name: str, same: list[DiscoveredPlugin]) -> DiscoveredPlugin:
    if len(same) == 1:
        return same[0]
    files = tuple(plugin.files[0] for plugin in same)
    names = " and ".join(str(file) for file in files)
    problem = f"two plugins are called {name}: {names}; neither is loaded"
    return msgspec.structs.replace(same[0], files=files, problem=problem)


def _read_entry(path: Path, problems: list[str]) -> DiscoveredPlugin | None:
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            return _read_file(path)
        if not stat.S_ISDIR(mode):
            problems.append(f"{path}: {NOT_REGULAR}")
            return None
        if not path.parent.resolve().is_relative_to(path.resolve()):
            return _read_folder(path, problems)
        problems.append(f"{path} leads to a folder that it lies in")
    except OSError as error:
        problems.append(f"{path}: {'a link to nothing' if isinstance(error, FileNotFoundError) else error.strerror}")
    return None


def _read_file(path: Path) -> DiscoveredPlugin | None:
    if path.suffix in LUA_SUFFIXES:
        return DiscoveredPlugin(path.stem, "lua", (path,), path.parent)
    if os.access(path, os.X_OK):
        return DiscoveredPlugin(path.stem, "executable", (path,), path.parent)
    if path.suffix == ".py":
        return DiscoveredPlugin(path.stem, "python", (path,), path.parent)
    return _locked_program(path, path.stem, path.parent)


def _locked_program(path: Path, name: str, folder: Path) -> DiscoveredPlugin | None:
    """A program that cannot be run, if it is one by its first line."""
    if not path.is_file():
        return None
    try:
        with open(open_regular(path), "rb") as file:
            is_script = file.read(2) == b"#!"
    except OSError:
        return None
    if not is_script:
        return None
    from shlex import quote

    problem = f"{path} is not executable: chmod +x {quote(str(path))} (or call it {path.name}.disabled)"
    return DiscoveredPlugin(name, "executable", (path,), folder, problem=problem, is_locked=True)


def _read_folder(path: Path, problems: list[str]) -> DiscoveredPlugin | None:
    file = manifest_file(path)
    if file is not None:
        return _read_declared(path, file)
    mains = _main_files(path)
    if len(mains) > 1:
        return _broken_plugin(
            path, mains[0], f"both {mains[0]} and {mains[1].name} could be run; remove one, or name it in plugin.yaml"
        )
    if not mains:
        files = tuple(_lua_files(path, problems))
        return (
            DiscoveredPlugin(path.name, "lua", files, path)
            if files
            else _locked_program(path / path.name, path.name, path)
        )
    return DiscoveredPlugin(path.name, _kind_of(mains[0]), (mains[0],), path)


def _read_declared(path: Path, file: Path) -> DiscoveredPlugin:
    """A folder with a manifest, which decides: its `main`, else the one file that is run by its name."""
    try:
        manifest = read_manifest(file)
    except BadManifest as error:
        return _broken_plugin(path, file, f"{error.message} ({error.hint})" if error.hint else error.message)
    mains = [path / manifest.main] if manifest.main else _main_files(path)
    main = mains[0] if mains else file
    problem = _main_problem(manifest, file, mains)
    return DiscoveredPlugin(manifest.name, _kind_of(main), (main,), path, manifest=manifest, problem=problem)


def _main_problem(manifest: Manifest, file: Path, mains: list[Path]) -> str:
    """Why the file that a manifest names or implies cannot be run; "" if it can."""
    if not mains:
        return f"{file}: main: there is no init.lua beside it"
    if len(mains) > 1:
        return f"{file}: main: both {mains[0].name} and {mains[1].name} could be run; name one"
    if not mains[0].is_file():
        return f"{file}: main: there is no file {manifest.main}"
    return ""


def _main_files(path: Path) -> list[Path]:
    """What of a plugin's folder is run because of its name."""
    own = path / path.name
    named = [path / name for name in ("init.lua", "init.fnl", "__init__.py") if (path / name).is_file()]
    return [*named, own] if own.is_file() and os.access(own, os.X_OK) else named


def _kind_of(main: Path) -> Kind:
    """A file with no suffix of ours is a program; so is one in Python that lies in its folder under the folder's own name."""
    if main.suffix in (*LUA_SUFFIXES, ".yaml", ".yml"):
        return "lua"
    return "python" if main.suffix == ".py" and main.name != main.parent.name else "executable"


def _broken_plugin(path: Path, file: Path, problem: str) -> DiscoveredPlugin:
    return DiscoveredPlugin(path.name, "lua", (file,), path, problem=problem)


def _lua_files(path: Path, problems: list[str]) -> list[Path]:
    """Every file of Lua or Fennel below, but for helpers and tests. Links to folders are not followed."""
    files: list[Path] = []

    def report(error: OSError) -> None:
        problems.append(f"{error.filename} cannot be read: {error.strerror}")

    for root, folders, names in os.walk(path, onerror=report):
        folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
        sources = [
            path
            for path in (Path(root, name) for name in sorted(names))
            if path.suffix in LUA_SUFFIXES and not path.stem.endswith("_test")
        ]
        files += [file for file in sources if file.is_file() or file.is_symlink()]
        problems += [f"{file}: {NOT_REGULAR}" for file in sources if not (file.is_file() or file.is_symlink())]
    return files
