"""`cru help`: all flags, the letters of chibi, all commands, or one flag or command. The overview is in flags.py."""

from __future__ import annotations

import shlex

from cru.core.command_table import COMMANDS, FEATURES, GROUPS, CommandRow
from cru.faces.cli.flags import FLAGS, LETTERS, MORE, Parsed, UsageProblem, columns, find, flag_row, overview

TYPE_CHECKING = False  # see command_table.py
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def all_flags() -> str:
    return f"{columns([flag_row(flag) for flag in FLAGS])}\n\n`cru help chibi` lists the letters that some of them have, too."


def all_letters() -> str:
    return columns([flag_row(flag, LETTERS) for flag in FLAGS if flag.short])


def all_commands() -> str:
    """Return every command with a line each, group by group."""
    missing = {row.name: feature.name for feature in FEATURES if not feature.is_there() for row in feature.commands}
    width = max(map(len, COMMANDS))
    texts = []
    for group in GROUPS:
        own = [(name.ljust(width), row) for name, row in COMMANDS.items() if row.group == group]
        texts.append(f"{group}:\n{columns([(name, f'{row.about}{_note(row, missing)}') for name, row in own])}")
    return "\n\n".join(texts)


def _note(row: CommandRow, missing: dict[str, str]) -> str:
    """Return where a command works, if it does not work everywhere."""
    if row.name in missing:
        return f" (needs the feature {missing[row.name]}, which this cru does not have)"
    return f" ({row.only} only)" if row.only and not row.option else ""


TOPICS = {"": overview, "flags": all_flags, "chibi": all_letters, "commands": all_commands}


def command(parsed: Parsed, words: Sequence[str]) -> int:
    """`cru help [flags | chibi | commands | COMMAND | FLAG]`; words behind that change nothing. Raises UsageProblem."""
    topic = words[0] if words and words[0] not in ("-h", "--help") else ""
    row = COMMANDS.get(topic.removeprefix("/"))
    if row is not None and row.shell and row.name not in ("help", "completion"):
        return row.run(parsed, ("--help",))
    print(_command_text(row) if row is not None else _topic_text(topic, words))
    return 0


def help_beside(parsed: Parsed, show: Callable[[Parsed, str], int]) -> int:
    """Answer --help: with the help of the command that is the only word, else with the overview. Return the exit status."""
    if parsed.literal or len(parsed.words) != 1 or parsed.words[0] not in COMMANDS:
        return show(parsed, overview())
    return command(parsed, parsed.words)


def _topic_text(topic: str, words: Sequence[str]) -> str:
    if topic.startswith("-"):
        return columns([flag_row(find(topic)[0], LETTERS)])
    if topic not in TOPICS:
        raise _unknown(topic.removeprefix("/"), words)
    return TOPICS[topic]()


def _command_text(row: CommandRow) -> str:
    words = row.hint or f"[{' | '.join(row.verbs)}]" * bool(row.verbs)
    is_everywhere = not row.only or row.option
    where = f"in the chat: /{row.name}" if is_everywhere else f"works in the {row.only} only: {row.instead}"
    return (
        f"{'cru ' if is_everywhere or row.only == 'shell' else '/'}{row.name} {words}".rstrip()
        + f"\n  {row.about}\n{where}"
    )


def _unknown(name: str, words: Sequence[str]) -> UsageProblem:
    from cru.core.base.config.closest import closest

    foreign = (row.name for row in COMMANDS.values() if name in row.foreign)
    near = next(foreign, None) or closest(name, (*COMMANDS, *filter(None, TOPICS)))
    prompt = f"as a prompt: {shlex.join(('cru', '--', 'help', *words))}"
    names = overview().split("\n\n")[1]
    return UsageProblem(
        f"there is no command {name}", f"{f'did you mean: cru help {near}' if near else MORE}\n{prompt}\n{names}"
    )
