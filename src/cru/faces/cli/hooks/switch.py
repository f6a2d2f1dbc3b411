"""`cru hooks enable ID` and `disable ID`: one hook left out, whatever file it stands in, a project's too."""

from __future__ import annotations

from cru.core.compose import load_settings
from cru.core.hooks import HookSettings
from cru.core.hooks.errors import NoEntry
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import show
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.hooks.inventory import find_hook, load_inventory, update_hook_list
from cru.faces.cli.run_options import home_path, start_of


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """`words` begin with the verb. Raises NoEntry and ConfigError."""
    args = CommandArguments("hooks", words, verbs=("enable", "disable"), most=2)
    verb, *ids = args.words
    if not ids:
        raise UsageProblem(f"`cru hooks {verb}` needs an id", "cru hooks list shows them")
    on = verb == "enable"
    config = home_path(parsed) / "config.toml"
    inventory = load_inventory(parsed)
    try:
        status = find_hook(inventory.loaded, ids[0])
    except NoEntry:
        if not on or ids[0] not in _disabled_ids(parsed):
            raise
        update_hook_list(config, "disabled", ids[0], is_listed=False)
        show(f"{ids[0]} is not in any file any more, and no longer in {config}")
        return 0
    entry = status.entry
    update_hook_list(config, "disabled", entry.id, is_listed=not on)
    if on and not entry.enabled:
        show(f"{entry.id} is off in its own file, {entry.where}")
        return 1
    show(
        f"the hook {entry.id} ({entry.label}) is {'enabled' if on else 'disabled'} from the next session on ({config})"
    )
    return 0


def _disabled_ids(parsed: Parsed) -> list[str]:
    return load_settings(start_of(parsed, "default"))[0].of(HookSettings).options.disabled
