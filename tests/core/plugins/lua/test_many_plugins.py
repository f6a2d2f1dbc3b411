"""What one plugin more costs at a start: runs of Lua, memory, and nothing that grows with the plugins before it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.plugins.lua.test_rooms import Rooms
from tests.core.turn.support import World

from cru.core.base.files.regular import read_regular
from cru.core.plugins import plugin_files
from cru.core.plugins.discovery.places import PluginFolders
from cru.core.plugins.loaded_plugin import LoadedPlugin
from cru.core.plugins.lua import plugins
from cru.core.plugins.lua.driver import Driver
from cru.core.plugins.lua.namespace import install
from cru.core.plugins.lua.runtime import LuaVM
from cru.core.plugins.manager import Extensions

SOURCE = 'cru.on("tool:before_call", function(ctx, event) if event.name == "%d" then return {cancel = true} end end)\n'
BYTES = 16 << 10
"""What the globals of one plugin may take in Lua."""


def with_all_names() -> Rooms:
    rooms = Rooms()
    rooms.vm = LuaVM()
    install(rooms.vm)
    return rooms


def opened(tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What it takes to open a session with so many plugins."""
    counts: Counter[str] = Counter()

    def watched(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            counts[what] += 1
            return function(*args, **named)

        return call

    folder = tmp_path / str(count)
    (folder / "home" / "plugins").mkdir(parents=True)
    for number in range(count):
        (folder / "home" / "plugins" / f"p{number:03}.lua").write_text(SOURCE % number)
    with monkeypatch.context() as patch:
        patch.setattr(Driver, "_enter", watched("runs of Lua", Driver._enter))
        patch.setattr(LuaVM, "__init__", watched("machines", LuaVM.__init__))
        patch.setattr(Extensions, "_active_names", watched("lists of names", Extensions._active_names))
        patch.setattr(LoadedPlugin, "name", property(watched("looks at a name", LoadedPlugin.name.fget)))  # type: ignore[attr-defined]
        for module in (plugin_files, plugins):
            patch.setattr(module, "read_regular", watched("files", read_regular))
        world = World(folder, "")
        extensions = Extensions(PluginFolders(folder / "home", folder, {}, (), {}), {}, folder / "home")

        async def main() -> None:
            await extensions.open(world.session.parts)
            counts["handlers"] = len(world.session.parts.bus.registry.by_event.get("tool:before_call", ()))
            await extensions.close()

        asyncio.run(main())
    assert world.notices() == []
    return counts


def test_one_plugin_more_is_one_run_of_lua_and_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = opened(tmp_path, 10, monkeypatch), opened(tmp_path, 50, monkeypatch)
    assert (few["handlers"], many["handlers"]) == (10, 50)
    assert few["machines"] == many["machines"] == 1
    assert many["lists of names"] == 0
    more = {what: many[what] - few[what] for what in many}
    assert (more["runs of Lua"], more["files"]) == (40, 40)
    assert more["looks at a name"] <= 40 * 4


def test_what_setup_puts_into_package_loaded_is_for_all(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "plugins"
    folder.mkdir(parents=True)
    (folder / "a.lua").write_text('return {setup = function() package.loaded.late = {word = "late"} end}')
    (folder / "b.lua").write_text('assert(require("late").word == "late")')
    world = World(tmp_path, "text: fine\n")
    asyncio.run(world.asked("hi"))
    assert world.built.extensions is not None
    assert [world.built.extensions.of(name).error for name in ("a", "b")] == ["", ""]


def test_a_file_that_cannot_be_compiled_is_told_with_its_line(tmp_path: Path) -> None:
    folder = tmp_path / "home" / "plugins"
    folder.mkdir(parents=True)
    (folder / "a.lua").write_text("local x = 1\nlocal y = = 2\n")
    world = World(tmp_path, "text: fine\n")
    asyncio.run(world.asked("hi"))
    assert world.built.extensions is not None
    assert world.built.extensions.of("a").error.endswith("a.lua:2: unexpected symbol near '='")


def test_without_plugins_no_machine_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = opened(tmp_path, 0, monkeypatch)
    assert (counts["handlers"], counts["machines"], counts["runs of Lua"]) == (0, 0, 0)


def test_the_globals_of_a_plugin_are_small() -> None:
    rooms = with_all_names()
    full = rooms.vm.load("collectgarbage() collectgarbage()", "=full")

    def used() -> int:
        rooms.vm.start(full)
        return rooms.vm.memory_used()

    rooms.run("first", "return cru.on")
    before = used()
    kept = [rooms.vm.own_globals() for _ in range(50)]
    assert (used() - before) / len(kept) < BYTES


@pytest.mark.parametrize(
    "change",
    [
        "getmetatable(cru.http).__index = nil",
        "getmetatable(cru).__newindex = error",
        "debug.getmetatable(cru.http).__pairs = error",
        "rawset(getmetatable(cru.http), '__index', function() return 'mine' end)",
        "setmetatable(cru.http, nil)",
    ],
)
def test_metatables_of_names_belong_to_who_looks_at_them(change: str) -> None:
    rooms = with_all_names()
    probe = "local names = {} for name in pairs(cru.http) do names[#names + 1] = name end cru.own = 1 return type(cru.http.get), #names > 0"
    rooms.run("bad", change)
    shared = rooms.vm.load(change, "=shared", rooms.vm.environment())
    rooms.vm.start(shared)
    assert rooms.run("other", probe) == ("function", True)


def test_a_name_that_was_taken_out_stays_out() -> None:
    rooms = with_all_names()
    source = """cru.http.get = nil local before = cru.http.get
      local made = cru.http.post cru.http.post = nil
      cru.http.put = 5
      return before, type(made), cru.http.post, cru.http.put, getmetatable(cru.http) == getmetatable(cru.http)"""
    assert rooms.run("one", source) == (None, "function", None, 5, True)
    assert rooms.run("two", "return type(cru.http.get), type(cru.http.post)") == ("function", "function")
