"""Where plugins are looked for, and which of them there are: each name once, in the order in which they are loaded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cru.core.base.bundled import PLUGINS
from cru.core.base.config.closest import closest, did_you_mean
from cru.core.base.files.regular import NOT_REGULAR
from cru.core.guard import NotAccepted
from cru.core.guard.trust.accepted_files import TrustStore
from cru.core.plugins import OWN_KEYS, PATH_VARIABLES
from cru.core.plugins.discovery.files import (
    DiscoveredPlugin,
    Layer,
    describe_missing,
    discover_folder,
    list_untrusted,
    merge_same_names,
)
from cru.core.plugins.discovery.load_order import sort_by_dependencies
from cru.core.plugins.discovery.manifest import Manifest
from cru.core.plugins.packages import Package, installed_packages

BUNDLED = Path(PLUGINS)
INIT, INIT_FILE = "init", "init.lua"
"""The user's own file, as a plugin."""
MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class PluginFolders(Struct, frozen=True):
    """Every place where plugins may be. All is looked up anew by each call: files come and go.

    home: cru's home folder
    root: the project
    env: what the search path variables are read from
    runtimepath: the setting of this name
    config: `[plugins]` as a whole
    fennel: the setting `[lua] fennel`
    """

    home: Path
    root: Path
    env: Mapping[str, str] = {}
    runtimepath: tuple[str, ...] = ()
    config: Mapping[str, Any] = {}
    fennel: str = ""

    def find(self) -> tuple[list[DiscoveredPlugin], list[str]]:
        """All plugins, those that are not to be loaded too (see `DiscoveredPlugin.loadable`), and what is odd about the rest. The first
        place of a name wins; one of an untrusted project takes no name from anybody."""
        problems: list[str] = []
        chosen: dict[str, DiscoveredPlugin] = {}
        project = project_plugins(self.home, self.root)
        for layer, folder in self._folders(project.copy, problems):
            plugins = (
                merge_same_names([_package_plugin(p) for p in installed_packages(self.home)]) if folder is None else []
            )
            if folder is not None:
                plugins, folder_problems = discover_folder(folder, layer)
                problems += folder_problems
                if layer == "project":
                    plugins = [_with_source(plugin, folder, self.root) for plugin in plugins]
            for plugin in plugins:
                first = chosen.setdefault(plugin.name, self._with_enabled(plugin))
                if first.files != plugin.files and layer != "bundled":
                    problems.append(
                        f"{plugin.files[0]} is not loaded: {first.files[0]} is a plugin of the same name, and comes first"
                    )
        for plugin in project.untrusted:
            chosen.setdefault(plugin.name, self._with_enabled(plugin))
        if (own := self.init_file) is not None:  # the last: it may set up what the others are
            chosen.setdefault(INIT, self._with_enabled(DiscoveredPlugin(INIT, "lua", (own,), self.home)))
        elif os.path.lexists(self.home / INIT_FILE):
            problems.append(f"{self.home / INIT_FILE} is not run: {NOT_REGULAR}")
        return sort_by_dependencies(list(chosen.values())), [
            *problems,
            *project.problems,
            *self._config_warnings(chosen),
        ]

    @property
    def init_file(self) -> Path | None:
        """The user's own `init.lua` in cru's home, if there is one."""
        file = self.home / INIT_FILE
        return file if file.is_file() else None

    def _config_warnings(self, plugins: Mapping[str, DiscoveredPlugin]) -> list[str]:
        """Tables of plugins that are not there, and slips in cru's own keys: they turn a plugin on, or make it a guard."""
        warnings = []
        for name, own in self.config.items():
            if not isinstance(own, Mapping):
                continue
            if name not in plugins:
                near = did_you_mean(name, plugins)
                warnings.append(
                    f"[plugins.{name}]: there is no plugin {name}; {near or '`cru plugin list` shows which there are'}"
                )
                continue
            for key, value in own.items():
                near_key = closest(key, OWN_KEYS) if key not in OWN_KEYS and isinstance(value, bool) else None
                if near_key is not None and near_key not in own:
                    warnings.append(f"[plugins.{name}] {key}: did you mean `{near_key}`?")
        return warnings

    def search(self) -> list[str]:
        """The folders in which plugins find each other as modules, in the same order; not those of an untrusted project."""
        copy = project_plugins(self.home, self.root).copy
        return [str(folder) for _, folder in self._folders(copy, []) if folder is not None]

    def _folders(self, project: Path | None, problems: list[str]) -> Iterator[tuple[Layer, Path | None]]:
        """Every place, the strongest first; None stands for the installed packages."""
        for variable in PATH_VARIABLES:
            for folder in filter(None, self.env.get(variable, "").split(os.pathsep)):
                if (path := _named_folder(folder, variable, problems)) is not None:
                    yield "path", path
        yield "user", self.home / "plugins"
        for folder in self.runtimepath:
            if (path := _named_folder(folder, "runtimepath", problems)) is not None:
                yield "runtime", path / "plugins"
        if project is not None:
            yield "project", project
        yield "package", None
        yield "bundled", BUNDLED

    def _with_enabled(self, plugin: DiscoveredPlugin) -> DiscoveredPlugin:
        """With `enabled` as the settings and the manifest say; those that come with cru are off until somebody turns them on."""
        own = self.config.get(plugin.name)
        enabled = own.get("enabled") if isinstance(own, Mapping) else None
        if not isinstance(enabled, bool):
            enabled = plugin.layer != "bundled" and (plugin.manifest is None or plugin.manifest.enabled)
        return plugin if enabled else msgspec.structs.replace(plugin, enabled=False)


