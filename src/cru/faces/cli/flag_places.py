"""Flags where other agents have them: options behind the prompt, and words that are a command of the chat."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

from cru.core.base.config.closest import distance
from cru.core.base.config.secret import holds_secret
from cru.core.command_table import COMMANDS, SHELL_PACKAGE, load_target
from cru.faces.cli.flags import (
    BEFORE_COMMANDS,
    BY_NAME,
    Flag,
    Parsed,
    UsageProblem,
    check_text,
    find,
    flags_before,
    parse,
    take_values,
)

_UPDATE = "update cru as you installed it: pip, in its environment"
NOT_COMMANDS = {
    "version": "did you mean: cru --version",
    "update": _UPDATE,
    "upgrade": _UPDATE,
    "exec": "`cru PROMPT` asks once and exits",
}
"""Commands of other agents for which cru has something that is no command."""


def take_options(parsed: Parsed) -> Parsed:
    """Take the options out of the end of the prompt, by their long names. What else looks like a flag is text: a prompt may be about flags.
    Raises UsageProblem."""
    if parsed.literal or not parsed.words or ((row := COMMANDS.get(parsed.words[0])) is not None and row.shell):
        return parsed
    words, behind = _options_behind(parsed.words)
    return Parsed((*parsed.flags, *behind), tuple(words))


def _options_behind(words: Sequence[str]) -> tuple[Sequence[str], list[tuple[Flag, tuple[str, ...]]]]:
    """Split off the options behind the prompt. An option that lacks its value is text."""
    end = words.index("--") if "--" in words else len(words)
    at = 1
    while at < end:
        if _option(words[at]) is None:
            at += 1
            continue
        flags, rest = [], list(words[at:end])
        while rest and (flag := _option(rest[0])) is not None and (len(rest) > len(flag.args) or "=" in rest[0]):
            _, attached = find(rest.pop(0))
            values = take_values(flag, attached, rest)
            check_text(flag, values)
            flags.append((flag, tuple(values)))
        if not rest and end == len(words):
            return words[:at], flags
        at = max(at + 1, end - len(rest))
    return words, []


def _option(word: str) -> Flag | None:
    flag = BY_NAME.get(word.partition("=")[0]) if word.startswith("--") else None
    return flag if flag is not None and flag.kind == "option" and flag.name != "json-config" else None


def is_chat_command(words: Sequence[str]) -> bool:
    """Whether these words are a command that the chat's code runs, with what belongs to it."""
    row = COMMANDS.get(words[0])
    if row is None or row.shell or len(words) == 1:
        return row is not None and not row.shell
    return bool(row.shape) and all(words) and re.fullmatch(row.shape, " ".join(words[1:])) is not None


def expand_command(parsed: Parsed) -> None:
    """Put what a command of the chat is in the shell in its place: a flag (`cru new`), or a text (`/undo 2`). Other words
    stay as they are. Raises UsageProblem if they can only be a command, which does not work here."""
    row, words = COMMANDS[parsed.words[0]], parsed.words[1:]
    if not is_chat_command(parsed.words):
        if not row.shell and words[0].startswith("--") and all(word.startswith("-") or " " in word for word in words):
            raise UsageProblem(
                f"`cru {parsed.words[0]}` does not take {words[0]}",
                f"`cru help {row.name}` says what it takes\n{as_prompt(parsed.words)}",
            )
        return
    if words and row.only == "chat" and not row.option:
        raise UsageProblem(f"`cru {row.name}` works in the chat only", f"{row.instead}\n{as_prompt(parsed.words)}")
    if words and row.named:
        return
    if row.option:
        parsed.flags, parsed.words = (*parsed.flags, *parse([*row.option.split(), *words]).flags), ()
    else:
        parsed.words = (f"/{row.name}", *words)


def run_named(parsed: Parsed) -> int | None:
    """Run `cru NAME WORD` of a command that has a function for it. Return its exit status; None: the words are a prompt."""
    words = parsed.words
    if not is_chat_command(words):
        return None
    run: Callable[[Parsed, str], int] = load_target(f"{SHELL_PACKAGE}{COMMANDS[words[0]].named}")
    return run(parsed, words[1])


def command_or_prompt(near: Sequence[str], words: Sequence[str]) -> str:
    """Return a hint: the command that was probably meant, and what to type if the words were meant for the model."""
    return f"did you mean: {shlex.join(('cru', *near))}\n{as_prompt(words)}"


def as_prompt(words: Sequence[str]) -> str:
    """Return a hint: what to type if the words were meant for the model."""
    return f"as a prompt: {shlex.join(('cru', '--', *words))}"


def refuse_misprint(words: Sequence[str]) -> None:
    """Raises UsageProblem if the first of these words, alone on a terminal or before a verb of a command, is nearly a command."""
    if hint := _elsewhere(words):
        raise UsageProblem(f"there is no command {words[0]}", f"{hint}\n{as_prompt(words)}")
    if near := nearest_command(words):
        raise UsageProblem(f"there is no command {words[0]}", command_or_prompt(near, words))


def _elsewhere(words: Sequence[str]) -> str:
    """Return what to type in place of a command of another agent that none of cru's commands is; "" if it may be a sentence."""
    if words[0] != "exec" or len(words) == 1:
        return NOT_COMMANDS.get(words[0], "") if len(words) == 1 else ""
    if words[1] == "resume":
        return "did you mean: cru resume"
    if len(words) == 2 and " " in words[1]:
        return f"did you mean: {shlex.join(('cru', words[1]))}"
    return NOT_COMMANDS["exec"] if words[1].startswith("-") else ""


def nearest_command(words: Sequence[str]) -> tuple[str, ...]:
    """Return the line with the command that the first word nearly is, or that another agent calls so; () if it is a prompt."""
    word = words[0].casefold()
    if word.startswith("/"):
        return ()
    rows = {name: row for name, row in COMMANDS.items() if len(words) == 1 or words[1] in row.verbs}
    for name, row in rows.items():
        is_foreign = word in row.foreign and (
            len(words) == 1 or word not in row.verbs
        )  # `list open files` is a sentence
        if is_foreign or distance(word, name) <= 1:
            return (name, *([word] if word in row.verbs else []), *words[1:])
    return ()


def refuse_before_command(parsed: Parsed) -> None:
    """Flags that no management command minds. Raises UsageProblem."""
    known = flags_before(COMMANDS[parsed.words[0]])
    wrong = next((flag for flag, _ in parsed.flags if flag.name not in known), None)
    if wrong is None:
        return
    public = [(flag, values) for flag, values in parsed.flags if flag.name != "set" or not holds_secret(values[0])]
    flags = [word for flag, values in public for word in (flag.short or flag.long, *values)]
    prompt = shlex.join(("cru", *flags, "--", *parsed.words))
    own = COMMANDS[parsed.words[0]].flags
    if all(flag.name in (*own, *BEFORE_COMMANDS) for flag, _ in parsed.flags):
        before = [
            word for flag, values in public if flag.name not in own for word in (flag.short or flag.long, *values)
        ]
        behind = [word for flag, values in public if flag.name in own for word in (flag.long, *values)]
        raise UsageProblem(
            f"{wrong.short or wrong.long} stands behind the command `{parsed.words[0]}`",
            f"did you mean: {shlex.join(('cru', *before, *parsed.words, *behind))}",
        )
    raise UsageProblem(
        f"{wrong.short or wrong.long} does not go with the command `{parsed.words[0]}`",
        f"before it stand only --home, -c, -C and -v\nas a prompt: {prompt}",
    )
