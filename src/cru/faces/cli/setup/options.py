"""What a person without a model may choose from: keys that are there, servers of this machine, the model inside cru, and more."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from msgspec import Struct

from cru.core.base.config.secret import mask_url
from cru.core.models import ModelSettings
from cru.core.models.probe import ALL_SERVERS, find_servers
from cru.core.models.providers import (
    CUSTOM,
    KEYED,
    OPENROUTER,
    OWN_KEY,
    PROVIDERS,
    KeyEnvironment,
    provider_at,
    source_of,
)
from cru.core.models.pull import WEIGHTS, weights_path

Kind = Literal["provider", "paste", "address", "embedded", "tour"]


class SetupOption(Struct, frozen=True):
    """A line of the list.

    provider, base_url: who would be asked
    """

    kind: Kind
    label: str
    about: str = ""
    provider: str = ""
    base_url: str = ""


async def find_options(settings: ModelSettings, env: Mapping[str, str], models_folder: Path) -> list[SetupOption]:
    """The likeliest first. Asks the usual ports of this machine, 200 ms at most. A `base_url` that is set decides, as for requests."""
    if settings.base_url:
        name = provider_at(settings.base_url)
        options = [
            SetupOption("provider", mask_url(settings.base_url), "the setting base_url", name, settings.base_url)
        ]
    else:
        options = [*_with_keys(settings, env), *_kept_servers(env), *await _servers()]
        options.append(SetupOption("paste", "paste a key", f"of {', '.join(row.name for row in KEYED)}"))
        options.append(SetupOption("address", "another server", "its address; it speaks as OpenAI does"))
    return [
        *options,
        *_embedded(models_folder),
        SetupOption("tour", "no model", "a script that always says the same, to look around"),
    ]


def _with_keys(settings: ModelSettings, env: Mapping[str, str]) -> list[SetupOption]:
    rows = [(row, source_of(row.key_variable, env)) for row in KEYED if env.get(row.key_variable)]
    options = [
        SetupOption("provider", row.name, f"the key is in {source}", row.name, row.base_url) for row, source in rows
    ]
    if (settings.api_key or env.get(OWN_KEY)) and all(row.name != OPENROUTER for row, _ in rows):
        source = "the setting api_key" if settings.api_key else OWN_KEY
        base_url = PROVIDERS[OPENROUTER].base_url
        options.insert(0, SetupOption("provider", OPENROUTER, f"the key is in {source}", OPENROUTER, base_url))
    return options


def _kept_servers(env: Mapping[str, str]) -> list[SetupOption]:
    """Those that `cru login URL` was for. A keyring is asked once one is chosen."""
    servers = env.servers() if isinstance(env, KeyEnvironment) else {}
    return [SetupOption("provider", address, "its key is kept", CUSTOM, address) for address in servers.values()]


async def _servers() -> list[SetupOption]:
    return [
        SetupOption(
            "provider", server.provider.name, f"{_count(server.models)} at {server.provider.base_url}",
            server.provider.name, server.provider.base_url,
        )
        for server in await find_servers(ALL_SERVERS)
    ]  # fmt: skip


def _count(models: tuple[str, ...]) -> str:
    more = ", …" if len(models) > 2 else ""
    return f"{', '.join(models[:2])}{more}"


def _embedded(folder: Path) -> list[SetupOption]:
    """The model inside cru, if what runs it is installed."""
    if find_spec("xllamacpp") is None:
        return []
    options = []
    for name, weights in WEIGHTS.items():
        state = "it is here" if weights_path(name, folder).exists() else f"{weights.megabytes} MB to fetch"
        options.append(
            SetupOption("embedded", f"local:{name}", f"a small model inside cru, a smoke test; {state}", "local")
        )
    return options
