"""`cru fork`: a new context that begins as a copy of this one up to a turn (docs/contexts.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cru.core.commands.forks import describe_fork
from cru.core.undo.conversation import ForkReport, fork
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import say, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.run_options import context_name, open_home

if TYPE_CHECKING:
    from cru.core.conversations.home import Home

HELP = """\
cru fork                  a new context that begins as a copy of this one
cru fork TURN             a copy up to that turn and with it, also one that /undo took back; `cru sessions --tree` shows the turns
cru fork --name NAME      what it is called; else NAME-fork after this one
Nothing of this context is changed, and it stays the current one. `cru -C CONTEXT fork` forks another one.
"""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it, NoSuchTurn, ContextHeld, BadName, NameTaken."""
    args = CommandArguments("fork", words, help=HELP, values=("--name",), switches=("--json",), most=1)
    if args.show_help():
        return 0
    turn = None
    if args.words:
        if not (args.words[0].isascii() and args.words[0].isdigit() and len(args.words[0]) < 10):
            raise args.wrong(f"`cru fork` needs the number of a turn, not {args.words[0]}")
        turn = int(args.words[0])
    home = open_home(parsed)
    parent = context_name(parsed, home)
    report = fork_conversation(home, parent, turn, args.value("--name", ""))
    if args.has("--json"):
        show(msgspec.json.encode({"parent": parent, "name": report.name, "turn": report.turn}).decode())
        for problem in report.problems:
            say(f"cru: not copied: {problem}")
    else:
        show(describe_fork(parent, report))
    return 0


def fork_conversation(home: Home, name: str, turn: int | None, new: str) -> ForkReport:
    """Copy a conversation up to a turn (None = the last one). Raises NoSuchContext, NoSuchTurn, ContextHeld, BadName, NameTaken."""
    store = home.find(name)
    with store.lock("cru fork"):
        report = fork(store, turn, new)
    store.close()
    return report
