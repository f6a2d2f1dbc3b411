from __future__ import annotations

import gc
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.plugins.lua.support import failure, run

from cru.core.api.event_table.lazy import Lazy, LazyDict
from cru.core.plugins.lua.convert import LuaData, LuaError
from cru.core.plugins.lua.runtime import LuaFunction, LuaTable, LuaVM

VM = LuaVM()
ECHO = VM.load("return ...", "@echo.lua")
REBUILD = VM.load(
    """local function copy(v)
         if type(v) ~= "table" then return v end
         local t = setmetatable({}, getmetatable(v))
         for k, x in pairs(v) do t[k] = copy(x) end
         return t
       end
       return copy(...)""",
    "@rebuild.lua",
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
SCALARS = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | TEXT
    | st.binary(max_size=40).map(lambda b: b.decode("utf-8", "surrogateescape"))
)
DATA = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner | st.none(), max_size=6)
        | st.dictionaries(TEXT | st.integers(-(2**63), 2**63 - 1), inner, max_size=6)
    ),
    max_leaves=20,
)


def same(a: Any, b: Any) -> bool:
    """Equal, and of the same types all the way down."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(a == b)


@pytest.mark.slow
@given(DATA)
@settings(max_examples=150, deadline=None)
def test_data_comes_back_from_lua_as_it_went_in(value: Any) -> None:
    outcome = VM.start(ECHO, value)
    assert isinstance(outcome, tuple)
    assert same(outcome[0], value)


@pytest.mark.slow
@given(DATA)
@settings(max_examples=100, deadline=None)
def test_tables_that_lua_builds_of_the_same_parts_are_the_same_data(value: Any) -> None:
    outcome = VM.start(REBUILD, value)
    assert isinstance(outcome, tuple)
    assert same(outcome[0], value)


def test_null_is_nil_in_a_dict_and_keeps_its_place_in_a_list() -> None:
    assert run(VM, "local t = ... return t.x == nil, #t.l, t.l[3]", {"x": None, "l": [1, None, 3]}) == (True, 3, 3)


def test_integers_and_floats_stay_what_they_are() -> None:
    assert run(VM, "return string.format('%d', ...), math.type(1.0), math.type(...)", 7) == ("7", "float", "integer")
    assert [type(x) for x in run(VM, "return 1, 1.0, 3 // 1")] == [int, float, int]


def test_an_integer_beyond_64_bits_becomes_a_float() -> None:
    assert run(VM, "return ...", 2**63, [2**70]) == (float(2**63), [float(2**70)])


def test_not_a_number_and_infinity_pass() -> None:
    nan, infinity = run(VM, "return 0/0, ...", math.inf)
    assert math.isnan(nan)
    assert infinity == math.inf


def test_an_empty_table_is_a_dict_and_an_empty_list_stays_a_list() -> None:
    assert run(VM, "return {}, ...", []) == ({}, [])


def test_a_table_with_text_keys_and_a_list_part_is_a_dict() -> None:
    assert run(VM, "return {1, 2, x = 3}, {1, nil, 3}, {[2] = 'b'}") == ({1: 1, 2: 2, "x": 3}, {1: 1, 3: 3}, {2: "b"})


def test_bytes_that_are_no_text_survive_both_ways() -> None:
    assert run(VM, r"return '\xff\xfe', #...", "\udcff\udcfeé") == ("\udcff\udcfe", 4)
    assert run(VM, "return #...", b"\x00\xff") == 2


def test_ten_megabytes_of_text_pass() -> None:
    text = "é" * 5_000_000
    assert run(VM, "return ...", text) == text


@pytest.mark.parametrize("source", ["t.t = t return t", "t[1] = {t} return t"])
def test_a_table_that_contains_itself_is_an_error(source: str) -> None:
    assert "contains itself" in failure(VM, f"local t = {{}} {source}").message


def test_a_hundred_levels_pass_and_more_do_not() -> None:
    build = "local t = {} for _ = 2, %d do t = {t} end return t"
    run(VM, build % 100)
    assert "deeper than 100" in failure(VM, build % 101).message
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    assert "deeper than 100" in failure(VM, "return 1", deep).message


def test_a_python_value_that_contains_itself_is_an_error() -> None:
    knot: list[Any] = []
    knot.append(knot)
    with pytest.raises(LuaData):
        VM.start(ECHO, knot)


@pytest.mark.parametrize(
    "source", ["return io.stdout", "return coroutine.create(print)", "return {[true] = 1}", "return {[1.5] = 1}"]
)
def test_what_is_no_data_is_an_error(source: str) -> None:
    assert "is no data" in failure(VM, source).message


@pytest.mark.parametrize("value", [object(), int, {1.5: 1}, {("a",): 1}, 1j])
def test_a_python_value_without_counterpart_is_an_error(value: Any) -> None:
    with pytest.raises(LuaError):
        VM.start(ECHO, value)


def test_a_function_is_itself_again() -> None:
    first, second = run(VM, "f = function() return 5 end return f, {f}")
    assert isinstance(first, LuaFunction)
    assert second[0] is first
    assert run(VM, "local a, b = ... return a == b, a()", first, first) == (True, 5)
    assert first.where == "test.lua:1"


def test_a_python_function_is_a_lua_function_and_comes_back_as_itself() -> None:
    def double(x: int) -> int:
        return x * 2

    kind, value, back = run(VM, "local f = ... return type(f), f(4), f", double)
    assert (kind, value) == ("function", 8)
    assert back is double


def test_a_dropped_function_is_let_go_in_lua() -> None:
    vm = LuaVM()
    function = run(
        vm,
        "weak = setmetatable({}, {__mode = 'k'}) local f = function() return weak end weak[f] = true _G.weak = weak return f",
    )
    alive = "collectgarbage() return next(weak) ~= nil"
    assert run(vm, alive) is True
    del function
    gc.collect()
    assert run(vm, alive) is False


def test_a_dropped_python_function_is_let_go_in_python() -> None:
    vm = LuaVM()
    before = len(vm.converter.hosts)
    run(vm, "local f = ... f = nil", len)
    run(vm, "collectgarbage() collectgarbage()")
    run(vm, "return 1")
    assert len(vm.converter.hosts) == before


def test_a_table_is_held_by_reference() -> None:
    table = VM.table({"a": {"b": 1}})
    run(VM, "local t = ... t.a.b = 2 t.f = function() return 3 end", table)
    inner = table.open("a")
    assert isinstance(inner, LuaTable)
    assert (inner.get("b"), table.open("zzz")) == (2, None)
    table.set("c", [1])
    assert VM.to_python(table)["c"] == [1]


def test_a_lazy_field_of_an_event_is_made_on_first_access_and_once() -> None:
    made: list[int] = []

    def make() -> list[str]:
        made.append(1)
        return ["m"]

    assert run(VM, "local e = ... return e.a, rawlen(e)", LazyDict(a=1, messages=Lazy(make))) == (1, 0)
    assert made == []
    assert run(VM, "local e = ... return e.messages[1], e.messages[1]", LazyDict(messages=Lazy(make))) == ("m", "m")
    assert made == [1]


@pytest.mark.parametrize(
    ("change", "back"),
    [
        ("", {}),
        ("local _ = e.small", {"small": {"x": 1}}),
        ("e.small.x = 2", {"small": {"x": 2}}),
        ("e.big[2] = 3", {"big": ["m", 3]}),
        ("e.a = 2 e.b = 'b' e.c = nil", {"a": 2}),
        ("e.new = {y = 1}", {"new": {"y": 1}}),
        ("e.inner.x = 2", {"inner": {"x": 2}}),
    ],
)
def test_a_returned_event_is_what_differs_and_its_type(change: str, back: dict[str, Any]) -> None:
    inner = LazyDict(x=1, y=Lazy(lambda: ["y"]))
    event = LazyDict(
        type="t",
        a=1,
        b="b",
        c=True,
        small=Lazy(lambda: None, {"x": 1}),
        big=Lazy(lambda: ["m"]),
        inner=Lazy(lambda: inner),
    )
    assert run(VM, f"local e = ... {change} return e", event) == {"type": "t", **back}


@pytest.mark.parametrize("source", ["return {e}", "return nil, 1, {e = e}", "return f(e)"])
def test_an_event_that_goes_elsewhere_is_whole(source: str) -> None:
    event = LazyDict(a=1, small=Lazy(lambda: None, {"x": 1}), big=Lazy(lambda: ["m"]))
    found = run(VM, f"local e, f = ... {source}", event, lambda given: [given])
    whole = {"a": 1, "small": {"x": 1}, "big": ["m"]}
    assert found in ([whole], (None, 1, {"e": whole}))


@pytest.mark.parametrize("walk", ["for k in pairs(e) do", "for k in next, e do"])
def test_a_walk_meets_every_field_of_an_event(walk: str) -> None:
    event = LazyDict(a=1, small=Lazy(lambda: None, {}), big=Lazy(lambda: ["m"]))
    assert run(VM, f"local e, n = ..., 0 {walk} n = n + 1 end return n", event) == 3


def test_a_field_that_is_no_mere_data_is_held_only_while_it_is_used() -> None:
    vm = LuaVM()
    before = len(vm.converter.hosts)
    for _ in range(50):
        assert (
            run(vm, "local e = ... return e.a", LazyDict(a=1, f=Lazy(lambda: len, len), n=Lazy(lambda: 2**70, 2**70)))
            == 1
        )
    assert run(
        vm, "local e = ... return e.f('abc'), e.n", LazyDict(f=Lazy(lambda: len, len), n=Lazy(lambda: 2**70))
    ) == (
        3,
        float(2**70),
    )
    run(vm, "collectgarbage() collectgarbage()")
    run(vm, "return 1")
    assert len(vm.converter.hosts) == before


def test_one_dict_in_two_places_makes_two_tables() -> None:
    shared = {"x": 1}
    event = {"payload": shared, "flat": shared}
    assert run(VM, "local e = ... e.flat.x = 2 return e.payload.x", event) == 1
