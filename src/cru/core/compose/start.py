"""What a face knows when it asks for a session: where it works, and the settings in all their layers."""

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cru.core.agents import CardPlaces, TaskTable
from cru.core.base.config.layers import (
    COMMAND_LINE,
    CONTEXT,
    ENVIRONMENT,
    Layer,
    Settings,
    environment_layer,
    merge_layers,
    read_layer,
)  # fmt: skip
from cru.core.base.files import login_home
from cru.core.base.files.project_root import find_root
from cru.core.base.values.errors import CruError
from cru.core.command_table import FEATURES, load_target
from cru.core.conversations import ContextSettings
from cru.core.guard.rules import PermissionSettings
from cru.core.guard.sandbox.backends import sandbox_table
from cru.core.hooks import HookLocations, HookSettings
from cru.core.hooks.dialects import judges_calls
from cru.core.hooks.discovery import HookPolicy
from cru.core.models import API_KEYS, ModelSettings
from cru.core.plugins import PLUGIN_KEYS, PluginSettings
from cru.core.tools.protocol import ToolSettings
from cru.core.turn.parts import EngineSettings
from cru.core.turn.system_prompt import GuidePlaces, Guides, GuideSettings

if TYPE_CHECKING:
    from cru.core.command_table import SessionPart
    from cru.core.commands.prompt_files import PromptPlaces
    from cru.core.compose.prompt_files import PromptFilesHere
    from cru.core.guard.rules.gate import Gate
    from cru.core.plugins.discovery.places import PluginFolders
    from cru.core.turn.guides import GuideReader


class FaceSettings(Struct, frozen=True):
    """What a person sees of a run (chibi keeps these in its cli.toml)."""

    render_markdown: bool = True
    hide_tool_calls: bool = False
    show_thinking: bool = False
    verbose: bool = False


DOCS: dict[str, str] = {
    "render_markdown": "whether a terminal shows the answer rendered, or as the model wrote it",
    "hide_tool_calls": "whether the calls of tools that are done stay untold on standard error",
    "show_thinking": "whether a model's visible reasoning is shown, on standard error",
    "verbose": "diagnostics on standard error, as with `-v`",
}
SETTINGS: tuple[type[Struct], ...] = (
    ContextSettings, ModelSettings, PermissionSettings, EngineSettings, ToolSettings, TaskTable, FaceSettings, PluginSettings,
    HookSettings,
)  # fmt: skip
RARE_SETTINGS = {
    "undo": "cru.core.revisions:UndoTable",
    "keys": "cru.core.compose.chat_settings:KeyTable",
    "theme": "cru.core.compose.chat_settings:ThemeTable",
    "sandbox": "cru.core.guard.sandbox:SandboxTable",
    "prompt_files": "cru.core.commands.prompt_files:PromptFilesTable",
    "contexts": "cru.core.conversations.scope:ContextsTable",
    "tools": "cru.core.tools.secret_variables:ToolsTable",
    **{table: feature.target(target) for feature in FEATURES for table, target in feature.settings.items()},
}
"""Those of rooms that most runs never enter, by their table: each is loaded only if a layer has it."""


UNREAD = ("output-styles", "workflows")
"""Folders in a project's `.claude` that have no effect here, which is told."""


def settings_structs(layers: Iterable[Layer]) -> tuple[type[Struct], ...]:
    """The structs that these layers are checked against: all of them where a key is unknown, so that a misprint is recognised."""
    common = {key for struct in SETTINGS for key in struct.__struct_encode_fields__}
    layers = tuple(layers)
    in_files = {key for layer in layers if layer.name != ENVIRONMENT for key in layer.data}
    if in_files - common - RARE_SETTINGS.keys():
        return every_struct()
    return every_struct({key for layer in layers for key in layer.data})


def every_struct(keys: Container[str] | None = None) -> tuple[type[Struct], ...]:
    """The structs of all settings; of rare ones only those with these keys, None: all that are there. Raises FeatureMissing."""
    if keys is None:
        keys = RARE_SETTINGS.keys() - {
            table for feature in FEATURES if not feature.is_there() for table in feature.settings
        }
    return (*SETTINGS, *(load_target(target) for key, target in RARE_SETTINGS.items() if key in keys))


