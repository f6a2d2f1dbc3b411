"""Command hooks of other programs. Here, since each start loads it and nothing heavy: where a person stands, what is known of a dialect
before it is loaded, and the settings `[hooks]` in config.toml. Entries of cru's own dialect stand there as `[[hooks.entries]]`, or alone as
`[[hooks]]`."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cru.core.base.config.layers import PROJECT

if TYPE_CHECKING:
    from cru.core.base.config.layers import Layer
    from cru.core.hooks.discovery import HookPolicy
    from cru.core.hooks.model.entry import Layer as HookLayer
    from cru.core.plugins.manager import Extensions
    from cru.core.turn.parts import Parts

MAX_CONFIG_BYTES = 1 << 20
"""Bytes of a configuration; of a larger one nothing is read."""
MAX_CONFIG_TABLES = 2_000
"""Brackets that open a table or a list in one, each hook has at least one. The largest that people write have some hundred."""
MAX_CONFIG_VALUES = 20_000
"""Commas and ends of lines in one: no fewer than its values."""
HOOKS_FILE = "hooks.json"
"""A file of nothing but hooks."""
ENV_FOLDER = "hook_env"
"""Below the folder of a context: what hooks of SessionStart set for commands."""
OF_USER = {
    "env_pass": "which keys a project's hooks get",
    "link_transcripts": "what is written into ~/.claude",
}
"""Settings that a project has no say in, and what they decide."""


class HookLocations(Struct, frozen=True):
    """Where somebody stands.

    home: cru's home folder
    user_home: the user's
    root: the project
    cwd: the working directory
    env: the environment of the session
    """

    home: Path
    user_home: Path
    root: Path
    cwd: Path
    env: Mapping[str, str]


class Footprint(Struct, frozen=True):
    """All that is known of a dialect before it is loaded.

    places: its configuration files, the lowest layer first; they need not exist
    own: whether it is cru's own: nobody is asked about the user's own files
    """

    places: "Callable[[HookLocations], list[tuple[HookLayer, Path]]]"
    own: bool = False


class HookOptions(Struct, frozen=True):
    dialects: list[str] = []
    disabled: list[str] = []
    env_pass: list[str] = []
    link_transcripts: bool = False
    entries: list[dict[str, Any]] = []

    def __post_init__(self) -> None:
        if not self.dialects:
            return
        from cru.core.hooks.dialects import foreign_names

        known = foreign_names()
        for name in self.dialects:
            if name not in known:
                from cru.core.base.config.closest import did_you_mean

                hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
                raise ValueError(f"there are no hooks of `{name}`\n  {hint}")


class SessionHookOptions(HookOptions, frozen=True):
    """The options of a session. A project cannot take a user's guards away nor open their keys.

    by_project: ids that a project leaves out, which counts for its own hooks only
    ignored: what it says that does not count, for the person
    """

    by_project: frozenset[str] = frozenset()
    ignored: tuple[str, ...] = ()


class HookSetup(Struct):
    """What the hooks of one session are made of.

    strict: none may await trust or be broken
    redact: takes the known keys out of JSON lines
    plugins: of the session; functions of hooks run where they do
    """

    where: HookLocations
    options: HookOptions
    policy: "HookPolicy"
    strict: bool
    parts: "Parts"
    redact: Callable[[bytes], bytes] | None
    plugins: "Extensions | None" = None


def merge_options(options: HookOptions, layers: "Iterable[Layer]") -> SessionHookOptions:
    """The options as these layers have them; `options` is what all of them together say."""
    tables = [(layer, table) for layer in layers if isinstance(table := layer.data.get("hooks"), dict)]
    of_user = [table for layer, table in tables if layer.name != PROJECT]
    disabled = [id for table in of_user for id in table.get("disabled", ())]
    own: list[str] = next((table["dialects"] for table in reversed(of_user) if "dialects" in table), [])
    return SessionHookOptions(
        dialects=list(dict.fromkeys([*own, *options.dialects])),
        disabled=disabled,
        env_pass=next((table["env_pass"] for table in reversed(of_user) if "env_pass" in table), []),
        entries=options.entries,
        link_transcripts=next((t["link_transcripts"] for t in reversed(of_user) if "link_transcripts" in t), False),
        by_project=frozenset(options.disabled).difference(disabled),
        ignored=tuple(
            f"{layer.file}: `hooks.{key}` is ignored: only you say {what}"
            for layer, table in tables
            for key, what in OF_USER.items()
            if layer.name == PROJECT and key in table
        ),
    )


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
    "hooks.env_pass": "variables with keys that a project's hooks get all the same, as `GITHUB_TOKEN` or `AWS_*`",
    "hooks.link_transcripts": "link each transcript at ~/.claude/projects/PROJECT/SESSION.jsonl, where programs look for Claude Code's",
    "hooks.entries": "hooks of cru's own dialect",
}
