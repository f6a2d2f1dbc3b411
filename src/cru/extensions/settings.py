"""The settings of plugins: `[plugins.NAME]`, free tables but for `enabled`."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class PluginSettings(Struct, frozen=True):
    plugins: dict[str, Any] = {}


DOCS: dict[str, str] = {
    "plugins": "`[plugins.NAME]`: what the plugin NAME reads as its configuration; `enabled = false` leaves it out, `enabled = true` "
    "turns on one that comes with cru",
}
