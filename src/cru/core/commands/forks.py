"""/fork and /tree."""

from __future__ import annotations

from cru.core.commands.context import CommandContext
from cru.core.commands.errors import BadCommand
from cru.core.turn.commands import CommandResult
from cru.core.undo.conversation import ForkReport, fork
from cru.core.undo.fork_tree import build_tree, render_tree


async def make_fork(context: CommandContext, words: str) -> CommandResult:
    """A new context that begins as a copy up to a turn. Raises BadCommand, NoSuchTurn, BadName, NameTaken."""
    turn, name = parse_fork(words.split())
    store = context.session.parts.store
    return CommandResult(describe_fork(store.name, fork(store, turn, name)))


def parse_fork(words: list[str]) -> tuple[int | None, str]:
    """The turn (None = the last one) and the name ("" = one after the context). Raises BadCommand."""
    rest = list(words)
    turn = int(rest.pop(0)) if rest and rest[0].isascii() and rest[0].isdigit() and len(rest[0]) < 10 else None
    if len(rest) > 1:
        raise BadCommand(f"/fork does not know what {rest[1]!r} is", "/fork [TURN] [NAME]; /tree shows the turns")
    return turn, rest[0] if rest else ""


def describe_fork(parent: str, report: ForkReport) -> str:
    """What a person is told."""
    lines = [
        f"{parent} is forked behind turn {report.turn}: {report.name}; `cru -c {report.name}` goes on there",
        *(f"not copied: {problem}" for problem in report.problems),
    ]
    return "\n".join(lines)


async def tree(context: CommandContext, _words: str) -> CommandResult:
    """The turns of this conversation, and what was forked from it. Raises StoreUnreadable."""
    store = context.session.parts.store
    return CommandResult(render_tree(build_tree(store.folder.parent.parent, store.name), store.name))
