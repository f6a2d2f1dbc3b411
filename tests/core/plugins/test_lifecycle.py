"""Whatever a plugin registers is its own: unloaded, reloaded, disabled or failed, nothing of it stays."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.turn.support import World

from cru.core.plugins.discovery.places import PluginFolders
from cru.core.plugins.errors import PluginFailed, PluginInUse, UnknownPlugin
from cru.core.plugins.lua.plugins import LuaPlugins
from cru.core.plugins.manager import Extensions

EVERYTHING = """
local gone = cru.once("turn:complete", function() end)
cru.off(gone)
cru.on("tool:before_call", function() end, { pattern = "bash" })
cru.on("greeted", function() end)
cru.on_session_start(function() end)
cru.on_session_end(function() end)
cru.permissions.on_request(function() return { allow = true } end)
cru.emitter.global():on("saved", function() end, "somebody")
cru.spawn(function() cru.timer.sleep(60) end)
cru.schedule(60, function() end)
cru.publish("session_title", "mine")
cru.set_status({ key = "sync", text = "syncing" })
cru.statusline.set(nil, "branch", "main")
cru.notify_once("please update")
cru.modes.review = { permissions = "ask" }
cru.get_session().mode = "review"
cru.defaults.temperature = 0.5
cru.tools.set_active(nil, { "read" })
cru.context.attach(nil, "Today is Monday.", { key = "day" })
cru.options({ type = "group", args = { loud = { type = "toggle" } } })
package.loaded["own_word"] = { 1 }
require("config")
local beat = cru.service.define({ name = "defined", start = function() cru.timer.sleep(60) end })
%s
return {
  tools = { roll = { desc = "rolls", fn = function() return "4" end } },
  commands = { roll = { desc = "rolls", fn = function() return "4" end } },
  services = { beat = { desc = "beats", fn = function() cru.timer.sleep(60) end }, defined = beat },
  on_unload = function() cru.log("warn", "good-bye") end,
}
"""
PYTHON = """
from cru import on, spawn
import asyncio
on("turn:complete", lambda ctx, event: None)
@on("tool:failed", {"priority": 5})
def heard(ctx, event):
    return None
TOOLS = {"throw": {"desc": "throws", "fn": lambda args: "1"}}
COMMANDS = {"throw": {"desc": "throws", "fn": lambda args, ctx: "1"}}
async def forever():
    await asyncio.sleep(60)
SERVICES = {"pulse": {"desc": "beats", "fn": forever}}
def setup(cru):
    cru.spawn(forever)
    cru.defaults.max_tokens = 5
def teardown(cru):
    cru.log("warn", "good-bye")
"""


class Shelf:
    """Plugins in a folder, and a session that has them."""

    def __init__(self, tmp_path: Path, **config: Any) -> None:
        self.world = World(tmp_path, "")
        self.parts = self.world.session.parts
        self.folder = tmp_path / "home" / "plugins"
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in [name for name in sys.modules if name.startswith("cru_plugin_")]:
            del sys.modules[name]  # of another test's session
        self.extensions = Extensions(
            PluginFolders(tmp_path / "home", tmp_path / "project", {}, (), config), config, tmp_path / "home"
        )

    def put(self, name: str, text: str) -> Path:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            await self.extensions.open(self.parts)
            try:
                await work()
            finally:
                await self.extensions.close()

        asyncio.run(main())

    def states(self) -> dict[str, str]:
        return {one.name: one.state for one in self.extensions.plugins if one.discovered.layer != "bundled"}

    async def seen(self) -> dict[str, Any]:
        """All that plugins could have left; the families' own handlers belong to cru."""
        session = self.extensions.session
        assert session is not None
        lua = self.extensions.languages.get("lua")
        loaded: Any = []
        if isinstance(lua, LuaPlugins):
            source = "local names = {} for name in pairs(package.loaded) do names[#names + 1] = name end return names"
            (loaded,) = await lua.vm.run(lua.vm.load(source, "=test"))
        registry = self.parts.bus.registry
        handlers = [(h.event, h.owner) for listed in registry.by_event.values() for h in listed if h.owner != "cru"]
        return {
            "handlers": handlers,
            "tools": self.parts.tools.names(),
            "commands": [command.name for command in self.parts.services.commands.all()],
            "tasks": list(session.tasks.values()),
            "owned": {name: len(entries) for name, entries in session.owned.items()},
            "shared": {
                key: _plain(value) for key, value in session.shared.items() if key != "errors" and _plain(value)
            },
            "mode": self.parts.gate.mode,
            "loaded": sorted(map(str, loaded)),
            "modules": sorted(name for name in sys.modules if name.startswith("cru_plugin_")),
        }


