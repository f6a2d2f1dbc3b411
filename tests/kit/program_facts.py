"""`python -m tests.kit.program_facts --write | --check`: make facts.json, which cru reads, of the TOML files beside it.

It must not import what reads facts.json: the file may be damaged, or lack a field that is new.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from cru.core.guard.shell.program_facts import FACTS, CommandFacts, ProgramFacts

FOLDER = Path(FACTS).parent


class FactsError(Exception):
    """A TOML file is wrong; names the file."""


def read_sources() -> dict[str, dict[str, Any]]:
    """Return the content of each TOML file by its name."""
    sources = {}
    for file in sorted(FOLDER.glob("*.toml")):
        try:
            sources[file.name] = tomllib.loads(file.read_text())
        except tomllib.TOMLDecodeError as error:
            raise FactsError(f"{file.name}: {error}") from error
    return sources


def build() -> str:
    """Return the JSON of all files, once it has the right form. Raises FactsError."""
    facts: dict[str, Any] = {"groups": {}, "commands": {}}
    for name, source in read_sources().items():
        for part, content in source.items():
            merged = facts.setdefault(part, {})
            if part == "commands":
                _add_commands(name, merged, content)
            else:
                _add(f"{name}: {part}", merged, content if part == "groups" else _split(content))
    try:
        read = msgspec.convert(facts, ProgramFacts)
    except msgspec.ValidationError as error:
        raise FactsError(f"{FOLDER}: {error}") from error
    return msgspec.json.encode(read, order="deterministic").decode() + "\n"


def _add_commands(file: str, commands: dict[str, Any], content: dict[str, Any]) -> None:
    """Add the facts of each command: `git diff|show` are two."""
    for key, fields in content.items():
        try:
            msgspec.convert(fields, CommandFacts)
        except msgspec.ValidationError as error:
            raise FactsError(f"{file}: {key}: {error}") from error
        *before, last = key.split(" ")
        for name in last.split("|"):
            command = " ".join((*before, name))
            _add(f"{file}: {command}", commands.setdefault(command, {}), fields)


def _add(place: str, facts: dict[str, Any], added: dict[str, Any]) -> None:
    if twice := facts.keys() & added.keys():
        raise FactsError(f"{place}: given twice: {', '.join(sorted(twice))}")
    facts |= added


def _split(value: Any) -> Any:
    return {key: _split(inner) for key, inner in value.items()} if isinstance(value, dict) else value.split()


def read_meanings() -> dict[str, str]:
    """Return the comment above each list of kinds.toml and variables.toml, by the list's name."""
    meanings = {}
    for file in ("kinds.toml", "variables.toml"):
        for comment, name in re.findall(r"((?:^#.*\n)+)\[?([\w.]+)", (FOLDER / file).read_text(), re.MULTILINE):
            meanings[name.rpartition(".")[2] if name.startswith("variables.") else name.partition(".")[0]] = " ".join(
                line.removeprefix("#").strip() for line in comment.splitlines()
            )
    return meanings


def main(argv: Sequence[str]) -> int:
    """Write facts.json, or only report that it has drifted."""
    if list(argv) not in (["--write"], ["--check"]):
        print("usage: python -m tests.kit.program_facts --write | --check", file=sys.stderr)
        return 2
    try:
        new = build()
    except FactsError as error:
        print(error, file=sys.stderr)
        return 1
    file = Path(FACTS)
    if file.exists() and file.read_text() == new:
        return 0
    is_written = argv[0] == "--write"
    print(f"{file.name}: {'written' if is_written else 'drifted; run `make docs`'}")
    if is_written:
        file.write_text(new)
    return 0 if is_written else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
