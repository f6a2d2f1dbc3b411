"""The settings of command hooks: `[hooks]` in config.toml. Entries of cru's own dialect stand there as `[[hooks.entries]]`, or alone as
`[[hooks]]`."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

FOREIGN = ("crush", "claude", "codex", "gemini")


class HookOptions(Struct, frozen=True):
    dialects: list[str] = []
    disabled: list[str] = []
    env_pass: list[str] = []
    entries: list[dict[str, Any]] = []

    def __post_init__(self) -> None:
        for name in self.dialects:
            if name not in FOREIGN:
                from cru.config.closest import did_you_mean

                hint = did_you_mean(name, FOREIGN) or f"known: {', '.join(FOREIGN)}"
                raise ValueError(f"there are no hooks of `{name}`\n  {hint}")


class HookSettings(Struct, frozen=True):
    hooks: HookOptions | list[dict[str, Any]] = HookOptions()

    @property
    def options(self) -> HookOptions:
        """The options; a file that has only `[[hooks]]` sets none."""
        return self.hooks if isinstance(self.hooks, HookOptions) else HookOptions()


DOCS: dict[str, str] = {
    "hooks": "command hooks: other programs' scripts around prompts and tool calls",
    "hooks.dialects": "whose user-level hook files are run beside cru's own: crush, claude, codex, gemini (`cru hooks review` adds them)",
    "hooks.disabled": "ids of hooks that are left out (`cru hooks disable ID` adds to it); layers add up",
    "hooks.env_pass": "environment variables with provider keys that a project's hooks get all the same",
    "hooks.entries": "hooks of cru's own dialect",
}
