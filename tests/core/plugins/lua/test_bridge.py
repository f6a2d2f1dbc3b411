from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest
from tests.core.plugins.lua import family
from tests.core.plugins.lua.support import failure, run

from cru.core.plugins.lua.convert import LuaError, LuaTooSlow
from cru.core.plugins.lua.namespace import install
from cru.core.plugins.lua.runtime import LuaVM


def machine(**options: Any) -> LuaVM:
    vm = LuaVM(**options)
    install(vm, family.NAMES, absent=family.LATER)
    return vm


VM = machine()


def test_a_function_that_waits_looks_synchronous() -> None:
    assert run(VM, "local r = cru.http.get('u', {a = {}}) return r.status, r.body, r.options") == (200, "u", {"a": {}})


def test_crucible_and_the_bare_globals_are_the_same_tables() -> None:
    assert run(VM, "return crucible == cru, http == cru.http, inspect(1), require('http') == http") == (
        True,
        True,
        "int",
        True,
    )


def test_an_unknown_name_is_nil_and_a_later_one_says_so_when_called() -> None:
    assert run(VM, "return cru.nope, cru.http.nope, type(cru.later.thing)") == (None, None, "function")
    for name in ("later.thing", "later.module"):
        assert f"cru.{name}: it is not available yet" in failure(VM, f"cru.{name}()").message


def test_a_name_may_be_called_and_have_members() -> None:
    assert run(VM, "return cru.log('info', 'm'), cru.log.levels.INFO") == ("info: m", 2)


def test_the_names_can_be_listed_and_replaced() -> None:
    vm = machine()
    assert run(vm, "local n = {} for k in pairs(cru.later) do n[#n + 1] = k end table.sort(n) return n") == [
        "module",
        "thing",
    ]
    assert run(vm, "cru.http.get = function() return 'mock' end return cru.http.get()") == "mock"


def test_values_are_several_returns() -> None:
    assert run(VM, "return cru.pair()") == (None, "no host")


def test_errors_of_python_are_lua_errors_at_the_callers_line(tmp_path: Path) -> None:
    error = failure(VM, "local x\ncru.fs.read(...)", str(tmp_path / "missing"))
    assert "No such file" in error.message
    assert error.where == "test.lua:2"
    assert isinstance(error.__cause__, FileNotFoundError)
    assert run(VM, "return select(2, pcall(cru.bad))") == "that will not do (give a number)"
    assert "KeyError" in failure(VM, "cru.bug()").message
    assert "takes 1 positional argument" in failure(VM, "cru.kind(1, 2)").message
    assert run(VM, "return cru.kind()") == "NoneType"


def test_an_error_of_lua_passes_through_python_as_it_was() -> None:
    source = """local _, a = pcall(cru.twice, function() error({after = 3}) end)
    local _, b = pcall(cru.twice, function() error('x', 0) end)
    return a, b"""
    assert run(VM, source) == ({"after": 3}, "x")


def test_a_function_of_lua_is_called_by_python_and_may_wait() -> None:
    assert run(VM, "return cru.twice(function(n) return n + cru.http.get('u').status end)") == [201, 202]


def test_context_variables_reach_python() -> None:
    token = family.WHO.set("plugin")
    assert run(VM, "cru.http.get('u') return cru.who()") == "plugin"
    family.WHO.reset(token)


def test_objects_have_methods_and_fields_and_nothing_else() -> None:
    source = """local o, p = table.unpack(cru.answers())
    o.mood = 'fine'
    return o:text('<'), o.header, o:wait(), o:add(p).header, o.mood, o.secret, o.__class__, cru.kind(o)"""
    assert run(VM, source) == ("<one", "one", "waited", "onetwo", "fine", None, None, "Answer")
    assert "with a colon" in failure(VM, "cru.answers()[1].text('x')").message
    assert "no field header that can be assigned" in failure(VM, "cru.answers()[1].header = 1").message


