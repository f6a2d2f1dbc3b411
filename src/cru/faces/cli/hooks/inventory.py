"""What the verbs of `cru hooks` share: everything that is there, and the user's own config.toml changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cru.core.base.config.edit import set_value
from cru.core.base.config.layers import ConfigError, SettingsProblem, read_layer
from cru.core.base.files.atomic import file_lock
from cru.core.base.files.regular import make_private_folder
from cru.core.compose import hooks_where, load_settings
from cru.core.guard.rules import PermissionSettings
from cru.core.hooks import HookSettings, merge_options
from cru.core.hooks.errors import NoEntry
from cru.core.hooks.inventory import HookInventory, session_facts, take_inventory
from cru.core.hooks.model.entry import ProblemKind
from cru.core.hooks.model.status import EntryStatus, LoadedHooks
from cru.faces.cli.console import say
from cru.faces.cli.flags import Parsed
from cru.faces.cli.run_options import context_name, open_home, start_of

if TYPE_CHECKING:
    from pathlib import Path


def load_inventory(parsed: Parsed, *, tell: bool = True) -> HookInventory:
    """All hooks for somebody who stands here, and the facts of the context; nothing is run. What is odd about trust.json and about files
    that are void is said on stderr, unless the caller tells it."""
    home = open_home(parsed)
    start = start_of(parsed, context_name(parsed, home))
    settings, layers, _ = load_settings(start)
    options = merge_options(settings.of(HookSettings).options, layers)
    facts = session_facts(hooks_where(start), options, start.home / "contexts" / start.context, start.context)
    mode = settings.of(PermissionSettings).mode
    facts.mode = lambda: mode
    inventory = take_inventory(None, facts, options)
    for text in (
        *inventory.trust.store.problems[:1],
        *(p for p in inventory.loaded.problems if p.kind is ProblemKind.WHOLE_FILE),
    ):
        if tell:
            say(f"cru: {text}")
    return inventory


def find_hook(loaded: LoadedHooks, word: str) -> EntryStatus:
    """The hook of an id, of the beginning of one, or of a name that only one has. Raises NoEntry."""
    matches = [status for status in loaded.known if word in (status.entry.name, status.entry.label)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise NoEntry(f"{word} may be {' or '.join(status.entry.id for status in matches)}", "name one by its id")
    return loaded.find(word)


def update_hook_list(config: Path, key: str, name: str, *, is_listed: bool) -> None:
    """Put a name into one of the lists of `[hooks]` in the user's config.toml, or take it out. Raises ConfigError."""
    make_private_folder(config.parent)
    with file_lock(config):
        layer = read_layer("user", config)
        table = layer.data.get("hooks", {}) if layer is not None else {}
        if not isinstance(table, dict):
            raise ConfigError(
                [SettingsProblem("`[[hooks]]` leaves no room", str(config), "write `[[hooks.entries]]` for each entry")]
            )
        names = [status for status in table.get(key, []) if status != name]
        if is_listed or key in table:
            set_value(config, f"hooks.{key}", [*names, name] if is_listed else names)
