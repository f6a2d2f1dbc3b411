"""The settings that a project brings: what counts of them before it is trusted, and what it may not take back. Loaded if there are any."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from cru.core.base.config.closest import is_misprint
from cru.core.base.config.ignored import drop_forbidden, restrict_untrusted
from cru.core.base.config.layers import ConfigError, Layer, read_layer
from cru.core.base.files import is_inside
from cru.core.base.values.errors import CruError
from cru.core.guard.rules.rules import drop_unreadable
from cru.core.guard.trust.accepted_files import TrustStore
from cru.core.plugins.lost_guards import LossKind, LostGuard
from cru.core.plugins.requirements import required_names


class ProjectPlaces(Struct, frozen=True):
    """Where a project's settings are read for.

    home: cru's; root: of the project; is_strict: no guard may be lost
    """

    home: Path
    root: Path
    is_strict: bool


class SettingsLost(CruError):
    """With --strict-hooks: settings that may hold guards are ignored, or a rule names nothing (exit 3)."""

    code = 3

    def __init__(self, texts: Sequence[str], hint: str, what: str = "") -> None:
        lines = [what, *texts] if what else texts
        super().__init__("--strict-hooks: " + "\n".join(lines), hint)
        self._texts = texts

    @property
    def lost(self) -> list[LostGuard]:
        """Each of them."""
        return [LostGuard(LossKind.LEFT_OUT, "", "settings", text, self.hint) for text in self._texts]


def read_project(path: Path, around: ProjectPlaces, notices: list[str]) -> Layer | None:
    """The project's own file, restricted until it is trusted; None if it is the user's own (the home folder as project)."""
    if os.path.realpath(path.parent) == os.path.realpath(around.home):
        return None
    if not is_inside(os.path.realpath(path), os.path.realpath(around.root)):
        _ignore(around, notices, [f"{path} leads out of the project and is ignored"])
        return None
    try:
        layer = read_layer("project", path)
        if layer is None:
            return None
        project, problems = drop_forbidden(layer)
        notices += [str(problem) for problem in problems]
        return _as_trusted(around, path, project, notices)
    except ConfigError as error:  # a stranger's file must not keep cru from starting
        _ignore(around, notices, [f"{problem}: the file is ignored" for problem in error.problems])
        return None


def _ignore(around: ProjectPlaces, notices: list[str], texts: list[str]) -> None:
    """Go on without a project's file; raises SettingsLost where it is a must."""
    if around.is_strict:
        raise SettingsLost(texts, "mend the file, or move it away")
    notices += texts


def _as_trusted(around: ProjectPlaces, path: Path, project: Layer, notices: list[str]) -> Layer:
    """Return what counts of a project's file."""
    trust = TrustStore(around.home / "trust.json")
    if not trust.is_trusted(path, project.text):
        _check_required(around, project)
        kept, problems = restrict_untrusted(project)
        kept, unreadable = drop_unreadable(kept)
        notices += [str(p) for p in (*trust.problems, *problems)]
        if lost := [*_misspelt_rules(project), *unreadable]:
            _ignore(around, notices, lost)
        return kept
    notices += _switched_off(around, project)
    return project


def _check_required(around: ProjectPlaces, project: Layer) -> None:
    """Raises SettingsLost if an untrusted project calls a plugin required, where nothing that guards may be lost."""
    tables = project.data.get("plugins")
    names = required_names(tables) if around.is_strict and isinstance(tables, dict) else []
    if names:
        place = project.place(("plugins", names[0], "required"))
        text = f"{place}: the plugin {names[0]} is required by a project that is not trusted"
        raise SettingsLost([text], "cru trust")


def _misspelt_rules(project: Layer) -> Iterator[str]:
    """Keys that were meant to refuse or to ask, which hold in a project that nobody has accepted."""
    table = project.data.get("permissions")
    keys = table if isinstance(table, dict) else ()
    near: list[tuple[tuple[str, ...], str]] = [
        ((key,), "permissions") for key in project.data if is_misprint(key, "permissions")
    ]
    near += [(("permissions", key), name) for key in keys for name in ("deny", "ask") if is_misprint(key, name)]
    for path, name in near:
        meant = ".".join((*path[:-1], name))
        yield f"{project.place(path)}: unknown setting `{'.'.join(path)}` (did you mean `{meant}`?)"


def keep_required(user: Layer, project: Layer, notices: list[str]) -> Layer:
    """The project's layer without what would take back that the user calls a plugin required."""
    own, tables = user.data.get("plugins"), project.data.get("plugins")
    if not isinstance(own, dict) or not isinstance(tables, dict):
        return project
    kept = dict(tables)
    for name in required_names(own):
        table = tables.get(name)
        if isinstance(table, dict) and table.get("required", True) is not True:
            place = project.place(("plugins", name, "required"))
            notices.append(f"{place}: `required` is ignored: the plugin {name} is required by your own settings")
            kept[name] = {key: value for key, value in table.items() if key != "required"}
    return Layer(project.name, {**project.data, "plugins": kept}, project.file, project.text)


def _switched_off(around: ProjectPlaces, project: Layer) -> list[str]:
    """Plugins that the project leaves out and did not bring: they may guard."""
    tables = project.data.get("plugins")
    own = around.root / ".cru" / "plugins"
    return [
        f"{project.place(('plugins', name, 'enabled'))}: this project switches off the plugin {name}"
        for name, table in (tables.items() if isinstance(tables, dict) else ())
        if isinstance(table, dict) and table.get("enabled") is False
        if not any((own / f"{name}{suffix}").exists() for suffix in ("", ".lua", ".fnl", ".py"))
    ]
