"""`cru plugin`: which plugins there are, a new one, their tests, their health (docs/plugin-tests.md)."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line, printable, say, show
from cru.faces.cli.event_loop import run_interruptible
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.run_options import home_path, start_of, working_directory
from cru.values.errors import CruError

if TYPE_CHECKING:
    from cru.app import Built, Start
    from cru.extensions.discovery.files import DiscoveredPlugin
    from cru.extensions.loaded_plugin import LoadedPlugin
    from cru.extensions.manager import Extensions

HELP = """\
cru plugin list               every plugin: name, language, state, layer, file; its handlers, tools, commands, services, errors
cru plugin list --json        the same as JSON
cru plugin disable NAME       leave it out from the next session on (`enabled = false` in config.toml); `enable` takes it back
cru plugin new NAME           a new plugin in the home folder's plugins/, in Lua (--python: in Python)
cru plugin new NAME --executable [bash|python]   a program in any language, to begin with one in bash
cru plugin test DIR | NAME    run tests/*_test.lua, *_test.lua and tests/test_*.py of a plugin
cru plugin health [NAME]      run the checks that plugins bring (health.lua)
cru plugin adopt-chibi        let ~/.chibi lead to the home folder, for plugins that look there (--undo: no more)
"""
SWITCHES: dict[str, tuple[str, ...]] = {
    "list": ("--json",), "new": ("--lua", "--python", "--executable"), "test": (), "health": (), "enable": (), "disable": (),
    "adopt-chibi": ("--undo",),
}  # fmt: skip
"""What follows each verb."""
NAMED: dict[str, tuple[int, int]] = {
    "list": (0, 0), "new": (1, 2), "test": (1, 1), "health": (0, 1), "enable": (1, 1), "disable": (1, 1),
    "adopt-chibi": (0, 0),
}  # fmt: skip
"""How many words follow it, at least and at most."""
OFF = ("disabled", "untrusted")
T = TypeVar("T")


class UnknownPlugin(CruError):
    """There is none of that name."""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    verb = words[0] if words and words[0] in SWITCHES else ""
    known = SWITCHES[verb] if verb else SWITCHES["list"]
    args = CommandArguments("plugin", words, switches=(*known, "--help", "-h"), verbs=tuple(SWITCHES), most=3)
    if args.has("--help") or args.has("-h"):
        print(HELP, end="")
        return 0
    names = args.words[1:]
    least, most = NAMED[verb or "list"]
    if len(names) > most:
        raise args.wrong(f"`cru plugin {verb}` does not take {names[most]}")
    if len(names) < least:
        raise UsageProblem(f"`cru plugin {verb}` needs a name", f"cru plugin {verb} NAME")
    if verb == "new":
        return _new(parsed, args, *names)
    if verb == "adopt-chibi":
        from cru.faces.cli.plugin.chibi_link import make_link, remove_link

        return (remove_link if args.has("--undo") else make_link)(home_path(parsed))
    if verb == "test":
        return _test(parsed, names[0])
    if verb in ("enable", "disable"):
        return _switch(parsed, names[0], on=verb == "enable")
    if verb == "health":
        return _health(parsed, names[0] if names else "")
    return _list(parsed, args.has("--json"))


def _new(parsed: Parsed, args: CommandArguments, name: str, interpreter: str = "") -> int:
    from cru.faces.cli.plugin.scaffold import create_plugin

    given = [kind for kind in SWITCHES["new"] if args.has(kind)]
    if len(given) > 1:
        raise UsageProblem(f"{' and '.join(given)} do not go together", f"cru plugin new {name} {given[0]}")
    kind = given[0].removeprefix("--") if given else "lua"
    if kind == "executable":
        kind = f"{interpreter or 'bash'} program"
    elif interpreter:
        raise args.wrong(f"`cru plugin new` does not take {interpreter}")
    there = next((one for one in _known(parsed) if one.name == name), None)
    code = create_plugin(home_path(parsed), name, kind)
    if there is not None:
        wins = "that one wins over yours" if there.layer == "path" else "yours wins over it"
        say(f"cru: there is another plugin {there.name} ({there.layer}, {there.files[0]}); {wins}")
    return code


# list ---------------------------------------------------------------------------------------------------------------------------


def _list(parsed: Parsed, as_json: bool) -> int:
    from cru.extensions.listing import format_row, plugin_rows

    async def work(built: Built, extensions: Extensions) -> list[dict[str, Any]]:
        return plugin_rows(extensions)

    found = _with_plugins(start_of(parsed, _context(parsed)), work)
    if as_json:
        import msgspec

        show(msgspec.json.encode(found).decode())
        return 0
    if all(row["layer"] == "bundled" for row in found):
        show("there are no plugins of your own; `cru plugin new NAME` makes one")
    for row in found:
        for line in format_row(row):
            show(one_line(line))
    return 0


# enable, disable ----------------------------------------------------------------------------------------------------------------


def _switch(parsed: Parsed, name: str, on: bool) -> int:
    """Write it into the user's config.toml; comments and order stay. Raises NoPlugin and ConfigError."""
    from cru.config.edit import set_value

    known = [found.name for found in _known(parsed)]
    if name not in known:
        raise _no_plugin(name, known)
    file = home_path(parsed) / "config.toml"
    set_value(file, f"plugins.{name}.enabled", on)
    show(f"the plugin {name} is {'enabled' if on else 'disabled'} from the next session on ({file})")
    return 0


# test ---------------------------------------------------------------------------------------------------------------------------


def _test(parsed: Parsed, word: str) -> int:
    from cru.extensions.testing.report import TestReport
    from cru.extensions.testing.runner import files_of

    folder = _folder(parsed, word)
    files = files_of(folder)

    async def tested() -> TestReport:
        report = TestReport()
        for file in files:
            report += await _tested(_shown(file), folder)
        return report

    report = run_interruptible(tested())
    for problem in report.errors:
        show(f"failed: {' / '.join(part for part in (problem.suite, problem.name) if part) or 'the file itself'}")
        place = f"{problem.where}: " if problem.where else ""
        show(f"  {place}{printable(problem.error)}".replace("\n", "\n  "))
    if not report.passed + report.failed + report.pending:
        say(
            f"cru: no tests found in {folder}\n  describe and it in tests/NAME_test.lua, or functions test_… in tests/test_NAME.py"
        )
    show(f"{report.passed} passed, {report.failed} failed, {report.pending} pending")
    return 0 if not report.failed and report.passed + report.pending else 1


async def _tested(file: Path, folder: Path) -> Any:
    """One file, in a session and a home of its own: no test sees or changes anybody's conversations."""
    import tempfile

    from cru.app import Start, build
    from cru.extensions.testing.runner import run_file

    with tempfile.TemporaryDirectory(prefix="cru-test-") as home:
        start = Start(Path(home), "default", dict(os.environ), working_directory(), folder, hooks="none")
        built = build(start, watch=lambda bus: _notices(bus.stream, lambda text, _owner: say(text)))
        try:
            return await run_file(file, folder, built.session.parts, Path(home), _print)
        finally:
            await built.session.close()
            await built.close()


def _folder(parsed: Parsed, word: str) -> Path:
    """The plugin's folder, by path or by the name that `cru plugin list` shows. Raises NoPlugin."""
    for folder in (working_directory() / word, home_path(parsed) / "plugins" / word):
        if folder.is_dir():
            return Path(os.path.abspath(folder))
    known = _known(parsed)
    for one in known:
        if one.name == word:
            return one.folder
    raise _no_plugin(word, [one.name for one in known])


def _known(parsed: Parsed) -> list[DiscoveredPlugin]:
    """Every plugin that is found, loaded or not."""
    from cru.app import load_settings, plugin_places

    start = start_of(parsed, _context(parsed))
    found: list[DiscoveredPlugin] = plugin_places(start, load_settings(start)[0]).find()[0]
    return found


def _no_plugin(word: str, known: list[str]) -> UnknownPlugin:
    from cru.config.closest import did_you_mean

    return UnknownPlugin(
        f"there is no plugin {word}", did_you_mean(word, known) or "cru plugin list shows those that are there"
    )


def _shown(file: Path) -> Path:
    """A file as a person here would name it."""
    here = working_directory()
    return file.relative_to(here) if file.is_relative_to(here) else file


def _print(text: str) -> None:
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)


# health -------------------------------------------------------------------------------------------------------------------------


def _health(parsed: Parsed, name: str) -> int:
    async def work(built: Built, extensions: Extensions) -> int:
        from cru.extensions.testing.health import check
        from cru.faces.cli.plugin.chibi_link import check_link as adopted
        from cru.namespace.host import PluginSession

        session = extensions.session or PluginSession(built.session.parts, extensions.home)
        chosen = [one for one in extensions.plugins if name == one.name or not (name or one.is_off)]
        if name and not chosen:
            raise _no_plugin(name, [one.found.name for one in extensions.plugins])
        healthy = True
        for one in chosen:
            checks = None if one.state in OFF else await check(one, session)
            healthy = _report(one, checks) and healthy
        if not chosen:
            show("there are no plugins")
        programs = [one.found.files[0] for one in chosen if one.found.kind == "executable"]
        link = adopted(extensions.home, programs)
        if link:
            show(one_line(link))
        return 0 if healthy else 1

    return _with_plugins(start_of(parsed, _context(parsed)), work)


def _report(one: LoadedPlugin, checks: list[Any] | None) -> bool:
    """Print what a plugin said; whether nothing of it is an error."""
    if not checks:
        why = (
            f"it is {one.state}"
            if one.state in OFF
            else "it has no health check"
            if checks is None
            else "no check said anything"
        )
        show(f"{one.found.name}: nothing to report, {why}")
        return True
    show(one.found.name)
    for check in checks:
        show(f"  {check.level:<6} {one_line(check.text)}")
        for advice in check.advice:
            show(f"  {'':<6} {one_line(advice)}")
    return all(check.level != "error" for check in checks)


# a session with its plugins -------------------------------------------------------------------------------------------------------


def _context(parsed: Parsed) -> str:
    from cru.contexts.home import Home
    from cru.faces.cli.run_options import context_name

    return context_name(parsed, Home(home_path(parsed)))


def _with_plugins(start: Start, work: Callable[[Built, Extensions], Awaitable[T]]) -> T:
    """Load the plugins into a session in which no turn runs, and do something with them."""

    async def run() -> T:
        from cru.app import build
        from cru.extensions.executables.schemas import SchemaCache
        from cru.extensions.listing import line_of

        SchemaCache(start.home).forget_failures()
        told: list[tuple[str, str]] = []
        built = build(start, watch=lambda bus: _notices(bus.stream, lambda text, owner="": told.append((text, owner))))
        extensions = _extensions(built, start)
        try:
            if extensions.session is None:
                await extensions.open(built.session.parts)
            broken = {one.found.name for one in extensions.plugins if one.error}
            order = list(dict.fromkeys(owner for _, owner in told))
            for text, owner in sorted(told, key=lambda one: (order.index(one[1]), line_of(one[0]))):
                if owner not in broken:
                    say(text)
            return await work(built, extensions)
        finally:
            await built.session.close()
            await built.close()

    return run_interruptible(run())


def _extensions(built: Built, start: Start) -> Extensions:
    """Those of the session; one without a folder of plugins has none, then those that come with cru and are off."""
    from cru.app import plugin_places
    from cru.extensions.manager import Extensions

    for opening in built.session.parts.lifecycle.opening:
        owner = getattr(opening, "__self__", None)
        if isinstance(owner, Extensions):
            return owner
    return Extensions(plugin_places(start, built.settings), {}, start.home)


def _notices(stream: Any, tell: Callable[..., None]) -> None:
    from cru.events.stream import Notice, Published

    def notice(item: Published[Notice]) -> None:
        if item.payload.level != "info":
            tell(f"cru: {item.payload.text}", item.payload.owner)

    stream.subscribe(notice, Notice)