def test_waiting_passes_through_coroutines_and_pcall() -> None:
    source = """local co = coroutine.wrap(function()
      local ok, a = pcall(function() return cru.http.get('a').body end)
      coroutine.yield(a)
      local inner = coroutine.create(function() return cru.http.get('b').body end)
      return select(2, coroutine.resume(inner)), coroutine.status(inner)
    end)
    return co(), co()"""
    assert run(VM, source) == ("a", "b", "dead")
    assert run(VM, "return pcall(cru.fs.read, '/nonexistent/x')")[0] is False


def test_a_coroutine_that_waits_cannot_be_resumed_by_another_call() -> None:
    async def both() -> tuple[Any, Any]:
        first = VM.load(
            "_G.co = coroutine.create(function() return cru.http.get('a').body end) return coroutine.resume(co)",
            "@a.lua",
        )
        second = VM.load("return coroutine.status(co), coroutine.resume(co)", "@b.lua")
        task = asyncio.create_task(VM.run(first))
        await asyncio.sleep(0)
        return await VM.run(second), await task

    second, first = asyncio.run(both())
    assert second == ("normal", False, "cannot resume a coroutine that waits for the program")
    assert first == (True, "a")


@pytest.mark.parametrize(
    "source",
    [
        "table.sort({3, 2, 1}, function(a, b) cru.http.get('x') return a < b end)",
        "('a'):gsub('a', function() return cru.http.get('x').body end)",
        "table.sort({2, 1}, coroutine.wrap(function() cru.http.get('x') end))",
    ],
)
def test_waiting_where_lua_cannot_is_an_error(source: str) -> None:
    assert "not possible here" in failure(VM, source).message


def test_fifty_calls_wait_at_the_same_time() -> None:
    async def many() -> list[tuple[Any, ...]]:
        source = "local n = ... print('begins') cru.timer.sleep(0.05) print('goes on') return n"
        function = vm.load(source, "@n.lua")
        return await asyncio.gather(*[vm.run(function, n) for n in range(50)])

    printed: list[str] = []
    vm = machine(print=printed.append)
    assert asyncio.run(many()) == [(n,) for n in range(50)]
    assert printed == ["begins\n"] * 50 + ["goes on\n"] * 50


def test_a_call_that_never_waits_needs_no_loop() -> None:
    assert VM.start(VM.load("return cru.who()", "@x.lua")) == ("nobody",)


def test_waiting_has_a_limit_that_pcall_does_not_lift() -> None:
    vm = machine(wait_seconds=0.1)
    error = failure(vm, "while true do pcall(cru.timer.sleep, 0.03) end")
    assert isinstance(error, LuaTooSlow)
    assert "waited longer than 0.1 s" in error.message
    assert run(vm, "return 1") == 1


def test_a_dialog_is_not_limited_and_neither_is_detached_work() -> None:
    vm = machine(wait_seconds=0.05)
    assert run(vm, "return cru.ask.ask_user(0.15)") == 0.15
    work = vm.load("for _ = 1, 5 do cru.timer.sleep(0.03) end return 'done'", "@x.lua")
    assert asyncio.run(work.detached()) == "done"


def test_cancelling_closes_the_coroutine_and_stops_what_it_waits_for() -> None:
    closed: list[str] = []
    vm = machine(print=closed.append)

    async def cancelled() -> None:
        source = "local x <close> = setmetatable({}, {__close = function() print('closed') end}) pcall(cru.forever) print('went on')"
        task = asyncio.create_task(vm.run(vm.load(source, "@x.lua")))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    gc.collect()
    assert closed == ["closed\n"]
    assert run(vm, "return 1") == 1


def test_an_interrupt_ends_the_call_and_nothing_in_lua_catches_it() -> None:
    with pytest.raises(KeyboardInterrupt):
        VM.start(VM.load("while true do pcall(cru.interrupt) end", "@x.lua"))
    assert run(VM, "return 1") == 1


