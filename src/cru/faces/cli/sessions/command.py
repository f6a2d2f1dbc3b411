"""`cru sessions`: the conversations of a project or of all, listed, or looked through on a terminal (docs/contexts.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import say, show
from cru.faces.cli.flags import Parsed
from cru.faces.cli.run_options import context_name, open_home

if TYPE_CHECKING:
    from cru.contexts.home import Home
    from cru.faces.cli.sessions.rows import SessionRow

HELP = """\
cru sessions              the conversations of this project, the last one first
cru sessions WORDS…       those that have all these words in name, project, first prompt or last messages
cru sessions --all        those of all projects
cru sessions --json       for programs
cru sessions --tree       the turns of the current conversation, and what was forked from it
"""
MOST_WORDS = 20


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    args = CommandArguments("sessions", words, help=HELP, switches=("--all", "--json", "--tree"), most=MOST_WORDS)
    if args.show_help():
        return 0
    home = open_home(parsed)
    if args.has("--tree"):
        return _show_tree(parsed, home, args)
    from cru.faces.cli.sessions.rows import is_here, read_rows

    matching = [row for row in read_rows(home) if row.matches(args.words)]
    rows = [row for row in matching if args.has("--all") or is_here(row, home)]
    if args.has("--json"):
        _show_json(rows)
        return 0
    elsewhere = len(matching) - len(rows)
    _show_list(rows, args.has("--all"))
    if elsewhere:
        say(f"cru: {elsewhere} more elsewhere: cru sessions --all")
    return 0


def _show_tree(parsed: Parsed, home: Home, args: CommandArguments) -> int:
    if args.words or args.has("--all") or args.has("--json"):
        raise args.wrong("`cru sessions --tree` takes nothing else")
    from cru.engine.fork_tree import build_tree, render_tree

    name = context_name(parsed, home)
    if name != home.current:
        home.find(name).close()
    show(render_tree(build_tree(home.path, name), name))
    return 0


def _show_json(rows: Sequence[SessionRow]) -> None:
    import msgspec

    for row in rows:
        fields = {
            "name": row.name, "project": row.project or None, "used": int(row.used) or None, "first": row.first, "messages": row.messages,
            "is_exact": row.is_exact, "bytes": row.size, "unfinished": row.unfinished, "held": row.held or None, "current": row.is_current,
            "problem": row.problem or None,
        }  # fmt: skip
        show(msgspec.json.encode(fields).decode())


def _show_list(rows: Sequence[SessionRow], with_projects: bool) -> None:
    from cru.faces.cli.console import cut_to_columns
    from cru.faces.cli.sessions.rows import when_text
    from cru.values.visible import visible

    if not rows:
        say(
            "cru: no conversation; `cru sessions --all` lists those of all projects"
            if not with_projects
            else "cru: no conversation"
        )
    width = max((len(row.name) for row in rows), default=0)
    for row in rows:
        mark, state = "*" if row.is_current else " ", f"  [{row.state()}]" if row.state() else ""
        line = f"{mark} {row.name:<{width}}  {when_text(row.used):<12}  {row.counted()}{state}  {row.first}".rstrip()
        show(cut_to_columns(line, 200))
        if with_projects and row.project:
            show(f"    {visible(row.project)}")
