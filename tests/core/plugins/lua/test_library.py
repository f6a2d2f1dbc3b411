from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.core.plugins.lua.support import failure, run

from cru.core.plugins.lua.convert import LuaError
from cru.core.plugins.lua.runtime import LuaVM


def test_what_lua_prints_goes_to_the_sink() -> None:
    said: list[str] = []
    vm = LuaVM(print=said.append)
    run(vm, "print(1, nil, 'x') io.write('a', 2) io.stdout:write('b'):write('c') io.stderr:write('d')")
    assert "".join(said) == "1\tnil\tx\na2bcd"


def test_standard_output_stays_pure() -> None:
    code = """
import asyncio
from cru.core.plugins.lua.runtime import LuaVM
vm = LuaVM()
source = "print('p') io.write('w') io.stdout:write('s') os.execute('echo e') print(io.popen('echo c; cat'):read('a'))"
asyncio.run(vm.run(vm.load(source, '@x.lua')))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert all(letter in done.stderr for letter in "pwsec")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("os.exit(1)", "os.exit is not available"),
        ("io.read()", "standard input"),
        ("io.stdin:read('a')", "standard input"),
        ("io.lines()", "standard input"),
        ("for _ in io.stdin:lines() do end", "standard input"),
        ("debug.sethook()", "debug.sethook is not available"),
        ("debug.debug()", "standard input"),
        ("dofile()", "standard input"),
    ],
)
def test_what_would_end_or_hang_the_program_raises(source: str, said: str) -> None:
    assert said in failure(LuaVM(), source).message


def test_the_rest_of_the_library_is_there(tmp_path: Path) -> None:
    source = """local name = ...
    local f <close> = assert(io.open(name, 'w')) f:write('line') f:close()
    return io.open(name):read('a'), os.getenv('HOME') ~= nil, load('return 1 + 1')(), utf8.char(233), 7 // 2, unpack({4})"""
    assert run(LuaVM(), source, str(tmp_path / "x")) == ("line", True, 2, "é", 3, 4)


def test_python_is_gone_and_nothing_of_an_object_can_be_read() -> None:
    source = """local seen, found = {}, {}
    local function walk(value, depth)
      if seen[value] or depth > 12 then return end
      if type(value) == 'userdata' or type(value) == 'table' or type(value) == 'function' then seen[value] = true end
      if type(value) == 'userdata' then
        for _, name in ipairs{'__class__', '__globals__', '__dict__', '__self__', '__init__', '__call__', '__getattribute__'} do
          local ok, got = pcall(function() return value[name] end)
          if ok and got ~= nil then found[#found + 1] = name end
          if pcall(function() value[name] = 1 end) then found[#found + 1] = 'set ' .. name end
        end
      elseif type(value) == 'table' then
        for k, v in next, value do walk(k, depth + 1) walk(v, depth + 1) end
      elseif type(value) == 'function' then
        for n = 1, 60 do
          local name, up = debug.getupvalue(value, n)
          if not name then break end
          walk(up, depth + 1)
        end
      end
      local meta = debug.getmetatable(value)
      if meta then walk(meta, depth + 1) end
    end
    walk(_G, 0) walk({...}, 0) walk(debug.getregistry(), 0) walk(select(2, pcall((...))), 0)
    local count = 0 for _ in pairs(seen) do count = count + 1 end
    return python == nil and package.loaded.python == nil, found, count > 100"""
    assert run(LuaVM(), source, print, {"f": len}) == (True, {}, True)


def test_chunks_have_their_own_globals_and_share_the_machines() -> None:
    vm = LuaVM()
    run(vm, "name = 'one' _G.shared = 1")
    assert run(vm, "return name, shared, load('return shared')()") == (None, 1, 1)


def test_an_environment_is_seeded_and_read() -> None:
    vm = LuaVM()
    env = vm.environment({"M": {}})
    vm.start(vm.load("M.x = 1 function handler() return M.x end", "@p.lua", env))
    module = env.open("M")
    assert module is not None
    assert module.get("x") == 1
    assert vm.start(env.get("handler")) == (1,)


def test_require_finds_modules_on_the_path_and_loads_them_once(tmp_path: Path) -> None:
    (tmp_path / "helper.lua").write_text("count = (count or 0) + 1 return {name = ..., count = count}")
    (tmp_path / "broken.lua").write_text("x = = 1")
    vm = LuaVM()
    vm.set_path([f"{tmp_path}/?.lua"])
    assert run(
        vm, "return require('helper').name, require('helper').count, require('helper') == require('helper')"
    ) == ("helper", 1, True)
    assert "broken.lua:1" in failure(vm, "require('broken')").message
    assert "module 'nope' not found" in failure(vm, "require('nope')").message


def test_compiled_code_is_refused() -> None:
    assert run(LuaVM(), "return load(string.dump(function() end))")[0] is None
    with pytest.raises(LuaError):
        LuaVM().load(b"\x1bLua", "@x.lua")


def test_a_syntax_error_has_file_and_line() -> None:
    name = "/a/rather/long/folder/name/that/lua/would/shorten/in/its/message/plugin.lua"
    with pytest.raises(LuaError) as caught:
        LuaVM().load("local x = 1\nx = = 2", f"@{name}")
    assert caught.value.where == f"{name}:2"


def test_an_error_carries_file_line_and_traceback() -> None:
    name = "/a/rather/long/folder/name/that/lua/would/shorten/in/its/message/plugin.lua"
    vm = LuaVM()
    function = vm.load("local function inner()\n  error('boom')\nend\ninner()", f"@{name}")
    with pytest.raises(LuaError) as caught:
        vm.start(function)
    assert caught.value.where == f"{name}:2"
    assert caught.value.message.endswith("plugin.lua:2: boom")
    assert "in upvalue 'inner'" in caught.value.traceback or "in local 'inner'" in caught.value.traceback
    assert "[cru " not in caught.value.traceback


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "message", "original"),
    [
        ("error({code = 7, [1] = 2})", "an error object that is a table with keys 1, code", {1: 2, "code": 7}),
        ("error({})", "an error object that is an empty table", {}),
        ("error({message = 'said', after = 2})", "said", {"message": "said", "after": 2}),
        ("error(setmetatable({1}, {__tostring = function() return 'told' end}))", "told", [1]),
        ("error()", "nil", None),
        ("error(42)", "42", 42),
        ("error(print)", "function", ...),
        ("error(setmetatable({}, {__tostring = error}))", "an empty table, whose __tostring fails", {}),
        (
            "error(setmetatable({a = 1}, {__tostring = function() while true do end end}))",
            "keys a, whose __tostring fails",
            {"a": 1},
        ),
    ],
)
def test_any_error_object_is_kept(source: str, message: str, original: object) -> None:
    error = failure(LuaVM(), source)
    assert message in error.message
    assert original is ... or error.original == original
    assert error.where == "test.lua:1"


def test_a_handler_that_yields_to_nobody_is_an_error() -> None:
    assert "yield from outside a coroutine" in failure(LuaVM(), "coroutine.yield(1)").message


def test_machines_come_and_go_with_finalizers_pending() -> None:
    said: list[str] = []
    for _ in range(20):
        vm = LuaVM(print=said.append)
        run(vm, "_G.x = setmetatable({}, {__gc = function() print('late') end}) _G.f = ...", len)
        del vm
    assert said == []
