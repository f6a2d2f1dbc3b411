from __future__ import annotations

import os
import subprocess
import time

import pytest
from tests.core.plugins.lua.support import failure, run
from tests.kit.waiting import ends_soon

from cru.core.plugins.lua.convert import LuaError, LuaTooSlow
from cru.core.plugins.lua.runtime import LuaVM

RUNAWAY = {
    "while": "while true do end",
    "pcall loop": "while true do pcall(function() while true do end end) end",
    "nested coroutine": "coroutine.wrap(function() while true do end end)()",
    "pcall and coroutine": "while true do pcall(coroutine.wrap(function() while true do end end)) end",
    "coroutine.resume": "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
    "message handler": "xpcall(function() while true do end end, function() while true do end end)",
    "close": "local x <close> = setmetatable({}, {__close = function() while true do end end}) while true do end",
    "finalizer": "setmetatable({}, {__gc = function() while true do end end}) collectgarbage() while true do end",
    "string.find": "local x = (('a'):rep(400)):find('.-.-.-.-b')",
    "string.match": "local x = string.match(('a'):rep(100000), '(.-)(.-)b')",
    "string.gsub": "local x = string.gsub(('a'):rep(100000), '.-.-b', '')",
    "string.gmatch": "for _ in string.gmatch(('a'):rep(100000), '.-.-b') do end",
    "host calls": "while true do print() end",
    "table.move": "for i = 1, 1e9 do table.move({}, 1, 9e6, 2, {}) end",
    "table.sort": "local t = {} for i = 1, 3e5 do t[i] = (i * 7919) % 300007 end table.sort(t)",
    "string.upper": "local s = ('x'):rep(5e7) while true do local _ = s:upper() end",
    "comparing": "local s = ('x'):rep(5e7) local z = s .. 'a' while true do local _ = s < z end",
    "collecting": "local t = {} for i = 1, 1e5 do t[i] = {} end while true do collectgarbage() end",
    "optional": "local x = (('a'):rep(30)):find(('a?'):rep(30) .. ('a'):rep(30) .. 'b')",
    "plain": "local x = (('a'):rep(5e6)):find(('a'):rep(2e6) .. 'b', 1, true)",
    "replacement": "local x = (('a'):rep(1e6)):gsub('(x?)a', ('%1'):rep(1e6))",
    "load": "local x = load(function() while true do end end)",
}
REFUSED = {
    "table.move({}, '1', '1000000000000', 2, {})": "too many elements",
    "table.insert(setmetatable({}, {__len = function() return 1e12 end}), 1, 'x')": "too many elements",
    "table.remove(setmetatable({}, {__len = function() return 1e12 end}), 1)": "too many elements",
    "(('a'):rep(1e6)):find('[' .. ('b'):rep(1e6) .. ']')": "the pattern is longer than",
}


@pytest.mark.parametrize("source", REFUSED)
def test_one_call_that_would_not_end_is_refused(source: str) -> None:
    assert REFUSED[source] in failure(LuaVM(), f"local x = {source}").message


@pytest.mark.sample(1)
@pytest.mark.parametrize("source", RUNAWAY.values(), ids=RUNAWAY.keys())
def test_a_runaway_ends_at_the_limit_and_the_machine_goes_on(source: str) -> None:
    vm = LuaVM(run_seconds=0.1, print=lambda _: None)
    with ends_soon():
        error = failure(vm, source)
    assert isinstance(error, LuaTooSlow)
    assert "ran longer than 0.1 s" in error.message
    assert error.where == "test.lua:1"
    assert run(vm, "return 1 + 1") == 2


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processors cannot be chosen here")
def test_a_busy_machine_takes_nothing_of_the_run_time() -> None:
    vm = LuaVM(run_seconds=0.2)
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    others = [subprocess.Popen(["sh", "-c", "echo; while :; do :; done"], stdout=subprocess.PIPE) for _ in range(8)]
    try:
        for other in others:
            assert other.stdout is not None and other.stdout.readline() == b"\n"
        assert run(vm, "local till = os.clock() + 0.1 while os.clock() < till do end return 1") == 1
    finally:
        for other in others:
            other.kill()
            other.communicate()
        os.sched_setaffinity(0, processors)


def test_memory_is_an_ordinary_error_and_the_machine_goes_on() -> None:
    vm = LuaVM(memory_mb=16)
    error = failure(vm, "local t = {} while true do t[#t + 1] = string.rep('x', 1e5) .. #t end")
    assert "not enough memory" in error.message
    assert run(vm, "return pcall(string.rep, 'x', 1e9)") == (False, "not enough memory")
    assert run(vm, "return 1") == 1


def test_a_machine_filled_to_the_brim_still_answers_with_errors() -> None:
    vm = LuaVM(memory_mb=8)
    failure(vm, "_G.hoard = {} while true do hoard[#hoard + 1] = {} end")
    for size in (1, 10_000, 9 << 20):
        try:
            run(vm, "local t = ... return #t", "x" * size)
        except LuaError as error:
            assert "not enough memory" in error.message
    with pytest.raises(LuaError, match="not enough memory"):
        vm.set_global("x", 1)


def test_what_python_returns_is_refused_when_it_does_not_fit() -> None:
    vm = LuaVM(memory_mb=8)
    assert run(vm, "return pcall(...)", lambda: "x" * (9 << 20)) == (False, "not enough memory")


def test_deep_recursion_is_an_ordinary_error() -> None:
    error = failure(LuaVM(run_seconds=5), "local function f() return f() + 1 end return f()")
    assert "stack overflow" in error.message


def test_a_stack_that_is_full_in_our_own_code_is_the_extensions_error() -> None:
    error = failure(LuaVM(run_seconds=5), "local function f() local _ = ('x'):upper() return f() + 1 end return f()")
    assert error.where == "test.lua:1" and error.message.startswith("test.lua:1: stack overflow"), error.message


def test_lua_and_python_calling_each_other_for_ever_is_an_ordinary_error() -> None:
    vm = LuaVM()
    function = vm.load("return again()", "@again.lua")

    def again() -> object:
        return vm.start(function)

    vm.set_global("again", again)
    with pytest.raises(LuaError, match="deep"):
        vm.start(function)


def test_time_in_python_is_not_the_extensions_own() -> None:
    vm = LuaVM(run_seconds=0.1)
    assert run(vm, "local f = ... f() for _ = 1, 30000 do end return 1", lambda: time.sleep(0.2)) == 1


@pytest.mark.slow
def test_a_hundred_thousand_calls_leave_nothing_behind() -> None:
    vm = LuaVM()
    function = vm.load("local e, f = ... e.x = f return e", "@f.lua")
    for _ in range(1000):
        vm.start(function, {"a": 1})
    run(vm, "collectgarbage() collectgarbage()")
    before, held = vm.memory_used(), len(vm.converter.hosts)
    for _ in range(100_000):
        vm.start(function, {"a": 1})
    run(vm, "collectgarbage() collectgarbage()")
    assert vm.memory_used() - before < 20_000
    assert len(vm.converter.hosts) == held


def test_handles_do_not_pile_up() -> None:
    vm = LuaVM()
    function = vm.load("local f = ... return function() return f end", "@f.lua")
    for _ in range(5000):
        vm.start(function, len)
    run(vm, "collectgarbage() collectgarbage()")
    run(vm, "collectgarbage() collectgarbage()")
    run(vm, "return 1")
    assert len(vm.converter.hosts) < 10
    assert vm.memory_used() < 2 << 20