class ProjectPlugins(Struct, frozen=True):
    """The plugins of a project.

    copy: the copy of its folder, if it is trusted
    untrusted: those that are there, if it is not
    problems: why they are not loaded
    """

    copy: Path | None = None
    untrusted: tuple[DiscoveredPlugin, ...] = ()
    problems: tuple[str, ...] = ()


def project_folder(home: Path, root: Path) -> Path | None:
    """`.cru/plugins` of a project; None if there is none, or if it is the user's own."""
    folder = root / ".cru" / "plugins"
    if not os.path.isdir(folder) or os.path.realpath(folder.parent) == os.path.realpath(home):
        return None
    return folder


def project_plugins(home: Path, root: Path) -> ProjectPlugins:
    """Only a folder that is as it was when a person accepted it gives plugins (`cru trust`)."""
    folder = project_folder(home, root)
    if folder is None:
        return ProjectPlugins(problems=tuple(_missing_folder(home, root / ".cru" / "plugins")))
    trust = TrustStore(home / "trust.json")
    why = "it has changed since it was trusted" if trust.is_known(folder) else "this project is not trusted"
    try:
        copy = trust.trusted_copy(folder, root)
        if copy is not None:
            return ProjectPlugins(copy)
    except NotAccepted as error:
        why = error.message
    untrusted = tuple(list_untrusted(folder))
    several = "1 plugin of this project is" if len(untrusted) == 1 else f"{len(untrusted)} plugins of this project are"
    notice = [f"{several} not loaded: {why} (read {folder}, then `cru trust`)"] if untrusted else []
    return ProjectPlugins(None, untrusted, (*(str(problem) for problem in trust.problems[:1]), *notice))


def _with_source(plugin: DiscoveredPlugin, copy: Path, root: Path) -> DiscoveredPlugin:
    """A plugin of the trusted copy, with where it was copied from."""
    return msgspec.structs.replace(plugin, source=root / ".cru" / "plugins" / plugin.folder.relative_to(copy))


def _missing_folder(home: Path, folder: Path) -> Iterator[str]:
    """What is wrong with a project's folder of plugins that is none; the user's own is told as such."""
    if os.path.realpath(folder.parent) != os.path.realpath(home) and (text := describe_missing(folder)):
        yield f"{folder}: {text}"


def _named_folder(folder: str, where: str, problems: list[str]) -> Path | None:
    """A folder that the user has named."""
    path = Path(os.path.expanduser(folder))
    if not path.is_absolute():
        problems.append(f"{where}: {folder} is not looked at: it must be a full path, or begin with ~")
    elif not os.path.isdir(path):
        problems.append(f"{where}: there is no folder {path}")
    else:
        return path
    return None


def _package_plugin(package: Package) -> DiscoveredPlugin:
    """An installed package as a plugin; nothing of it is imported here."""
    manifest = Manifest(package.name, package.version)
    plugin = DiscoveredPlugin(
        package.name,
        "python",
        (Path(package.file),),
        Path(package.file).parent,
        "package",
        manifest,
        module=package.module,
    )
    if not MODULE.fullmatch(package.module):
        problem = f"{package.file}: the entry point must name a module, not {package.module!r}"
        return msgspec.structs.replace(plugin, problem=problem)
    file = _module_file(package.module)
    if file is None:
        return msgspec.structs.replace(plugin, problem=f"{package.file}: there is no module {package.module}")
    return msgspec.structs.replace(plugin, files=(file,), folder=file.parent)


def _module_file(module: str) -> Path | None:
    """The file of a module, without importing what it lies in."""
    top, *inner = module.split(".")
    spec = find_spec(top)
    if spec is None:
        return None
    if not inner:
        return Path(spec.origin) if spec.origin else None
    for folder in spec.submodule_search_locations or ():
        path = Path(folder, *inner)
        for file in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
            if file.is_file():
                return file
    return None
