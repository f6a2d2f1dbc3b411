"""`cru sessions`: the conversations of a project or of all, listed, or looked through on a terminal (docs/contexts.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from cru.core.base.values.visible import visible
from cru.core.commands.forks import describe_fork, parse_fork
from cru.core.undo.fork_tree import build_tree, render_tree
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import ExitStatus, cut_to_columns, is_dumb_terminal, say, show
from cru.faces.cli.event_loop import run_interruptible
from cru.faces.cli.flags import Parsed, find
from cru.faces.cli.operations.contexts import archive_other, delete_other, rename_other
from cru.faces.cli.operations.flag_run import FlagRun
from cru.faces.cli.run import run
from cru.faces.cli.run_options import context_name, open_home
from cru.faces.cli.sessions.fork import fork_conversation
from cru.faces.cli.sessions.named import open_conversation
from cru.faces.cli.sessions.rows import is_here, read_rows, when_text
from cru.faces.cli.terminal.keyboard import input_mode

if TYPE_CHECKING:
    from cru.core.conversations.home import Home
    from cru.faces.cli.sessions.rows import SessionRow

HELP = """\
cru sessions              the conversations of this project, the last one first; on a terminal to look through, open, fork, rename, delete
cru sessions WORDS…       those that have all these words in name, project, first prompt or last messages (also: search WORDS…)
cru sessions --all        those of all projects
cru sessions --list       on a terminal, too, only the list
cru sessions --json       for programs
cru sessions --tree       the turns of the current conversation, and what was forked from it
cru sessions open NAME    finish its last turn, or open a chat on it
cru sessions fork NAME [TURN] [NEW]   copy it, up to turn TURN
cru sessions rename OLD NEW
cru sessions delete NAME  on a terminal it asks
"""
MOST_WORDS = 20
VERBS = {"open": "NAME", "fork": "NAME [TURN] [NEW]", "rename": "OLD NEW", "delete": "NAME"}
"""What acts on one conversation, with the names behind it; behind a flag (`cru sessions --list delete`) it is a word to search for."""


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    if words and words[0] in VERBS:
        return _run_verb(parsed, words)
    if words and words[0] in ("list", "search"):
        words = (*(["--list"] if words[0] == "list" else []), *words[1:])
    args = CommandArguments(
        "sessions", words, help=HELP, switches=("--all", "--json", "--list", "--tree"), most=MOST_WORDS
    )
    if args.show_help():
        return 0
    home = open_home(parsed)
    if args.has("--tree"):
        return _show_tree(parsed, home, args)
    rows, elsewhere = _rows(home, args)
    if rows and not args.has("--json") and not args.has("--list") and _can_browse():
        return _browse(parsed, home, args)
    if args.has("--json") and rows:
        _show_json(rows)
        return 0
    _show_list(rows, args)
    if elsewhere:
        say(f"cru: {elsewhere} more elsewhere: cru sessions --all")
    return ExitStatus.DONE if rows or not args.words else ExitStatus.ERROR


def _run_verb(parsed: Parsed, words: tuple[str, ...]) -> int:
    """`cru sessions open|fork|rename|delete`. Raises UsageProblem, and what the flags raise that do the same."""
    verb, usage = words[0], VERBS[words[0]]
    args = CommandArguments("sessions", words, help=HELP, most=MOST_WORDS)
    if args.show_help():
        return 0
    names = args.words[1:]
    if not len(usage.partition(" [")[0].split()) <= len(names) <= len(usage.split()):
        raise args.wrong(f"`cru sessions {verb}` needs {usage}")
    home = open_home(parsed)
    store = home.find(names[0])
    name = store.name
    store.close()
    if verb == "open":
        return open_conversation(parsed, home, name)
    if verb == "fork":
        show(describe_fork(name, fork_conversation(home, name, *parse_fork(names[1:]))))
    elif verb == "rename":
        rename_other(FlagRun(parsed, home, name), name, names[1])
    else:
        delete_other(FlagRun(parsed, home, name), name)
    return 0


def _rows(home: Home, args: CommandArguments) -> tuple[list[SessionRow], int]:
    """The conversations that are asked for, and how many more of them are in other projects."""
    matching = [row for row in read_rows(home) if row.matches(args.words)]
    rows = [row for row in matching if args.has("--all") or is_here(row, home)]
    return rows, len(matching) - len(rows)


def _can_browse() -> bool:
    return os.isatty(0) and os.isatty(1) and os.isatty(2) and not is_dumb_terminal()


def _browse(parsed: Parsed, home: Home, args: CommandArguments) -> int:
    """Let a person choose one, and open the chat on it. Raises OSError if the terminal has gone."""
    from cru.faces.cli.sessions.browser import SessionBrowser

    def archive(name: str) -> None:
        archive_other(FlagRun(parsed, home, name), name)

    fd = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        with input_mode(fd, "kept"):
            name = run_interruptible(SessionBrowser(fd, home, lambda: _rows(home, args)[0], archive).choose())
    finally:
        os.close(fd)
    if not name:
        return 0
    kept = tuple(item for item in parsed.flags if item[0].name not in ("switch-context", "transient-context"))
    return run(Parsed((*kept, (find("-c")[0], (name,))), ()))


def _show_tree(parsed: Parsed, home: Home, args: CommandArguments) -> int:
    if args.words or args.has("--all") or args.has("--json"):
        raise args.wrong("`cru sessions --tree` takes nothing else")
    name = context_name(parsed, home)
    if name != home.current:
        home.find(name).close()
    show(render_tree(build_tree(home.path, name), name))
    return 0


def _show_json(rows: Sequence[SessionRow]) -> None:
    for row in rows:
        fields = {
            "name": row.name, "project": row.project or None, "used": int(row.used) or None, "first": row.first, "messages": row.messages,
            "is_exact": row.is_exact, "bytes": row.size, "unfinished": row.unfinished, "held": row.held or None, "current": row.is_current,
            "problem": row.problem or None,
        }  # fmt: skip
        show(msgspec.json.encode(fields).decode())


def _show_list(rows: Sequence[SessionRow], args: CommandArguments) -> None:
    with_projects = args.has("--all")
    if not rows:
        what = f"no conversation has these words: {', '.join(args.words)}" if args.words else "no conversation"
        say(f"cru: {what}{'' if with_projects else '; `cru sessions --all` lists those of all projects'}")
    width = max((len(row.name) for row in rows), default=0)
    for row in rows:
        mark, state = "*" if row.is_current else " ", f"  [{row.state()}]" if row.state() else ""
        line = f"{mark} {row.name:<{width}}  {when_text(row.used):<12}  {row.counted()}{state}  {row.first}".rstrip()
        show(cut_to_columns(line, 200))
        if with_projects and row.project:
            show(f"    {visible(row.project)}")
