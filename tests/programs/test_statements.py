"""What authors of plugins for Crucible and chibi rely on, one statement a row of the files in statements/.

All rows in Lua run in one session; the others are compared with the tables and tests that carry them.
"""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct
from tests.core.turn.support import World

from cru.core.plugins.executables.hooks.table import BY_NAME
from cru.faces.cli.flags import REST, find

TESTS = Path(__file__).parents[1]
FOLDER = Path(__file__).with_name("statements")
BECAUSE = "because "


class Row(Struct, frozen=True):
    """A statement, and Lua that returns true.

    reason: why cru does something else, "": it does what the statement says
    """

    text: str
    code: str
    reason: str = ""


def read_rows(name: str) -> tuple[str, list[Row]]:
    """The Lua before the first row of a file, and its rows."""
    prelude, *blocks = (FOLDER / name).read_text().split("\n\n--- ")
    rows = []
    for block in blocks:
        lines = block.splitlines()
        heads = [line.removeprefix("--- ") for line in (f"--- {lines[0]}", *lines[1:]) if line.startswith("--- ")]
        reason = " ".join(head.removeprefix(BECAUSE) for head in heads[1:])
        rows.append(Row(heads[0], "\n".join(lines[len(heads) :]), reason))
    return prelude, rows


PRELUDE, HOLDS = read_rows("namespace.lua")
_, DIFFERENT = read_rows("different.lua")
LUA = [*HOLDS, *DIFFERENT]
TABLES = tomllib.loads((FOLDER / "statements.toml").read_text())
PAYLOADS = msgspec.json.decode((TESTS / "core" / "plugins" / "executables" / "payloads.json").read_bytes())


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each row of Lua returns: "true", or what is wrong."""
    path = tmp_path_factory.mktemp("statements")
    plugins = path / "home" / "plugins"
    plugins.mkdir(parents=True)
    rows = "".join(f"checks[#checks + 1] = function()\n{row.code}\nend\n" for row in LUA)
    (plugins / "asks.lua").write_text(
        f"{PRELUDE}\nlocal checks, said = {{}}, {{}}\n{rows}"
        'cru.on("session:started", function()\n'
        "  for n, check in ipairs(checks) do local _, value = pcall(check) said[n] = tostring(value) end\n"
        '  cru.toast("said " .. cru.json.encode(said))\nend)'
    )
    world = World(path, "text: fine\n")
    world.run("hi")
    (said,) = [text.removeprefix("said ") for text in world.notices() if text.startswith("said ")]
    return msgspec.json.decode(said, type=list[str])


@pytest.mark.parametrize(("number", "row"), list(enumerate(LUA)), ids=[row.text for row in LUA])
def test_a_statement_about_the_namespace_holds(answers: list[str], number: int, row: Row) -> None:
    assert answers[number] == "true", row.code
    assert bool(row.reason) == (row in DIFFERENT)


@pytest.mark.parametrize("statement", TABLES["tests"])
def test_a_statement_has_the_test_that_covers_it(statement: str) -> None:
    file, _, name = TABLES["tests"][statement].partition("::")
    assert name in names_in(file)


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("hook", TABLES["hooks"])
def test_a_hook_of_chibi_gets_the_fields_of_all_its_versions(hook: str) -> None:
    """payloads.json is what programs were given: test_payloads_are_golden."""
    assert set(TABLES["hooks"][hook].split()) <= set(PAYLOADS[hook]) and BY_NAME[hook].events


@pytest.mark.parametrize(("hook", "reason"), TABLES["hooks_without_a_moment"].items())
def test_a_hook_that_is_never_called_says_why(hook: str, reason: str) -> None:
    assert reason in BY_NAME[hook].later and not BY_NAME[hook].events


def test_every_hook_of_chibi_has_a_row() -> None:
    assert {*TABLES["hooks"], *TABLES["hooks_without_a_moment"]} == set(BY_NAME)


@pytest.mark.parametrize("letter", TABLES["flags"])
def test_a_flag_of_chibi_takes_its_values_and_asks_the_model_or_not(letter: str) -> None:
    flag, _ = find(letter)
    assert [-1 if REST in flag.args else len(flag.args), flag.quiet] == TABLES["flags"][letter]


def test_the_table_is_large_and_has_no_row_twice() -> None:
    texts = [row.text for row in LUA]
    assert len(texts) == len(set(texts)) and len(texts) + sum(map(len, TABLES.values())) >= 280
