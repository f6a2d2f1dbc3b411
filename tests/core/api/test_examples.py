"""Every name of the namespace does what its example says, from Lua and from Python, in a session of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.core.api import examples
from tests.core.api.support import Room
from tests.core.turn.support import World

from cru.core.api.names import ABSENT, INDEXED, NAMES, AbsentAnswer
from cru.core.api.python import NAMESPACE

PLUGIN = """
cru.on("session:started", function(ctx, event)
  local got, expected = %s, %s
  cru.toast((got == expected and "as it says: " or "not as it says: ") .. tostring(got))
end)
"""
# Indexed tables: their examples are those of the functions behind them.
KEYED = sorted({target for pair in INDEXED.values() for target in pair if target})


@pytest.mark.sample(50)
@pytest.mark.parametrize("name", NAMES)
def test_the_example_holds_in_lua(tmp_path: Path, name: str) -> None:
    said = examples.example(name)
    assert run_in_lua(tmp_path, said) == []


@pytest.mark.sample(40)
@pytest.mark.parametrize("name", NAMES)
def test_the_example_holds_in_python(tmp_path: Path, name: str) -> None:
    said = examples.example(name)
    got, expected = run_in_python(tmp_path, said)
    assert (got, type(got)) == (expected, type(expected))


@pytest.mark.parametrize("target", KEYED)
def test_the_example_of_a_table_with_keys_holds_in_both(tmp_path: Path, target: str) -> None:
    said = examples.of(target)
    assert run_in_lua(tmp_path, said) == []
    got, expected = run_in_python(tmp_path, said)
    assert got == expected


@pytest.mark.parametrize("name", ABSENT)
def test_a_name_whose_thing_is_not_there_answers_as_its_contract_says_in_both(tmp_path: Path, name: str) -> None:
    """Both languages, and the word that a person gets."""
    answer, reason = ABSENT[name]
    lua, python, raises = ANSWERS[answer]
    plugins = tmp_path / "home" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "lua.lua").write_text(
        f"local ok, a, b = pcall(cru.{name}, 'x', 'y', {{}})\n"
        f"cru.toast('lua ' .. tostring(ok == {str(not raises).lower()} and {lua}))\n"
    )
    (plugins / "python.py").write_text(
        "import cru.core.api.python as cru\n"
        "async def setup(_):\n"
        f"    try:\n        a, raised = await cru.{name}('x', 'y', {{}}), False\n"
        "    except Exception as error:\n        a, raised = str(error), True\n"
        f"    is_so = raised is {raises} and ({python})\n    cru.toast(f'python {{is_so}}')\n"
    )
    world = World(tmp_path, "text: fine\n")
    world.run("hi")
    assert [text for text in world.notices() if text in ("lua true", "python True")] == ["lua true", "python True"]
    told = [text for text in world.notices() if text.endswith(reason)]
    assert told == [f"{plugin}: cru.{name} does nothing: {reason}" for plugin in ("lua", "python")]


# answer → whether (a, b) is it in Lua; whether `a` is it in Python; whether it is raised
ANSWERS = {
    AbsentAnswer.PAIR: ("a == nil and type(b) == 'string'", "a[0] is None and type(a[1]) is str", False),
    AbsentAnswer.RAISES: ("type(a) ~= 'nil'", "'yet' in a", True),
}


def run_in_lua(tmp_path: Path, said: examples.Example) -> list[str]:
    """What was told beside that the example is right."""
    plugins = tmp_path / "home" / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "demo.lua").write_text(PLUGIN % (said.expression, said.value))
    world = World(tmp_path, "text: fine\n")
    world.run("hi")
    held = [text for text in world.notices() if text.startswith("as it says: ")]
    assert len(held) == 1, (said.expression, world.notices())
    return [text for text in world.notices() if "plugin demo" in text or text.startswith("not as")]


def run_in_python(tmp_path: Path, said: examples.Example) -> tuple[Any, Any]:
    room = Room(tmp_path, "text: fine\n")

    async def both() -> tuple[Any, Any]:
        names = {**examples.LUA, "cru": NAMESPACE}
        return examples.first(await examples.value(said.expression, names)), await examples.value(said.value, names)

    async def main() -> tuple[Any, Any]:
        try:
            return await asyncio.create_task(both())
        finally:
            await room.close()

    found: tuple[Any, Any] = room.within(lambda: asyncio.run(main()))
    return found
