"""Files in messages of Lua have their whole names, and those that a person knows them by."""

from __future__ import annotations

import pytest

from cru.core.plugins.lua.convert import LuaError
from cru.core.plugins.lua.file_names import FileNames
from cru.core.plugins.lua.runtime import LuaVM

LONG = f"/home/somebody/{'a folder/' * 8}plugin.lua"


@pytest.mark.parametrize("length", [58, 59, 60, 61, 200])
def test_a_file_is_named_whole_in_messages_and_tracebacks(length: int) -> None:
    file = "/" + "a" * (length - 1)
    vm = LuaVM()
    with pytest.raises(LuaError) as caught:
        vm.start(vm.load("local x = 1\nerror('no')", f"@{file}"))
    assert (str(caught.value), caught.value.where) == (f"{file}:2: no", f"{file}:2")
    assert f"{file}:2: in " in caught.value.traceback and "..." not in caught.value.traceback
    with pytest.raises(LuaError) as caught:
        vm.load("x =", f"@{file}x")
    assert str(caught.value).startswith(f"{file}x:1: ") and caught.value.where == f"{file}x:1"


def test_a_copy_is_named_as_the_file_that_a_person_edits() -> None:
    vm = LuaVM()
    vm.names.add(f"/copy{LONG}", LONG)
    vm.names.add("/copy/b.lua", "/b.lua")
    for copy, file in ((f"/copy{LONG}", LONG), ("/copy/b.lua", "/b.lua")):
        with pytest.raises(LuaError) as caught:
            vm.start(vm.load("error('no')", f"@{copy}"))
        assert (str(caught.value), caught.value.where) == (f"{file}:1: no", f"{file}:1")
        assert vm.start(vm.load("return function() end", f"@{copy}"))[0].where == f"{file}:1"  # type: ignore[index]


def test_a_name_that_may_mean_two_files_stays_as_lua_writes_it() -> None:
    names = FileNames()
    names.add(f"/a{LONG}", f"/a{LONG}")
    names.add(f"/b{LONG}", f"/b{LONG}")
    cut = f"...{LONG[-56:]}:3: no"
    assert names.restore(cut) == cut


def test_a_part_of_another_name_is_left_alone() -> None:
    names = FileNames()
    names.add("/copy/a.lua", "/a.lua")
    text = "/x/copy/a.lua:1: /copy/a.luac /copy/a.lua-b"
    assert names.restore(text) == text
    assert names.restore("in '/copy/a.lua', </copy/a.lua:3>") == "in '/a.lua', </a.lua:3>"


def test_places_of_functions_cost_the_same_however_many_files_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    names = FileNames()
    monkeypatch.setattr("cru.core.plugins.lua.file_names.re.sub", pytest.fail)
    for number in range(300):
        file = f"{LONG[:-4]}{number:08}.lua"
        names.add(file, file)
        assert names.restore(f"...{file[-56:]}:{number}") == f"{file}:{number}"
