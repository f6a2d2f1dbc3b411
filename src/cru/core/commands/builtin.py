"""The table of built-in commands. Their code is loaded when one is used, and the table when the first command is typed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial

from msgspec.structs import replace

from cru.core.commands.context import CommandContext
from cru.core.commands.errors import BadCommand
from cru.core.feature_table import FEATURES, PACKAGE, load_target
from cru.core.turn.commands import Command, CommandResult, CommandRow

CommandFunction = Callable[[CommandContext, str], Awaitable[CommandResult]]


TASKS_HINT = "[cancel id]"
PERMISSIONS_HINT = "[test tool detail | revoke rule]"
PLUGIN_HINT = "[list | reload [name] | enable name | disable name]"
_ROWS = (
    CommandRow("agents", "the agents that may work below the main one (cru agents)", "tasks:agents", reads=True),
    CommandRow("clear", "start the conversation from nothing; the log keeps every line (cru -a)", "session:clear"),
    CommandRow(
        "compact", "replace the conversation by a summary that the model writes (cru -z); words say what it is to heed", "session:compact",
        "[words]",
    ),
    CommandRow(
        "config", "the settings that something sets, and where; with a key those below it", "conversation:config", "[key]", reads=True,
    ),
    CommandRow("context", "what the next request would hold, by parts, in tokens", "conversation:context", reads=True),
    CommandRow("copy", "put the last answer into the clipboard", "conversation:copy", reads=True),
    CommandRow("cost", "what the last prompt, this run and this context have used: requests, tokens, US dollars", "cost:cost", reads=True),
    CommandRow("diff", "what the last turn changed in files; the last N turns, or all of them", "undo:diff", "[N | all]", reads=True),
    CommandRow("exit", "leave the chat; the conversation is kept", "session:leave", reads=True),
    CommandRow("export", "write the conversation to a new Markdown file", "conversation:export", "[file]", reads=True),
    CommandRow(
        "fork", "a new context that begins as a copy of this one, up to turn TURN and with it (cru fork)", "forks:make_fork",
        "[TURN] [NAME]",
    ),
    CommandRow("help", "all commands, or one", "session:help", "[command]", reads=True),
    CommandRow("init", "have the model write AGENTS.md for this project", "conversation:init"),
    CommandRow("login", "keep the key of a provider or of a server at a URL (cru login)", "session:login", "[provider]", reads=True),
    CommandRow(
        "mode", "what may be done without asking; with a name: another mode, for this session", "mode:mode", "[name]", at_once=True,
        complete="mode:complete",
    ),
    CommandRow(
        "model", "which model answers, and which there are; with a name: another one, kept for this context (--all: for all)",
        "model:model", "[name [--all] | list [words]]", reads=True, complete="model:complete",
    ),
    CommandRow("new", "go on in a new conversation; this one is kept (cru -c new)", "session:new", "[name]", reads=True),
    CommandRow("pause", "hand control to the shell until `fg`, as Ctrl-Z does", "session:pause", reads=True),
    CommandRow(
        "permissions", "every rule in force; what would happen to a call; take back an answer (cru permissions)",
        "permissions:permissions", PERMISSIONS_HINT, reads=True, at_once=True,
    ),
    CommandRow("plugin", "what plugins are there; load one anew, or switch it for this session", "plugins:plugin", PLUGIN_HINT),
    CommandRow("quit", "the same as /exit", "session:leave", reads=True),
    CommandRow("redo", "bring again what the last /undo took back, until the next prompt", "undo:redo", "[--leave]"),
    CommandRow("rename", "give this conversation another name (cru -r)", "session:rename", "name", reads=True),
    CommandRow(
        "resume", "go on with the turn that was left in its middle (cru --resume); with a name, in that conversation (cru -c)",
        "session:resume", "[conversation]", reads=True,
    ),
    CommandRow("status", "where this session works, with what, and what it may do", "conversation:status", reads=True),
    CommandRow("stop", "end what runs and what waits; loops of plugins end too", "session:stop", at_once=True),
    CommandRow("tasks", "what was started beside the conversation; end one (cru tasks)", "tasks:tasks", TASKS_HINT, at_once=True),
    CommandRow(
        "theme", "the colours of the chat: all themes; with a name: another one, for this chat", "session:theme", "[name]", reads=True,
        at_once=True, complete="session:complete_theme",
    ),
    CommandRow("tools", "what the model may call, and whose it is", "session:tools", reads=True),
    CommandRow("trace", "what happened in the last turn, or in turn N (cru trace)", "session:trace", "[N]", reads=True),
    CommandRow("tree", "the turns of this conversation, and what was forked from it (cru sessions --tree)", "forks:tree", reads=True),
    CommandRow(
        "undo", "take the last turn back, or the last N: its messages and its files (cru history)", "undo:undo", "[N] [--leave]",
    ),
    CommandRow("view", "what plugins have to look at: all of them; with a name: open it", "views:view", "[name]", reads=True),
)  # fmt: skip


def _in(package: str, row: CommandRow) -> CommandRow:
    """The row with full targets."""
    return replace(row, work=f"{package}.{row.work}", complete=row.complete and f"{package}.{row.complete}")


_FEATURES = [(f"{PACKAGE}{feature.name}", row) for feature in FEATURES for row in feature.commands]
TABLE = tuple(
    sorted(
        (_in(package, row) for package, row in (*((__package__, row) for row in _ROWS), *_FEATURES)),
        key=lambda row: row.name,
    )
)


def built_in(context: CommandContext) -> Iterator[Command]:
    """The commands of a session."""
    for row in TABLE:
        run = partial(_run, context, row)
        complete = partial(_complete, context, row) if row.complete else None
        yield Command(row.name, row.about, run, hint=row.hint, reads=row.reads, at_once=row.at_once, complete=complete)
    yield from context.face.commands()


async def _complete(context: CommandContext, row: CommandRow, typed: str) -> list[str]:
    names: list[str] = await load_target(row.complete)(context, typed)
    return names


async def _run(context: CommandContext, row: CommandRow, words: str) -> CommandResult:
    """Raises BadCommand if words are given to a command that takes none, FeatureMissing."""
    if words and not row.hint:
        raise BadCommand(f"/{row.name} takes no words", f"`/{row.name}`: {row.about}")
    run: CommandFunction = load_target(row.work)
    return await run(context, words)
