"""`cru lua`: evaluate Lua inside a session, with the whole namespace."""

from __future__ import annotations

import re
from pathlib import Path

from cru.core.api import host
from cru.core.api.formatting import inspect
from cru.core.plugins.lua.convert import LuaError
from cru.core.plugins.testing.machine import cancel_tasks, new_machine, run_as, unlisted_plugin
from cru.core.turn.session import Session
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import show, write
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.run_options import context_name, open_home, start_of, working_directory
from cru.faces.cli.session_run import with_session

HELP = """\
cru lua '=EXPRESSION'    evaluate it and print the values
cru lua FILE             run a file
cru lua 'code'           run code; what it returns is printed
The plugins are loaded, and everything happens in the current context (-C NAME before it: in another one).
"""
RUN_SECONDS = 60.0
"""Lua's own run time; waiting (for a command, for the network) does not count."""
EXPRESSION = b"return "
ONE_WORD = re.compile(r"[\w./~-]+")


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = CommandArguments("lua", words, help=HELP, most=1)
    if args.show_help():
        return 0
    if not args.words:
        raise UsageProblem("`cru lua` needs code or a file", "cru lua '=1 + 1'")
    source, name, folder = _chunk(args)
    start = start_of(parsed, context_name(parsed, open_home(parsed)))

    async def work(session: Session) -> None:
        await session.open()
        await _evaluate(session, source, name, folder, start.home)

    with_session(start, parsed, work, cancels=True)
    return 0


def _chunk(args: CommandArguments) -> tuple[bytes, str, Path]:
    """The source, the name of the chunk, and the folder where its modules lie."""
    word, here = args.words[0], working_directory()
    if word.startswith("="):
        return EXPRESSION + word[1:].encode(), "=(command line)", here
    file = here / Path(word).expanduser()
    if len(word) < 4096 and "\n" not in word and file.is_file():
        return file.read_bytes(), f"@{word}", file.parent
    if ONE_WORD.fullmatch(word):
        raise args.wrong(f"{word} is neither a file nor code of Lua")
    return word.encode(), "=(command line)", here


async def _evaluate(session: Session, source: bytes, name: str, folder: Path, home: Path) -> None:
    """Run it and print the values. Raises LuaError with Lua's traceback as the hint."""
    path = [str(place / shape) for place in (folder, home / "plugins") for shape in ("?.lua", "?/init.lua")]
    here = host.PluginSession(session.parts, home)
    with run_as(here, unlisted_plugin("lua", folder)):
        try:
            vm = new_machine(path, write, RUN_SECONDS)
            values = await vm.run(vm.load(source, name, vm.globals))
            for value in values or ((None,) if source.startswith(EXPRESSION) else ()):
                show(inspect(value))
        except LuaError as error:
            error.hint = error.traceback
            raise
        finally:
            await cancel_tasks(here)
