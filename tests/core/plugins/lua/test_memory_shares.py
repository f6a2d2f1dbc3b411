"""A plugin that takes all the memory it may have is refused more; the others have theirs."""

from __future__ import annotations

import asyncio

import pytest
from tests.core.plugins.lua.support import run

from cru.core.plugins.lua.convert import LuaError
from cru.core.plugins.lua.runtime import LuaVM

HOARD = "_G.{name} = {{}} while true do {name}[#{name} + 1] = ('x'):rep(1000) .. #{name} end"
CHURN = "for i = 1, 200 do local _ = ('x'):rep(20000) .. i end"


class Shared:
    """One machine, in which a call is somebody's."""

    def __init__(self) -> None:
        self.owner = ""
        self.vm = LuaVM(memory_mb=8, total_mb=32, owner=lambda: self.owner)

    def run(self, owner: str, source: str) -> object:
        self.owner = owner
        try:
            return run(self.vm, source)
        finally:
            self.owner = ""


@pytest.fixture
def shared() -> Shared:
    return Shared()


def fill(shared: Shared, owner: str) -> None:
    with pytest.raises(LuaError, match="not enough memory"):
        shared.run(owner, HOARD.format(name=owner))


def test_a_plugin_that_fills_its_share_leaves_the_others_theirs(shared: Shared) -> None:
    fill(shared, "greedy")
    assert shared.run("guard", "local t = {} for i = 1, 5000 do t[i] = ('x'):rep(1000) .. i end return #t") == 5000
    with pytest.raises(LuaError, match="not enough memory"):
        shared.run("greedy", "return 1")


def test_what_one_lets_go_is_its_own_again(shared: Shared) -> None:
    fill(shared, "greedy")
    run(shared.vm, "_G.greedy = nil")  # somebody else lets it go
    assert shared.run("greedy", "return 1") == 1


@pytest.mark.slow
def test_garbage_is_not_held(shared: Shared) -> None:
    for _ in range(20):
        shared.run("busy", CHURN)
    assert shared.run("busy", "return 1") == 1
    assert shared.vm.memory_used() < 9 << 20


def test_all_together_have_a_limit_too(shared: Shared) -> None:
    for name in ("one", "two", "three"):
        fill(shared, name)
    fill(shared, "four")
    assert shared.vm.memory_used() <= 32 << 20
    with pytest.raises(LuaError, match="not enough memory"):
        shared.run("five", "local t = {} for i = 1, 5000 do t[i] = ('x'):rep(1000) .. i end return #t")


def test_a_call_within_a_call_is_counted_to_its_own_plugin(shared: Shared) -> None:
    def hoard() -> None:
        shared.owner = "inner"
        with pytest.raises(LuaError):
            shared.vm.start(shared.vm.load(HOARD.format(name="inner"), "=inner"))
        shared.owner = "outer"

    shared.vm.set_global("hoard", hoard)
    source = "hoard() local t = {} for i = 1, 3000 do t[i] = ('x'):rep(1000) .. i end return #t"
    assert shared.run("outer", source) == 3000
    assert shared.run("outer", "return 1") == 1


def test_an_error_without_a_message_is_told_as_one(shared: Shared) -> None:
    for source in ('error({message = ""})', 'error("", 0)', 'error("")', 'error("  ", 0)'):
        with pytest.raises(LuaError, match=r"test\.lua:1: an error without a message"):
            asyncio.run(shared.vm.run(shared.vm.load(source, "@test.lua")))