def test_a_cancelled_inner_task_is_an_ordinary_error() -> None:
    async def inner() -> None:
        raise asyncio.CancelledError

    assert run(VM, "return pcall(...)", inner)[0] is False


def test_the_json_modules_know_null_and_empty_lists() -> None:
    source = """local json = require('cjson')
    local back = json.decode('{"a": null, "l": [], "n": 1, "f": 1.0}')
    return json.encode({json.null, {}, cru.json.array({}), 1, 1.0}), back.a == json.null, json.encode(back.l), math.type(back.n),
      math.type(back.f), require('json') == json, type(json.null), tostring(json.null)"""
    assert run(VM, source) == ("[null,{},[],1,1.0]", True, "[]", "integer", "float", True, "userdata", "null")
    for source in (
        "require('cjson').decode('{')",
        "require('cjson').encode(print)",
        r"require('cjson').encode('\xff')",
    ):
        assert "no JSON" in failure(VM, source).message


def test_a_call_of_lua_gives_one_value_none_or_several() -> None:
    one, none, several = run(VM, "return function() return 1 end, function() end, function() return nil, 'e' end")

    async def calls() -> list[Any]:
        return [await one(), await none(), await several()]

    assert asyncio.run(calls()) == [1, None, (None, "e")]
    with pytest.raises(LuaError):
        asyncio.run(VM.load("error('x')", "@x.lua")())


def test_starting_a_function_gives_its_result_or_something_to_await() -> None:
    assert VM.load("return cru.who()", "@x.lua").start() == "nobody"
    waiting = VM.load("return cru.timer.sleep(0.01)", "@x.lua").start()

    async def wait() -> Any:
        return await waiting

    assert asyncio.run(wait()) == 0.01


def test_a_target_may_be_a_class() -> None:
    vm = LuaVM()
    install(vm, {"error": "cru.core.api.host:NamespaceError", "one": "cru.core.api.host:Values"})
    assert run(vm, "return cru.one({7})") == 7


def test_null_and_the_levels_of_the_log_are_values() -> None:
    vm = LuaVM()
    install(vm)
    assert run(vm, "return cru.json.null == cru.oq.null, cru.log.levels.WARN, tostring(cru.json.null)") == (
        True,
        3,
        "null",
    )
    assert run(vm, "return cru.json.encode({1, cru.json.null})") == "[1,null]"
    assert run(vm, "return require('cjson').decode('null') == cru.json.null") is True


def test_the_keys_of_some_tables_belong_to_functions() -> None:
    vm = LuaVM()
    install(vm, family.NAMES, indexed={"knobs": (f"{family.HERE}:knob", f"{family.HERE}:turn"),
                                       "http": (f"{family.HERE}:knob", "")})  # fmt: skip
    assert run(vm, "cru.knobs.heat = 3 return cru.knobs.heat, cru.knobs.other") == (3, None)
    assert run(vm, "cru.knobs.heat = nil return cru.knobs.heat") is None
    assert run(vm, "return cru.http.heat, type(cru.http.get)") == (None, "function")
    assert "cru.http.heat cannot be assigned" in failure(vm, "cru.http.heat = 1").message
    assert run(vm, "cru.http.get = function() return 'mock' end return cru.http.get()") == "mock"


def test_an_object_may_take_assignments_itself() -> None:
    assert run(VM, "local d = cru.dial() d.heat = 4 return d.heat, d:half()") == (4, 2)
    assert "no such knob" in failure(VM, "return cru.dial().colour").message
    assert "no such knob" in failure(VM, "cru.dial().colour = 1").message


def test_objects_and_functions_of_python_come_back_as_what_they_are() -> None:
    assert run(VM, "local d = cru.dial() return cru.same(d, d), cru.same(d, cru.dial())") == (True, False)
    assert run(VM, "local t = cru.tools() return t.double(4), t.later(5), cru.same(t.double, t.double)") == (8, 5, True)
