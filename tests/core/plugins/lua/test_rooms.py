"""Each plugin has globals, a library and names of its own; what it breaks there is broken for nobody else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.core.plugins.lua import family
from tests.core.turn.support import World

from cru.core.api.event_table import table
from cru.core.events.catalog import BY_NAME
from cru.core.events.payloads import ToolBeforeCall
from cru.core.events.stamp import Event, Stamp
from cru.core.plugins.discovery.places import PluginFolders
from cru.core.plugins.lua.convert import LuaError
from cru.core.plugins.lua.namespace import install
from cru.core.plugins.lua.runtime import LuaVM
from cru.core.plugins.manager import Extensions


class Rooms:
    """One machine, and the globals of several plugins by name."""

    def __init__(self) -> None:
        self.vm = LuaVM(print=lambda text: None)
        install(self.vm, family.NAMES, absent=family.LATER)
        self._rooms: dict[str, Any] = {}

    def run(self, plugin: str, source: str, *args: Any) -> Any:
        if plugin not in self._rooms:
            self._rooms[plugin] = self.vm.own_globals()
        results = self.vm.start(self.vm.load(source, f"@{plugin}.lua", self._rooms[plugin]), *args)
        assert isinstance(results, tuple)
        return results[0] if len(results) == 1 else results

    def failure(self, plugin: str, source: str, *args: Any) -> str:
        with pytest.raises(LuaError) as caught:
            self.run(plugin, source, *args)
        return caught.value.message


PROBE = """
local event = ...
local said = {}
for key in pairs(event) do said[#said + 1] = key end
table.sort(said)
io.write("")
return ("%s %d"):format(table.concat(said, ","), #("ab"):upper()), event.args.command, require("cjson").encode({1, {}}),
  type(cru.on or cru.http.get), crucible == cru, http == cru.http, _G.cru == cru, tostring(cru.json.null), inspect(1),
  cru.json.encode(cru.json.array({})), math.floor(1.5), utf8.char(65), os.getenv("NOPE"), type(debug.traceback()),
  io.type(io.stdout), coroutine.wrap(function() return "wrapped" end)(), load("return type(print)")(), next({}), pcall(error, "x")
"""


def event() -> Any:
    """An event as a handler gets it."""
    stamp = Stamp("s", "r", "main", "", 0, False, 1, 0, 0.0, False, "user", "")
    payload = ToolBeforeCall("bash", {"command": "ls"}, "call_1")
    return table.event_table("tool:before_call", Event(BY_NAME["tool:before_call"], stamp, payload))[0]


@pytest.mark.parametrize(
    "source",
    [
        "for name in pairs(_G) do _G[name] = nil end",
        "_ENV.cru, _ENV.string, _ENV.pcall = nil, nil, nil",
        "for _, t in pairs(_G) do if type(t) == 'table' and t ~= _G then for k in pairs(t) do rawset(t, k, nil) end end end",
        "for _, t in pairs(package.loaded) do if t ~= _G then for k in pairs(t) do rawset(t, k, nil) end end end",
        "require('string').format, require('table').concat = nil, nil",
        "setmetatable(_G, {__index = error}) setmetatable(cru, {}) setmetatable(string, {__index = error})",
        "getmetatable(cru).__index, getmetatable(cru.http).__index = nil, nil",
        "cru.http.get, crucible.json.encode, cru.json.null, http = nil, nil, nil, nil",
        "load('table.concat = nil string.upper = nil cru = nil')()",
        "package.searchers[1], package.searchers[2], package.preload.cjson = nil, nil, nil package.path = 5",
        "package.loaded.cjson = {}",
        "rawset(getmetatable(''), '__index', nil) setmetatable(getmetatable(''), {})",
        "getmetatable('').__index.upper = nil debug.getmetatable('').__index.format = nil",
        "getmetatable(io.stdout).__index.write = nil getmetatable(io.stdout).__name = 'x'",
        "local m = getmetatable(...) m.__index, m.__pairs, m.__newindex = nil, nil, nil",
        "local m = debug.getmetatable(...) m.__index = nil",
        "local m = getmetatable(cru.json.decode('[]')) m.__index = error",
        "debug.getmetatable(cru.json.null).__tostring = nil",
        "debug.setmetatable('', {})",
        "debug.setmetatable(io.stdout, nil)",
        "debug.setmetatable(print, {__call = error})",
        "debug.getregistry()[2].string = nil",
        "for n = 1, 20 do debug.setupvalue(cru.http.get, n, nil) end",
        "for n = 1, 20 do debug.setupvalue(load, n, nil) debug.setupvalue(require, n, nil) end",
        "debug.upvaluejoin(load, 1, function() return _G end, 1)",
        "(''):gsub('', function() for level = 2, 9 do debug.setlocal(level, 1, nil) end end)",
        "io.output(os.tmpname())",
        "coroutine.wrap, os.getenv, math.floor, debug.traceback, utf8.char = nil",
    ],
)
def test_what_one_does_reaches_no_other(source: str) -> None:
    rooms = Rooms()
    before = rooms.run("other", PROBE, event())
    assert before[0].startswith("args,call_id,") and before[1:3] == ("ls", "[1,{}]")
    try:
        rooms.run("bad", source, event())
    except LuaError as error:
        assert error.where == "bad.lua:1"
    assert rooms.run("other", PROBE, event()) == before
    assert rooms.run("new", PROBE, event()) == before


def test_what_is_shared_says_so_when_it_is_touched() -> None:
    rooms = Rooms()
    assert "all plugins share this metatable" in rooms.failure("bad", "getmetatable('').__index = nil")
    assert "works on tables only" in rooms.failure("bad", "debug.setmetatable('', {})")
    for call in ("getregistry()", "getupvalue(cru.http.get, 1)", "setupvalue(load, 1, 1)", "upvalueid(print, 1)"):
        name = call.partition("(")[0]
        assert f"bad.lua:1: debug.{name} is not available" in rooms.failure("bad", f"debug.{call}")
    rooms.run("good", "function kept() return secret end")
    kept = rooms.run("good", "return kept")
    assert "does not belong to this plugin" in rooms.failure("bad", "debug.getupvalue(..., 1)", kept)
    assert rooms.run("bad", "local mine = 7 local f = function() return mine end return debug.getupvalue(f, 1)") == (
        "mine", 7,
    )  # fmt: skip
    assert rooms.run("bad", "local mine = 7 local a, b = debug.getlocal(1, 1) return a, b") == ("mine", 7)
    assert rooms.run("bad", "local mine = 7 debug.setlocal(1, 1, 8) return mine") == 8


def test_the_library_may_be_extended_and_strings_have_the_new_methods() -> None:
    rooms = Rooms()
    rooms.run("one", "function string.trim(s) return (s:gsub('^%s+', '')) end function table.count(t) return #t end")
    assert rooms.run("one", "return ('  x'):trim(), table.count({1, 2}), getmetatable('').__index == string") == (
        "x", 2, True,
    )  # fmt: skip
    bare = rooms.run("one", "local function f(s) return s:trim() end return f")  # no global is used in it
    assert rooms.vm.start(bare, " y") == ("y",)
    assert "attempt to call a nil value (method 'trim')" in rooms.failure("two", "return (' x'):trim()")
    assert rooms.run("two", "return string.trim, table.count") == (None, None)


def test_marks_of_lists_survive_copies_with_their_metatable() -> None:
    rooms = Rooms()
    source = "local l = cru.json.decode('[]') return cru.json.encode(setmetatable({}, getmetatable(l))), getmetatable(l).__name"
    assert rooms.run("one", source) == ("[]", "array")


def test_output_that_one_redirects_is_its_own(tmp_path: Path) -> None:
    said: list[str] = []
    rooms = Rooms()
    rooms.vm = LuaVM(print=said.append)
    file = tmp_path / "out.txt"
    rooms.run("one", "io.output(...) io.write('mine') io.close()", str(file))
    rooms.run("two", "io.write('for all')")
    assert (file.read_text(), said) == ("mine", ["for all"])
    assert "No such file" in rooms.failure("one", f"io.output('{tmp_path}/nowhere/x')")


@pytest.mark.parametrize("name", ["on", "http.get", "json.encode", "later.thing"])
def test_names_may_be_replaced_by_stubs(name: str) -> None:
    rooms = Rooms()
    assert rooms.run("one", f"crucible.{name} = function() return 'stub' end return cru.{name}()") == "stub"
    assert rooms.run("two", f"return type(cru.{name})") == ("nil" if name == "on" else "function")


def said(tmp_path: Path, **files: str) -> list[str]:
    """What the plugins of a session say while they are loaded; a file's name has __ for /."""
    world, here = World(tmp_path, ""), tmp_path / "home"
    for name, text in files.items():
        file = here / "plugins" / f"{name.replace('__', '/')}.lua"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    extensions = Extensions(PluginFolders(here, tmp_path / "project", {}, (), {}), {}, here)

    async def opened() -> None:
        await extensions.open(world.session.parts)
        await extensions.close()

    asyncio.run(opened())
    return world.notices()


def test_modules_of_a_plugin_share_its_globals(tmp_path: Path) -> None:
    lines = said(
        tmp_path,
        one__init="limit = 3\nlocal m = require('helper')\ncru.toast(m() .. made .. tostring(require('helper') == m))",
        one__lua__helper="made = 'made by helper'\nreturn function() return 'limit ' .. limit .. _G.limit end",
        two="cru.toast(type(limit) .. type(made))",
    )
    assert lines == ["limit 33made by helpertrue", "nilnil"]


def test_files_of_one_plugin_have_globals_of_their_own_before_the_shared_ones(tmp_path: Path) -> None:
    source = "count = (count or 0) + 1\nload('count = count + 1')()\ncru.toast(count .. tostring(_G.count == count))"
    assert said(tmp_path, many__a=source, many__b=source) == ["2true", "2true"]


def test_a_module_that_a_plugin_offers_is_the_same_for_all(tmp_path: Path) -> None:
    lines = said(
        tmp_path,
        aa="local spec = { n = 1 }\npackage.loaded['words'] = spec\nreturn spec",
        bb="local a = require('aa')\na.n = 2\ncru.toast(tostring(a == require('words')))",
        cc="cru.toast(tostring(require('aa').n))",
    )
    assert lines == ["true", "2"]
