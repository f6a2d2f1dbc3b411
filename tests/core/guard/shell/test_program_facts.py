"""The files of facts have the right form, the JSON file that cru reads is made of them, and without it no command is judged."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.kit import program_facts
from tests.kit.program_facts import FactsError, build, read_meanings, read_sources

from cru.core.guard.shell.options import HARMLESS, options_of
from cru.core.guard.shell.program_facts import FACTS, UnreadableFacts, read_facts
from cru.core.guard.shell.programs import COMMANDS, GROUPS, KINDS, VARIABLES

SOURCES = sorted(Path(FACTS).parent.glob("*.toml"))


def test_the_file_that_cru_reads_is_made_of_the_sources() -> None:
    assert Path(FACTS).read_text() == build(), "run `make docs`"


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.name)
def test_each_source_has_only_known_parts(file: Path) -> None:
    assert read_sources()[file.name].keys() <= {"groups", "commands", "kinds", "variables", "project_files"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[commands]\ncat.harmles = '-n'", "cat: Object contains unknown field `harmles`"),
        ("[commands]\ncat.harmless = 1", "cat: Expected `str | null`, got `int`"),
        ("[commands]\ncat.style = 'word'", "cat: Invalid enum value 'word'"),
        ("[commands]\ncat.harmless = '-n'\n'cat|tac'.harmless = '-n'", "cat: given twice: harmless"),
        ("[kinds]\nshells = 'sh'", "missing required field"),
        ("[others]\na = 'b'", "unknown field `others`"),
        ("cat = ", "extra.toml: Invalid value"),
    ],
)
def test_a_source_with_a_mistake_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    (tmp_path / "extra.toml").write_text(text)
    monkeypatch.setattr(program_facts, "FOLDER", tmp_path)
    with pytest.raises(FactsError) as error:
        build()
    assert problem in str(error.value)


@pytest.mark.parametrize("key", COMMANDS)
def test_every_command_can_be_read(key: str) -> None:
    options = options_of(key)
    facts = COMMANDS[key]
    assert len(options.effects) == len({*facts.runs.split()}) + len({*facts.writes.split()}) + len(
        {*facts.sends.split()}
    )
    assert not facts.does_more or " " not in key or key.startswith("git "), "only git has subcommands with such options"


def test_every_group_is_used_and_every_list_has_a_meaning() -> None:
    used = {token[1:] for text in (*HARMLESS.values(), *GROUPS.values()) for token in text.split() if token[0] == "@"}
    assert used == set(GROUPS)
    undescribed = {*KINDS.__struct_fields__, *VARIABLES.__struct_fields__} - set(read_meanings())
    assert undescribed == {"switch_beginnings", "switch_endings"}, "the meaning stands above `switches`"


def cut_off(text: str) -> str:
    return text[: len(text) // 2]


def without_programs(text: str) -> str:
    return json.dumps({**json.loads(text), "kinds": {}})


def with_more(text: str) -> str:
    facts: dict[str, Any] = json.loads(text)
    facts["commands"]["rm"]["allowed"] = True
    return json.dumps(facts)


DAMAGES: list[Callable[[str], str | bytes]] = [
    lambda text: "", lambda text: "{}", lambda text: "null", lambda text: b"\xff" + text.encode(), cut_off, without_programs, with_more,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_by_its_name(tmp_path: Path, damage: Callable[[str], str | bytes]) -> None:
    file = tmp_path / "facts.json"
    damaged = damage(Path(FACTS).read_text())
    file.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    with pytest.raises(UnreadableFacts, match=str(file)):
        read_facts(str(file))


def test_a_missing_file_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFacts, match=r"facts\.json: .*No such file"):
        read_facts(str(tmp_path / "facts.json"))


JUDGE = """
import sys
from pathlib import Path
from cru.core.guard.shell import program_facts
program_facts.FACTS = sys.argv[1]
from tests.core.guard.rules.world import World
world = World(Path(sys.argv[2]))
for rules in ({"allow": ("bash:ls *",)}, {"deny": ("bash:rm *",)}, {}, {}):
    try:
        print(world.gate("ask", **rules).judge("bash", "shell", "ls -l").decision)
    except program_facts.UnreadableFacts as error:
        print("refused", str(error).splitlines()[1])
"""


def test_without_facts_no_command_is_allowed(tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    file.write_text("{}")
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, str(file), str(tmp_path / "world")], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 4 and all(line.startswith(f"refused {file}: Object missing") for line in lines)
