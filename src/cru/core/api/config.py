"""`cru.config`: settings, and what `[plugins.NAME]` says. Where the notes and projects of a person lie is withheld."""

from __future__ import annotations

from collections.abc import Mapping

from cru.core.api import plain_data
from cru.core.api.arguments import table, text
from cru.core.api.host import host
from cru.core.events.payloads import ConfigChanged

WITHHELD = frozenset(
    ("kilns", "kiln_path", "session_kiln", "projects", "data_home", "agent_directories", "runtimepath", "api_key")
)
_CHANGED = "config"


def get(key: str) -> object:
    """config.get(key) -> a setting by its name, or nil; if the part before the first dot names a plugin, what `[plugins.NAME]`
    says: config.get("todo-list.default_file").

    Example: cru.config.get("no such setting") --> nil
    """
    name, *path = text("cru.config.get", "key", key).split(".")
    setting: object = _plugin_section(name)
    if setting is None:
        return _all_settings().get(key) if key not in WITHHELD else None
    for part in path:
        setting = setting.get(part) if isinstance(setting, Mapping) else None
    return dict(setting) if isinstance(setting, Mapping) else setting


async def set_(values: dict[str, object]) -> None:
    """config.set{key = value, ...}: for `config.get` of all plugins of this session; nothing is written to a file, and the engine
    keeps its own settings. Announces `config:changed` for each key. Raises BadArgument.

    Example: cru.config.set({greeting="hi"}) --> nil
    """
    fields = table("cru.config.set", "values", values)
    plain_data.encode("cru.config.set", fields)
    session = host().session
    session.family_state(_CHANGED, dict[str, object]).update({str(k): v for k, v in fields.items()})
    for key, value in fields.items():
        await session.parts.bus.dispatch(ConfigChanged(str(key), value))


def section(name: str) -> dict[str, object] | None:
    """config[NAME] -> the table `[plugins.NAME]`, or nil.

    Example: cru.config["no such plugin"] --> nil
    """
    section = _plugin_section(name)
    return None if section is None else dict(section)


def _plugin_section(name: str) -> Mapping[str, object] | None:
    here = host()
    if name == here.plugin.name:
        return here.plugin.config
    plugins = _all_settings().get("plugins")
    section = plugins.get(name) if isinstance(plugins, Mapping) else None
    return section if isinstance(section, Mapping) else None


def _all_settings() -> dict[str, object]:
    """All settings in plain types, secrets masked, with what scripts changed."""
    session = host().session
    settings = session.parts.services.settings
    return {**(settings.as_dict() if settings is not None else {}), **session.shared.get(_CHANGED, {})}