def _plain(value: Any) -> Any:
    """What is kept; () for an empty shelf of a family."""
    if hasattr(value, "_listeners"):
        return value._listeners
    if hasattr(value, "live"):
        return value.live
    if hasattr(value, "own"):
        return (*value.own, value.current) if value.current else tuple(value.own)
    if hasattr(value, "keys") and hasattr(value, "used"):
        return {**value.keys, **({"used": value.used} if value.used else {})}
    return [one for one in map(_plain, value) if one] if type(value).__name__ == "WeakSet" else value


def everything(shelf: Shelf, before_end: str = "") -> None:
    shelf.put("all/init.lua", EVERYTHING % before_end)
    shelf.put("all/lua/config.lua", "return { value = 1 }")
    shelf.put("snake.py", PYTHON)


def test_what_is_unloaded_leaves_nothing(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("first.lua", "")

    async def work() -> None:
        before = await shelf.seen()
        everything(shelf)
        await shelf.extensions.reload_all()
        full = await shelf.seen()
        assert {"roll", "throw"} <= set(full["tools"]) and {"roll", "throw"} <= set(full["commands"])
        assert {"own_word", "all"} <= set(full["loaded"]) and "config" not in full["loaded"]
        assert len(full["tasks"]) == 6 and full["mode"] == "ask" and len(full["shared"]) >= 10
        for name in ("all", "snake"):
            await shelf.extensions.disable(name)
        assert await shelf.seen() == before
        assert shelf.world.notices().count("good-bye") == 2

    shelf.run(work)


def test_a_failed_load_leaves_nothing(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("first.lua", "")

    async def work() -> None:
        before = await shelf.seen()
        everything(shelf, "error('broken')")
        shelf.put(
            "snake.py",
            PYTHON + "    cru.spawn(forever)\ndef setup(cru):\n    cru.spawn(forever)\n    raise KeyError('gone')\n",
        )
        await shelf.extensions.reload_all()
        assert shelf.states() == {"all": "error", "first": "active", "snake": "error"}
        assert await shelf.seen() == before
        assert "good-bye" not in shelf.world.notices()

    shelf.run(work)


def test_reloading_changes_nothing_but_the_code(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    everything(shelf)

    async def work() -> None:
        before = await shelf.seen()
        for _ in range(3):
            await shelf.extensions.reload("all")
            await shelf.extensions.reload("snake")
        after = await shelf.seen()
        for key in ("handlers", "tools", "commands", "tasks", "loaded", "modules"):
            assert sorted(after[key]) == sorted(before[key]), key

    shelf.run(work)


def test_a_failing_good_bye_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("a.lua", "cru.on('turn:complete', function() end) return { on_unload = function() error('stay') end }")

    async def work() -> None:
        await shelf.extensions.disable("a")
        assert (await shelf.seen())["handlers"] == [] and shelf.states() == {"a": "disabled"}
        assert any("on_unload" in text and "stay" in text for text in shelf.world.notices())
        await shelf.extensions.enable("a")
        assert shelf.states() == {"a": "active"}

    shelf.run(work)


def test_what_another_depends_on_stays(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("base/init.lua", "")
    shelf.put("above/init.lua", "")
    shelf.put("above/plugin.yaml", "name: above\ndependencies: [{name: base}]\n")

    async def work() -> None:
        for refused in (shelf.extensions.reload, shelf.extensions.disable):
            with pytest.raises(PluginInUse, match="above depends on the plugin base"):
                await refused("base")
        await shelf.extensions.disable("above")
        await shelf.extensions.disable("base")
        with pytest.raises(PluginFailed, match="base"):
            await shelf.extensions.enable("above")
        await shelf.extensions.enable("base")
        await shelf.extensions.enable("above")
        assert shelf.states() == {"above": "active", "base": "active"}
        with pytest.raises(UnknownPlugin, match="no plugin basw"):
            await shelf.extensions.reload("basw")

    shelf.run(work)


def test_ten_thousand_handlers_that_went_leave_no_trace_in_the_ledger(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("busy.py", "from cru import on, off\nfor _ in range(10_000):\n    off(on('turn:complete', print))\n")

    async def work() -> None:
        session = shelf.extensions.session
        assert session is not None and len(session.owned["busy"]) == 3  # its modules, its tasks, its handlers

    shelf.run(work)


def test_a_value_of_another_plugin_holds_again(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("a.lua", "cru.defaults.temperature = 0.1")
    shelf.put("b.lua", "cru.defaults.temperature = 0.9")

    async def work() -> None:
        session = shelf.extensions.session
        assert session is not None and session.shared["defaults"].get("temperature") == 0.9
        await shelf.extensions.disable("b")
        assert session.shared["defaults"].get("temperature") == 0.1
        await shelf.extensions.disable("a")
        assert "temperature" not in session.shared["defaults"]

    shelf.run(work)


def test_what_will_have_no_effect_is_told_when_it_is_registered(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("a.lua", 'cru.on("session:idle", function() end, { pattern = "x*" })')

    async def work() -> None:
        (told,) = [text for text in shelf.world.notices() if "nothing that pattern" in text]
        assert "a.lua:1" in told and shelf.parts.bus.registry.problems == []

    shelf.run(work)


def test_changed_new_and_lost_plugins_are_seen_between_prompts(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, watch=True)
    shelf.put("a.lua", "cru.on('turn:complete', function() end)")
    shelf.put("b.lua", "cru.log('info', 'b')")

    async def work() -> None:
        await shelf.extensions.refresh()
        told = len(shelf.world.notices())
        shelf.put("a.lua", "cru.on('turn:complete', function() end) -- changed")
        shelf.put("c.lua", "cru.get_session()")
        (shelf.folder / "b.lua").unlink()
        await shelf.extensions.refresh()
        assert shelf.world.notices()[told:] == [
            "the plugin a has changed and is loaded anew",
            "the plugin b is gone and is unloaded",
            "the plugin c is new and is loaded",
        ]
        assert shelf.states() == {"a": "active", "c": "active"}
        assert len((await shelf.seen())["handlers"]) == 1
        shelf.put("a.lua", "x =")
        await shelf.extensions.refresh()
        assert shelf.states()["a"] == "active" and "plugin a is not loaded anew" in shelf.world.notices()[-1]
        assert len((await shelf.seen())["handlers"]) == 1
        told = len(shelf.world.notices())
        await shelf.extensions.refresh()
        assert len(shelf.world.notices()) == told

    shelf.run(work)


def test_in_python_on_and_once_are_decorators_and_lua_keeps_its_error(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put(
        "a.py",
        "from cru import on, once\n"
        "@on('turn:complete')\ndef plain(ctx, event): ...\n"
        "@once('tool:failed', {'priority': 3})\ndef narrow(ctx, event): ...\n"
        "assert callable(plain) and callable(narrow)\n",
    )
    shelf.put("b.lua", "cru.on('turn:complete')")

    async def work() -> None:
        registry = shelf.parts.bus.registry
        (plain,) = [h for h in registry.by_event["turn:complete"] if h.owner == "a"]
        (narrow,) = registry.by_event["tool:failed"]
        assert (plain.once, plain.priority, narrow.once, narrow.priority) == (False, 100, True, 3)
        assert shelf.states() == {"a": "active", "b": "error"}
        assert any("there is no function" in text for text in shelf.world.notices())

    shelf.run(work)


def test_once_leaves_nothing_when_it_has_been_heard(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("a.py", "from cru import once, off\nfor _ in range(2_000):\n    off(once('tool:after', print))\n")

    async def work() -> None:
        session = shelf.extensions.session
        assert session is not None and len(session.shared.get("handlers", {})) < 300

    shelf.run(work)


TASKS = """
import asyncio
async def forever():
    await asyncio.sleep(60)
async def stubborn():
    for _ in range(2):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
def setup(cru):
    asyncio.create_task(forever())
    asyncio.ensure_future(asyncio.sleep(60))
    %s
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("stubborn", [False, True])
def test_tasks_of_its_own_end_with_a_plugin_in_python(tmp_path: Path, stubborn: bool) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("tasks.py", TASKS % ("asyncio.create_task(stubborn())" if stubborn else ""))
    started: list[int] = []

    async def work() -> None:
        count = 3 if stubborn else 2
        mine = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        started.append(len(asyncio.all_tasks()) - 2)
        await shelf.extensions.reload("tasks")
        await asyncio.sleep(0)
        started.append(len(asyncio.all_tasks()) - 2)
        await shelf.extensions.disable("tasks")
        assert not mine.cancelled() and started == [count, count + stubborn]
        left = [t for t in asyncio.all_tasks() if t not in (mine, asyncio.current_task())]
        assert len(left) == 2 * stubborn

    shelf.run(work)
    told = [text for text in shelf.world.notices() if "does not end and is left" in text]
    assert len(told) == 2 * stubborn and all("tasks (" in text and "tasks.py:" in text for text in told)
