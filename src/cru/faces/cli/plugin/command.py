"""`cru plugin`: which plugins there are, a new one, their tests, their health (docs/plugin-tests.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from cru.core.base.config.edit import set_value
from cru.core.compose import SessionBundle
from cru.core.plugins.listing import format_row, plugin_rows
from cru.core.plugins.manager import Extensions
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, say, show
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.plugin.health import check_health
from cru.faces.cli.plugin.plugins import find_plugins, unknown_plugin, with_plugins
from cru.faces.cli.plugin.scaffold import create_plugin
from cru.faces.cli.plugin.tests import run_tests
from cru.faces.cli.plugin.types import write_types
from cru.faces.cli.run_options import home_path

HELP = """\
cru plugin list               every plugin: name, language, state, layer, file; its handlers, tools, commands, services, errors
cru plugin list --json        the same as JSON
cru plugin disable NAME       leave it out from the next session on (`enabled = false` in config.toml); `enable` takes it back
cru plugin new NAME           a new plugin in the home folder's plugins/, in Lua (--python: in Python)
cru plugin new NAME --executable [bash|python]   a program in any language, to begin with one in bash
cru plugin test DIR | NAME    run tests/*_test.lua (.fnl), *_test.lua and tests/test_*.py of a plugin
cru plugin health [NAME]      run the checks that plugins bring (health.lua); --json for programs
cru plugin types [FOLDER]     write types of all names for editors (Python and Lua) into FOLDER/typings, else ./typings
"""
SWITCHES: dict[str, tuple[str, ...]] = {
    "list": ("--json",), "new": ("--lua", "--python", "--executable"), "test": (), "health": ("--json",), "enable": (), "disable": (),
    "types": (),
}  # fmt: skip
"""What follows each verb."""
NAMES: dict[str, tuple[int, int]] = {
    "list": (0, 0), "new": (1, 2), "test": (1, 1), "health": (0, 1), "enable": (1, 1), "disable": (1, 1),
    "types": (0, 1),
}  # fmt: skip
"""How many words follow it, at least and at most."""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    verb = words[0] if words and words[0] in SWITCHES else ""
    switches = SWITCHES[verb or "list"]
    args = CommandArguments("plugin", words, help=HELP, switches=switches, verbs=tuple(SWITCHES), most=3)
    if args.show_help():
        return 0
    names = args.words[1:]
    least, most = NAMES[verb or "list"]
    if len(names) > most:
        raise args.wrong(f"`cru plugin {verb}` does not take {names[most]}")
    if len(names) < least:
        raise UsageProblem(f"`cru plugin {verb}` needs a name", f"cru plugin {verb} NAME")
    return _run(parsed, args, verb, names)


def _run(parsed: Parsed, args: CommandArguments, verb: str, names: list[str]) -> int:
    if verb == "new":
        return _new(parsed, args, *names)
    if verb == "test":
        return run_tests(parsed, names[0])
    if verb == "health":
        return check_health(parsed, "".join(names), args.has("--json"))
    if verb == "types":
        return write_types(Path("".join(names) or "."))
    if verb in ("enable", "disable"):
        return _switch(parsed, names[0], on=verb == "enable")
    return _list(parsed, args.has("--json"))


def _new(parsed: Parsed, args: CommandArguments, name: str, interpreter: str = "") -> int:
    kinds = [kind for kind in SWITCHES["new"] if args.has(kind)]
    if len(kinds) > 1:
        raise UsageProblem(f"{' and '.join(kinds)} do not go together", f"cru plugin new {name} {kinds[0]}")
    kind = kinds[0].removeprefix("--") if kinds else "lua"
    if kind == "executable":
        kind = f"{interpreter or 'bash'} program"
    elif interpreter:
        raise args.wrong(f"`cru plugin new` does not take {interpreter}")
    other = next((plugin for plugin in find_plugins(parsed) if plugin.name == name), None)
    code = create_plugin(home_path(parsed), name, kind)
    if other is not None:
        winner = "that one wins over yours" if other.layer == "path" else "yours wins over it"
        say(f"cru: there is another plugin {other.name} ({other.layer}, {other.files[0]}); {winner}")
    return code


def _list(parsed: Parsed, as_json: bool) -> int:
    async def work(built: SessionBundle, extensions: Extensions) -> list[dict[str, Any]]:
        return plugin_rows(extensions)

    rows = with_plugins(parsed, work)
    if as_json:
        show(msgspec.json.encode(rows).decode())
        return 0
    if all(row["layer"] == "bundled" for row in rows):
        show("there are no plugins of your own; `cru plugin new NAME` makes one")
    for row in rows:
        for line in format_row(row):
            show(one_line(line))
    return 0


def _switch(parsed: Parsed, name: str, on: bool) -> int:
    """Write it into the user's config.toml; comments and order stay. Raises UnknownPlugin and ConfigError."""
    known = [plugin.name for plugin in find_plugins(parsed)]
    if name not in known:
        raise unknown_plugin(name, known)
    file = home_path(parsed) / "config.toml"
    set_value(file, f"plugins.{name}.enabled", on)
    show(f"the plugin {name} is {'enabled' if on else 'disabled'} from the next session on ({file})")
    return 0
