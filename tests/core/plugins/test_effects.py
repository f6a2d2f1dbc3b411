"""Plugins that are loaded and do nothing: which of them are told, and which are libraries or have said something."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.plugins.test_lifecycle import Shelf

from cru.core.plugins.listing import plugin_rows

USER = "local tools = require('kit')\ncru.on('turn:complete', function() return tools.f() end)\n"
LIBRARY = "local M = {}\nfunction M.f() end\nreturn M\n"
HANDLER = "cru.on('tool:before_call', function() end)\n"
MANIFEST = "name: guard\ndependencies:\n  - name: kit\n    optional: true\n"

# what → the files; the plugins that are told
IDLE: dict[str, tuple[dict[str, str], list[str]]] = {
    "an empty file": ({"kit.lua": ""}, ["kit"]),
    "a comment": ({"kit.lua": "-- cru.on('turn:complete', f)\n"}, ["kit"]),
    "handlers in a table that nobody reads": ({"kit.py": "HANDLERS = {'on': print}\ndef on_call(ctx, event): ...\n"}, ["kit"]),
    "a library that nobody uses": ({"kit.lua": LIBRARY}, ["kit"]),
    "a library": ({"kit.lua": LIBRARY, "user.lua": USER}, []),
    "a library of several files": ({"lib/kit.lua": LIBRARY, "lib/more.lua": LIBRARY, "user.lua": USER}, []),
    "a library that a handler loads": ({"kit.lua": LIBRARY, "user.lua": f"cru.on('turn:complete', function() {USER} end)"}, []),
    "a dependency": ({"kit.lua": LIBRARY, "guard/plugin.yaml": MANIFEST, "guard/init.lua": HANDLER}, []),
    "a name that only resembles it": ({"kit.lua": LIBRARY, "user.lua": USER.replace("'kit'", "'json'") + "-- require kits"}, ["kit"]),
    "a handler": ({"kit.lua": HANDLER}, []),
    "a condition that it asks cru about": ({"kit.lua": "if cru.paths.workspace() == '/none' then " + HANDLER + " end"}, []),
    "what says that there is nothing to do": ({"kit.lua": "cru.log('debug', 'not here')"}, []),
    "a print": ({"kit.lua": "print('here')"}, []),
    "a tool": ({"kit.py": "TOOLS = {'t': {'desc': 'd', 'fn': print}}\n"}, []),
    "a set-up that asks": ({"kit.py": "def setup(cru):\n    cru.log('debug', 'x')\n"}, []),
}  # fmt: skip


@pytest.mark.parametrize("what", IDLE)
def test_a_plugin_without_effect_is_told_and_listed(tmp_path: Path, what: str) -> None:
    files, expected = IDLE[what]
    shelf = Shelf(tmp_path)
    for name, text in files.items():
        shelf.put(name, text)

    async def work() -> None:
        notices = [text for text in shelf.world.notices() if "this plugin has no effect" in text]
        assert [text.partition(":")[0] for text in notices] == expected
        states = {row["name"]: row["state"] for row in plugin_rows(shelf.extensions) if row["layer"] == "user"}
        assert [name for name, state in states.items() if state == "no effect"] == expected

    shelf.run(work)


def test_a_plugin_that_becomes_empty_is_told_when_it_is_loaded_anew(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, watch=True)
    shelf.put("guard.lua", HANDLER)

    async def work() -> None:
        shelf.put("guard.lua", "-- later\n")
        await shelf.extensions.refresh()
        assert any("this plugin has no effect" in text for text in shelf.world.notices())

    shelf.run(work)
