"""The form of what cru knows of programs, subcommands and variables, and how it is read.

The sources are the TOML files in `facts/`. `make docs` checks them and writes them to facts.json, which is what cru reads: parsing TOML
would take 40 times as long. Whatever is wrong with that file raises UnreadableFacts, since without facts no command may be judged.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Literal

import msgspec
from msgspec import Struct

from cru.core.base.values.errors import CruError

FACTS = os.path.join(os.path.dirname(__file__), "facts", "facts.json")


class UnreadableFacts(CruError):
    """facts.json is missing or damaged."""


class CommandFacts(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is known of the options of a program (`tar`), or of a subcommand (`git log`, `docker compose up`).

    docs/command-facts.md has the meaning of each field; the options in a text are separated by blanks.
    """

    other_names: str = ""
    style: Literal["", "words", "letters", "dashes", "full"] = ""
    operands: Literal["", "awk-script", "files-outside", "processes", "sed-script", "variables", "written-files"] = ""
    harmless: str | None = None
    harmless_parts: dict[str, str] = {}
    runs: str = ""
    writes: str = ""
    sends: str = ""
    running: str = ""
    valued: str | None = None
    letters: dict[str, str] = {}
    letters_with_value: str = ""

    @property
    def does_more(self) -> bool:
        """Whether options, subcommands or operands are known that do more than the program's name says."""
        others = self.runs or self.writes or self.sends or self.running or self.style or self.operands
        return bool(others) or self.valued is not None


class ProgramKinds(Struct, frozen=True, forbid_unknown_fields=True):
    """Names of programs and subcommands by what they do with their words; kinds.toml says what each list means."""

    keywords: frozenset[str]
    wrappers: frozenset[str]
    shells: frozenset[str]
    variable_setters: frozenset[str]
    interpreters: frozenset[str]
    code_runners: frozenset[str]
    runners: frozenset[str]
    subcommand_programs: frozenset[str]
    running_words: frozenset[str]
    running_subcommands: frozenset[str]
    running_subcommands_of: dict[str, frozenset[str]]
    grouping_subcommands: frozenset[str]
    runs_elsewhere: frozenset[str]
    runs_scripts: frozenset[str]
    running_options: frozenset[str]
    plain_programs: frozenset[str]
    operand_programs: frozenset[str]
    quiet_programs: frozenset[str]
    data_programs: frozenset[str]
    literal_programs: frozenset[str]
    data_subcommands: dict[str, frozenset[str]]
    literal_subcommands: dict[str, frozenset[str]]
    groups_of: dict[str, frozenset[str]]
    data_in_groups: frozenset[str]
    created_in_groups: dict[str, frozenset[str]]
    movers: frozenset[str]
    copiers: frozenset[str]
    readers: frozenset[str]
    git_readers: frozenset[str]
    name_readers: frozenset[str]
    name_writers: frozenset[str]
    git_paths: frozenset[str]
    git_files: frozenset[str]
    reading_words: dict[str, frozenset[str]]
    reading_options: frozenset[str]
    safe_subcommands: dict[str, frozenset[str]]
    proposed_prefixes: dict[str, frozenset[str]]


class VariableFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """Names of variables; variables.toml says what each list means. harmless: pattern of the values → variables"""

    code: frozenset[str]
    code_prefixes: frozenset[str]
    computed: frozenset[str]
    switches: frozenset[str]
    switch_beginnings: frozenset[str]
    switch_endings: frozenset[str]
    harmless: dict[str, frozenset[str]]


class ProjectFileFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """Files of a project that something runs or obeys later: reason, or program → names."""

    asked: dict[str, frozenset[str]]
    noted: dict[str, frozenset[str]]


class ProgramFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """All facts. groups: options that several commands share, as `@name`; commands: by a program and perhaps its subcommands"""

    groups: dict[str, str]
    commands: dict[str, CommandFacts]
    kinds: ProgramKinds
    variables: VariableFacts
    project_files: ProjectFileFacts


def read_facts(file: str) -> ProgramFacts:
    """Return the facts that a file has. Raises UnreadableFacts, which names the file."""
    try:
        with open(file, "rb") as stream:
            return msgspec.json.decode(stream.read(), type=ProgramFacts)
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise UnreadableFacts(
            f"cru judges no commands, since it cannot read what it knows of programs\n{file}: {error}\nInstall cru again"
        ) from error


@cache
def load_facts() -> ProgramFacts:
    """Return the facts that come with cru."""
    return read_facts(FACTS)
