"""Commands: `/name args` where a prompt could stand. A person asks for them; one may show text, change things, or give a prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterable
from functools import cached_property
from typing import Any, Protocol

from msgspec import Struct

from cru.core.turn import UnknownCommand

# A first word with one slash, in front. `/usr/bin is missing` and ` /leading space` are prompts.
_SHAPE = r"/([^\W\d_][\w-]*(?::[\w.-]+)*)(?:\s+(.*))?\Z"

PROMPT_HINT = "\na space before the slash makes it a prompt"


class CommandResult(Struct, frozen=True):
    """What a command leaves.

    message: text for the person
    prompt: for the model; "": none
    model: holds for that prompt only
    is_typed: the prompt is what was typed; `Command.expand` makes the model's text of it once handlers have accepted it
    """

    message: str = ""
    prompt: str = ""
    model: str = ""
    is_typed: bool = False


class Command(Struct, frozen=True):
    """One command. Errors are CruErrors.

    run: gets what stands behind its name, as typed
    hint: shows the arguments: `[text]`
    reads: it changes nothing of the context: it needs no lock and works while another process holds it
    at_once: it does not wait for what runs
    where: file and line, for messages
    whose: in words, if it is none of a plugin
    complete: what the Tab key offers for the arguments that are typed so far; None: nothing
    expand: what the model reads in place of the name and these arguments; None: what was typed is no prompt
    foreign: names that other agents have for it; they are suggested
    is_hidden: no list has it, because it only says where it works
    """

    name: str
    about: str
    run: Callable[[str], Coroutine[Any, Any, CommandResult]]
    owner: str = "cru"
    hint: str = ""
    reads: bool = False
    at_once: bool = False
    where: str = ""
    whose: str = ""
    complete: Callable[[str], Coroutine[Any, Any, list[str]]] | None = None
    expand: Callable[[str], Coroutine[Any, Any, str]] | None = None
    foreign: tuple[str, ...] = ()
    is_hidden: bool = False


class CommandSource(Protocol):
    """Somebody whose commands come and go."""

    def commands(self) -> Iterable[Command]:
        """Those that are known now."""
        ...

    def find(self, name: str) -> Command | None: ...


class Commands:
    """All commands of a session, by name. `first` gives those that are there from the start, when one is first asked for."""

    def __init__(self, first: Callable[[], Iterable[Command]] = tuple) -> None:
        self._first = first
        self.sources: list[CommandSource] = []

    @cached_property
    def _all(self) -> dict[str, Command]:
        return {command.name: command for command in self._first()}

    def add(self, command: Command) -> str:
        """The problem ("" = none): a name that is taken stays with whom it belongs to."""
        problem = self.problem_with(command.name)
        if problem:
            return f"/{command.name} of {command.owner} is left out: {problem}"
        self._all[command.name] = command
        return ""

    def problem_with(self, name: str) -> str:
        """Return why no command can be added under this name, "" if one can."""
        taken = self._all.get(name)
        if taken is not None:
            return f"{taken.owner} has a command of that name"
        return "" if split_command(f"/{name}") == (name, "") else "a command's name is letters, digits, - and _"

    def remove(self, name: str, owner: str) -> None:
        """Take one command of an owner away, if it is there."""
        if name in self._all and self._all[name].owner == owner:
            del self._all[name]

    def drop(self, owner: str) -> int:
        """Take away everything of an owner; how many commands."""
        names = [name for name, command in self._all.items() if command.owner == owner]
        for name in names:
            del self._all[name]
        return len(names)

    def all(self) -> tuple[Command, ...]:
        """Return those that lists have, in alphabetical order."""
        every = {command.name: command for source in self.sources for command in source.commands()} | self._all
        return tuple(every[name] for name in sorted(every) if not every[name].is_hidden)

    def only_reads(self, name: str) -> bool:
        """Whether a command of that name is there and changes nothing."""
        return name in self._all and self._all[name].reads

    def at_once(self, name: str) -> bool:
        """Whether a command of that name is there and does not wait for what runs."""
        return name in self._all and self._all[name].at_once

    def find(self, name: str, typed: bool = False) -> Command:
        """Raises UnknownCommand with the closest name; `typed` says that it may have been meant for the model."""
        command = self._all.get(name) or next(filter(None, (source.find(name) for source in self.sources)), None)
        if command is None:
            from cru.core.base.config.closest import closest

            known = self.all()
            same = (command.name for command in known if name in command.foreign)
            near = next(same, None) or closest(name, (command.name for command in known))
            hint = f"did you mean `/{near}`?" if near else "`/help` lists all"
            raise UnknownCommand(f"unknown command `/{name}`", f"{hint}{PROMPT_HINT if typed else ''}")
        return command


async def expand_command(commands: Commands, text: str) -> str:
    """Return what the model reads in place of a command that is a prompt; any other text stays as it is. Raises UnknownCommand, and what
    the command raises."""
    named = split_command(text)
    if named is None:
        return text
    name, arguments = named
    command = commands.find(name, typed=True)
    return text if command.expand is None else await command.expand(arguments)


def split_command(text: str) -> tuple[str, str] | None:
    """(name, the rest) of a text that is a command; None if it is a prompt."""
    match = re.match(_SHAPE, text.rstrip(), re.DOTALL) if text.startswith("/") else None
    return None if match is None else (match[1], match[2] or "")
