"""What `[plugins.NAME]` may say of a plugin that is a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from cru.extensions.errors import PluginFailed

KEYS: dict[str, str] = {
    "era": "how it is given arguments and payloads: `env` or `stdin` (seen in the file itself)",
    "timeout": "seconds that a call of a tool may take (600)",
    "hook_timeout": "seconds that a hook may take (30)",
    "on_error": "what becomes of a call if `pre_tool` or a permission hook of it fails: `pass`, `deny` or `ask` (`pass`)",
}
LONGEST = 86400


class ExecutableSettings(Struct, frozen=True):
    """The table of one plugin; whatever is wrong in it raises PluginFailed."""

    plugin: str
    config: Mapping[str, Any]

    def choice(self, key: str, known: tuple[str, ...], default: Any) -> Any:
        value = self.config.get(key, default)
        if value in known:
            return value
        from cru.config.closest import did_you_mean

        hint = did_you_mean(str(value), known) or f"one of: {', '.join(known)}"
        raise PluginFailed(f"[plugins.{self.plugin}] {key}: there is no {value!r}", hint)

    def seconds(self, key: str, default: float) -> float:
        value = self.config.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LONGEST:
            problem = f"[plugins.{self.plugin}] {key} must be a number of seconds, at most {LONGEST}"
            raise PluginFailed(problem, f"{key} = {default:g}")
        return float(value)

    def slips(self) -> Iterator[str]:
        """Keys that are nearly one of ours; others may be the program's own."""
        from cru.config.closest import did_you_mean

        for key in self.config:
            near = did_you_mean(key, KEYS) if key not in KEYS else ""
            if near:
                yield f"[plugins.{self.plugin}] {key} has no effect; {near}"