API_TABLES: dict[str, dict[str, Any]] = {"api": API_KEYS, "models.*.api": API_KEYS, "plugins": PLUGIN_KEYS}


class NestedTooDeep(CruError):
    """A run within a run within a run …"""


class Start(Struct, frozen=True):
    """What a face knows when it asks for a session. `overrides` are settings of the command line; root is the project root; hooks:
    which command hooks run; strict_hooks: no hook, plugin or rule may be left
    out; request: settings that came with a request, stronger than any file;
    debug: which records of requests are kept; agent: the card of the main agent, "" = none; copy_through: the
    socket of who copies the conversation, "" = nobody; project: the project whose current context counts, "" = the one of all;
    notices: what a person is told first; private: the folder of contexts and revisions in the place of the home, which goes when the
    run ends, None = there is none (--no-session)."""

    home: Path
    context: str
    env: Mapping[str, str]
    cwd: Path
    root: Path
    overrides: dict[str, Any] = {}
    hooks: HookPolicy = "trusted"
    strict_hooks: bool = False
    request: dict[str, Any] = {}
    debug: tuple[str, ...] = ()
    agent: str = ""
    copy_through: str = ""
    project: str = ""
    notices: tuple[str, ...] = ()
    private: Path | None = None

    @property
    def store(self) -> Path:
        """The folder of contexts and revisions."""
        return self.private or self.home


def load_settings(start: Start) -> tuple[Settings, list[Layer], list[str]]:
    """Return all layers in order. An untrusted project may only add ask and deny rules. Raises SettingsLost, NoSuchAgent and BadCard."""
    notices = [*start.notices]
    environment = environment_layer(start.env, tables=sandbox_table(start.env))
    own = read_layer("user", start.home / "config.toml")
    layers = [
        own,
        read_layer("user", start.home / "models.toml"),
        environment,
    ]  # chibi's file adds to ours and wins over it
    layers.append(_project_layer(start, layers[0], notices))
    layers.append(read_layer("context", start.store / "contexts" / start.context / "local.toml"))
    layers += [_card_layer(start, layers), Layer(CONTEXT, start.request, "`config` of the request")]
    layers.append(Layer(COMMAND_LINE, dict(start.overrides)))
    present = [layer for layer in layers if layer is not None]
    settings = merge_layers(settings_structs(present), present, tables=API_TABLES)
    if any("api" in layer.data for layer in present if layer.name in (CONTEXT, COMMAND_LINE)):
        from cru.core.compose.own_parameters import apply_own_parameters

        settings = apply_own_parameters(settings, present)
    return settings, present, notices + [str(p) for p in settings.problems]


def _project_layer(start: Start, user: Layer | None, notices: list[str]) -> Layer | None:
    path = start.root / ".cru" / "config.toml"
    if path.parent == start.home or not (os.path.lexists(path) or os.path.islink(path.parent)):
        return None
    from cru.core.compose.project_settings import ProjectPlaces, keep_required, read_project

    project = read_project(path, ProjectPlaces(start.home, start.root, start.strict_hooks), notices)
    return project if user is None or project is None else keep_required(user, project, notices)


def _card_layer(start: Start, below: Sequence[Layer | None]) -> Layer | None:
    if not start.agent:
        return None
    from cru.core.compose.main_card import card_layer

    return card_layer(start.agent, card_places(start), below)


def parent_context(start: Start, most: int) -> str:
    """The context of the run that started this one from within its turn, "" if no run did. Raises NestedTooDeep if more than `most`
    runs are above this one."""
    above = start.env.get("CRU_DEPTH", "")
    depth = int(above) - 1 if above.isdecimal() else 0
    if depth > most:
        raise NestedTooDeep(
            f"runs of cru that start one another are {depth} deep, the most is {most}",
            "a tool, plugin or hook starts a run that starts it again; if it is meant, raise `max_nested_runs`",
        )
    return start.env.get("CRU_CONTEXT", "") if depth > 0 else ""


