"""A plugin that cannot be loaded anew holds on as it was: a rule does not end because its file is half written."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.core.plugins.test_lifecycle import Shelf, everything

from cru.core.plugins.errors import PluginFailed
from cru.core.plugins.listing import plugin_rows

RULE = "cru.on('tool:before_call', function() return { cancel = true, reason = 'no' } end)"
# What becomes of the rule's file → what is said of it.
BROKEN = {
    "half written": (RULE[:40], "rule.lua"),
    "empty": ("", "it is empty"),
    "raising": (f"{RULE}\nlocal function deep() error('no') end\ndeep()", "rule.lua:2: no"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_reload_that_fails_keeps_the_version_before_and_the_next_one_mends_it(tmp_path: Path, what: str) -> None:
    shelf = Shelf(tmp_path, watch=True)
    text, said = BROKEN[what]
    shelf.put("rule.lua", RULE)

    async def work() -> None:
        before = await shelf.seen()
        shelf.put("rule.lua", text)
        with pytest.raises(PluginFailed) as caught:
            await shelf.extensions.reload("rule")
        assert said in caught.value.message and "the version before stays active" in caught.value.message
        assert shelf.states() == {"rule": "active"} and await shelf.seen() == before
        assert "the version before is active" in str(plugin_rows(shelf.extensions))
        assert await shelf.extensions.reload_all() == ["rule"]
        assert said in shelf.world.notices()[-1] and await shelf.seen() == before
        shelf.put("rule.lua", f"{RULE} -- mended")
        await shelf.extensions.refresh()
        assert "rule has changed and is loaded anew" in shelf.world.notices()[-1]
        assert await shelf.seen() == before and "the version before" not in str(plugin_rows(shelf.extensions))

    shelf.run(work)


def test_a_failed_reload_comes_with_its_traceback(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("rule.lua", RULE)

    async def work() -> None:
        shelf.put("rule.lua", BROKEN["raising"][0])
        with pytest.raises(PluginFailed) as caught:
            await shelf.extensions.reload("rule")
        assert "stack traceback" in caught.value.hint and "rule.lua:3" in caught.value.hint

    shelf.run(work)


def test_the_version_before_has_its_modules_in_both_languages(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, watch=True)
    everything(shelf)
    shelf.put("pack/__init__.py", "from . import rules\nfrom cru import on\non('turn:complete', rules.heard)")
    shelf.put("pack/rules.py", "def heard(ctx, event): return None")

    async def work() -> None:
        before = await shelf.seen()
        for name in ("all/init.lua", "snake.py", "pack/__init__.py"):
            shelf.put(name, "this is no program (")
        await shelf.extensions.refresh()
        after = await shelf.seen()
        for key in ("handlers", "tools", "commands", "tasks", "loaded"):
            assert sorted(after[key]) == sorted(before[key]), key
        assert set(shelf.states().values()) == {"active"}

    shelf.run(work)
