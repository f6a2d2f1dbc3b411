"""Which colours the chat has: the setting `theme`."""

from __future__ import annotations

from msgspec import Struct


class ThemeTable(Struct, frozen=True):
    """The setting of the chat's theme: a built-in one, or the name of a file in the home's `themes`."""

    theme: str = "dark"


DOCS: dict[str, str] = {
    "theme": "colours of the chat: `dark`, `light`, `plain`, or NAME of a file `~/.cru/themes/NAME.toml`"
}