def plugin_places(start: Start, settings: Settings) -> "PluginFolders":
    """Where plugins are looked for."""
    from cru.core.plugins.discovery.places import PluginFolders

    chosen = settings.of(PluginSettings)
    return PluginFolders(start.home, start.root, start.env, chosen.runtimepath, chosen.plugins, chosen.lua.fennel)


def hooks_where(start: Start) -> HookLocations:
    """Where command hooks are looked for."""
    return HookLocations(start.home, user_home(start), start.root, start.cwd, start.env)


def card_places(start: Start) -> CardPlaces:
    """Where agent cards are looked for."""
    return CardPlaces(start.home, user_home(start), start.root, judges_calls)


def find_guides(start: Start, settings: GuideSettings, gate: "Gate", root: Path, cwd: Path) -> Guides:
    """Those of one agent. root, cwd: where it works"""
    user = user_home(start)
    places = GuidePlaces(start.home, user, root, cwd, claude_home(start))
    gemini = [folder / ".gemini" / "settings.json" for folder in dict.fromkeys((user, root))]

    def load() -> "GuideReader":
        from cru.core.turn.guides import make_reader

        return make_reader(places, settings, gate)

    def more_names() -> Sequence[str]:
        if any(map(os.path.lexists, gemini)):
            from cru.core.hooks.dialects.gemini.config import read_context_names

            return read_context_names(gemini)
        return ()

    return Guides(places, settings, load, more_names)


def find_prompt_files(start: Start, settings: Settings) -> "PromptFilesHere | None":
    """Commands and skills as files; nothing of them is loaded if there is no folder for them."""
    here = dict.fromkeys((start.cwd, start.root))
    folders = [start.home, claude_home(start), user_home(start) / ".agents"]
    folders += [folder / name for folder in here for name in (".cru", ".claude", ".agents")]
    paths = [os.path.join(folder, name) for folder in folders for name in ("commands", "skills")]
    unread = tuple(folder for name in UNREAD if (folder := start.root / ".claude" / name).is_dir())
    if not unread and not any(map(os.path.isdir, paths)):
        return None
    from cru.core.compose.prompt_files import find_here

    return find_here(prompt_places(start), settings, unread)


def prompt_places(start: Start) -> "PromptPlaces":
    """Where commands and skills as files are looked for."""
    from cru.core.commands.prompt_files import PromptPlaces

    return PromptPlaces(start.home, user_home(start), start.root, start.cwd, claude_home(start), judges_calls)


def claude_home(start: Start) -> Path:
    """The user's folder of Claude Code."""
    return Path(start.env.get("CLAUDE_CONFIG_DIR") or user_home(start) / ".claude")


def user_home(start: Start) -> Path:
    """The home folder of the person who runs cru; services, and `env -i`, have no HOME."""
    if (home := start.env.get("HOME", "")).startswith("/"):
        return Path(home)
    return Path(login_home())


def project_root(
    cwd: Path, env: Mapping[str, str], home: Path, chosen: str | None = None, notices: list[str] | None = None
) -> Path:
    """The folder that a session works in (see `find_root`); what a person is told is added to `notices`."""
    root = find_root(cwd, env, home, chosen)
    if notices is not None and root.notice:
        notices.append(root.notice)
    return root.path


def find_parts(start: Start, settings: Settings) -> "list[SessionPart]":
    """What features bring to a session. Nothing of one is loaded if its settings and files are not there. Raises FeatureMissing."""
    joining = []
    for feature in FEATURES:
        if not feature.part:
            continue
        own, project = feature.files
        has_file = own and (os.path.lexists(start.home / own) or os.path.lexists(start.root / project))
        if has_file or any(map(settings.is_set, feature.settings)):
            part = load_target(feature.target(feature.part))(start, settings)
            if part is not None:
                joining.append(part)
    return joining
