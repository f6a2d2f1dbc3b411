"""What `cru --help` and `cru help` print: an overview of one screen, and behind it every flag and every command."""

from __future__ import annotations

from cru.faces.cli.flags import CHAT_COMMANDS, COMMANDS, FLAGS, Flag, Parsed, UsageProblem

TYPE_CHECKING = False  # see flags.py
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

WIDTH = 79
GROUPS = {
    "start": "doctor login logout models model mode trust completion",
    "conversation": "new sessions resume fork tree rename clear compact export copy exit quit pause",
    "the answer": "status context cost trace diff undo redo history stop",
    "rules": "permissions hooks config",
    "tools": "tools mcp plugin view theme lua fsm",
    "more work": "init agents tasks batch worker fleet run-item vault oq",
}
"""Every command under what people do with it."""
COMMON = (
    "--model", "--mode", "-C", "-c", "-s", "--attach", "--resume", "--no-session", "--json", "--no-sandbox", "-v"
)  # fmt: skip
"""The flags of the overview."""
USAGE = """\
cru [FLAGS] [PROMPT…] [OPTIONS]   ask; the answer goes to standard output
… | cru [FLAGS] [PROMPT…]         the piped text follows the prompt
cru                               on a terminal: a chat
cru COMMAND …                     in the chat: /COMMAND …
cru -- PROMPT…                    everything after -- is the prompt
"""
MORE = "`cru help COMMAND` explains one, `cru help commands` and `cru help flags` list all."


def overview() -> str:
    """Return what fits on one screen."""
    groups = [line for title, names in GROUPS.items() for line in _wrapped(title, names.split())]
    flags = _columns(_row(flag) for flag in FLAGS if flag.long in COMMON or flag.short in COMMON)
    return "\n".join((USAGE, "Commands, by what they are about:", *groups, "", "Flags:", flags, "", MORE))


def _wrapped(title: str, names: Sequence[str]) -> Iterator[str]:
    """The names behind the title of their group, in lines that are not too long."""
    width = max(map(len, GROUPS)) + 2
    line = f"  {title:<{width}}"
    for name in names:
        if len(line) + len(name) > WIDTH:
            yield line.rstrip()
            line = " " * (width + 2)
        line += f"{name} "
    yield line.rstrip()


def all_flags() -> str:
    return _columns(map(_row, FLAGS))


def all_commands() -> str:
    """Return every command with a line each, in alphabetical order."""
    from cru.core.commands.builtin import TABLE

    about = {row.name: row.about for row in TABLE} | {name: command.help for name, command in COMMANDS.items()}
    return _columns(sorted(about.items()))


TOPICS = {"flags": all_flags, "commands": all_commands}


def command(parsed: Parsed, words: Sequence[str]) -> int:
    """`cru help [flags | commands | COMMAND]`. Raises UsageProblem."""
    if len(words) > 1:
        raise UsageProblem("help takes one word", MORE)
    topic = words[0].removeprefix("/") if words else ""
    if topic in COMMANDS and topic != "help":
        return COMMANDS[topic].run(parsed, ("--help",))
    if topic and topic not in TOPICS and topic not in CHAT_COMMANDS:
        raise UsageProblem(f"there is no command {topic}", MORE)
    print(_command_text(topic) if topic in CHAT_COMMANDS else TOPICS.get(topic, overview)())
    return 0


def _command_text(name: str) -> str:
    from cru.core.commands.builtin import TABLE

    row = next(row for row in TABLE if row.name == name)
    return f"cru {row.name} {row.hint}".rstrip() + f"\n  {row.about}\nin the chat: /{row.name}"


def _row(flag: Flag) -> tuple[str, str]:
    names = (flag.short, " ".join((flag.long, *flag.args)))
    return ", ".join(filter(None, names)), flag.help


def _columns(rows: Iterable[tuple[str, str]]) -> str:
    rows = list(rows)
    width = max(len(left) for left, _ in rows)
    return "\n".join(f"  {left:<{width}}  {text}" for left, text in rows)
