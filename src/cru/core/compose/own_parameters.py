"""Parameters of requests that a conversation or a command line sets, which win over those of a model's alias. Loaded on demand."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from cru.core.base.config.layers import COMMAND_LINE, CONTEXT, Layer, Settings
from cru.core.models import ModelAlias, ModelSettings, merge_api


def apply_own_parameters(settings: Settings, layers: Sequence[Layer]) -> Settings:
    """Return the settings with aliases that have these parameters, too, so that they win wherever an alias answers."""
    chosen = settings.of(ModelSettings)
    models = {name: _applied(name, alias, chosen, layers) for name, alias in chosen.models.items()}
    return settings.with_value(replace(chosen, models=models))


def _applied(name: str, alias: ModelAlias, chosen: ModelSettings, layers: Sequence[Layer]) -> ModelAlias:
    """An alias over which a conversation or the command line wins, except where the same layer or a stronger one sets the alias itself."""
    own: set[tuple[str, ...]] = set()
    for layer in layers:
        if layer.name in (CONTEXT, COMMAND_LINE):
            own |= _paths(layer.data.get("api"))
            own -= _paths(_inner(_inner(_inner(layer.data, "models"), name), "api"))
    values = _selected(chosen.api, own)
    return replace(alias, api=merge_api(alias.api, values)) if alias.api and values else alias


def _inner(table: object, key: str) -> object:
    return table.get(key) if isinstance(table, dict) else None


def _paths(table: object, prefix: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """The keys of a table; of a table in it (`reasoning`) the keys inside."""
    if not isinstance(table, dict):
        return set()
    paths: set[tuple[str, ...]] = set()
    for key, value in table.items():
        paths |= _paths(value, (*prefix, key)) if isinstance(value, dict) and not prefix else {(*prefix, key)}
    return paths


def _selected(api: dict[str, object], paths: set[tuple[str, ...]]) -> dict[str, object]:
    """The checked values at these places."""
    chosen: dict[str, object] = {}
    for key, value in api.items():
        if (key,) in paths:
            chosen[key] = value
        elif isinstance(value, dict) and (inner := {name: value[name] for name in value if (key, name) in paths}):
            chosen[key] = inner
    return chosen
