"""Every name of the namespace does what its example says, from Lua and from Python, in a session of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support import World
from tests.namespace import examples
from tests.namespace.support import Room

from cru.namespace.host import NotAvailable
from cru.namespace.names import INDEXED, NAMES, NOT_AVAILABLE
from cru.namespace.python import NAMESPACE

PLUGIN = """
cru.on("session:started", function(ctx, event)
  local got, expected = %s, %s
  cru.toast((got == expected and "as it says: " or "not as it says: ") .. tostring(got))
end)
"""
# Indexed tables: their examples are those of the functions behind them.
KEYED = sorted({target for pair in INDEXED.values() for target in pair if target})


@pytest.mark.parametrize("name", NAMES)
def test_the_example_holds_in_lua(tmp_path: Path, name: str) -> None:
    said = examples.example(name)
    assert run_in_lua(tmp_path, said) == []


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


@pytest.mark.parametrize("name", sorted(NOT_AVAILABLE))
def test_a_name_that_comes_later_says_so_in_python(name: str) -> None:
    found: Any = NAMESPACE
    for part in name.split("."):
        found = getattr(found, part)
    with pytest.raises(NotAvailable, match=name):
        found()


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
