"""Slips of the pen in what plugins hand over, and in their tables of the configuration."""

from __future__ import annotations

import pytest
from tests.kit import HomeDir, Reply, cru, server

SLIPS = """
return {
  comands = { { desc = "x" } },
  handlers = { a = 1 },
  on_lod = function() end,
  helper = { 1 }, set = function() end, command = function() end,
  tools = { roll = { des = "Roll.", func = function() end }, throw = { desc = "t", params = { { name = "n", type = "numbr" } },
    fn = function() end } },
}
"""
SLIPPED = (
    "`comands` is not read; did you mean `commands`?",
    "`handlers` is not read: a handler is registered with `cru.on(event, function)` or an annotation `@handler`",
    "`on_lod` is not read; did you mean `on_load`?",
    "the tool roll: unknown key `des`; did you mean `desc`?",
    "the tool roll: unknown key `func`; did you mean `fn`?",
    "the tool roll is left out: it has no function `fn`",
    "the tool throw, parameter n: unknown type `numbr`; did you mean `number`?",
)
PYTHON_SLIPS = """
COMANDS = {"a": {"fn": print}}
SEEN = {}
TOOLS = {"toss": {"descr": "t", "fn": print}}
"""


def test_slips_in_what_a_plugin_hands_over_are_told(home: HomeDir) -> None:
    folder = home.cru / "plugins"
    folder.mkdir(parents=True)
    (folder / "odd.lua").write_text(SLIPS)
    (folder / "snake.py").write_text(PYTHON_SLIPS)
    run = cru("plugin", "list", home=home)
    assert run.err.splitlines() == [
        *(f"cru: odd: {text}" for text in SLIPPED),
        "cru: snake: `COMANDS` is not read; did you mean `COMMANDS`?",
        "cru: snake: the tool toss: unknown key `descr`; did you mean `desc`?",
    ]


TABLES = {
    "todo-enforcr": (
        "enabled",
        "[plugins.todo-enforcr]: there is no plugin todo-enforcr; did you mean `todo-enforcer`?",
    ),
    "todo_enforcer": (
        "enabled",
        "[plugins.todo_enforcer]: there is no plugin todo_enforcer; did you mean `todo-enforcer`?",
    ),
    "todo-enforcer": ("enable", "[plugins.todo-enforcer] enable: did you mean `enabled`?"),
    "zzz": ("own", "[plugins.zzz]: there is no plugin zzz; `cru plugin list` shows which there are"),
}
"""The table → its key, and what is said."""


@pytest.mark.parametrize("table", TABLES)
def test_slips_in_the_tables_of_plugins_are_told(home: HomeDir, table: str) -> None:
    key, said = TABLES[table]
    with server([Reply("hello")]) as model:
        home.configure(f"[plugins.{table}]\n{key} = true\n", url=model.url)
        run = cru("hi", home=home)
    assert run.err.count(said) == 1 and run.out == "hello\n", run
    assert cru("plugin", "list", home=home).err.count(said) == 1
