"""cru.on and cru.once: how Python says options."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.api.support import Room
from tests.kit import HomeDir, Reply, cru, server

from cru.core.api import on
from cru.core.api.event_table.table import ALIASES, known_events
from cru.core.api.host import BadArgument
from cru.core.events.payloads import Custom
from cru.core.events.registry import Handler


def listen(ctx: Any, event: Any) -> None: ...


def registered(tmp_path: Path, work: Callable[[], Any]) -> list[Handler]:
    room = Room(tmp_path)
    room(work)
    handlers = [one for rows in room.parts.bus.registry.by_event.values() for one in rows]
    return [one for one in handlers if one.owner == "demo"]


WAYS: dict[str, Callable[[], Any]] = {
    "keywords": lambda: on.on("tool:before_call", listen, pattern="bash", priority=10),
    "a table": lambda: on.on("tool:before_call", listen, {"pattern": "bash", "priority": 10}),
    "a table before the function": lambda: on.on("tool:before_call", {"pattern": "bash", "priority": 10}, listen),
    "both": lambda: on.on("tool:before_call", listen, {"pattern": "bash", "priority": 1}, priority=10),
    "a decorator": lambda: on.on("tool:before_call", pattern="bash", priority=10)(listen),
    "a decorator with both": lambda: on.on("tool:before_call", {"pattern": "bash"}, priority=10)(listen),
}


@pytest.mark.parametrize("way", WAYS)
def test_options_may_be_keywords(tmp_path: Path, way: str) -> None:
    (handler,) = registered(tmp_path, WAYS[way])
    assert (handler.pattern, handler.priority, handler.once) == ("bash", 10, False)


def test_once_takes_them_too(tmp_path: Path) -> None:
    (handler,) = registered(tmp_path, lambda: on.once("tool:before_call", pattern="bash")(listen))
    assert (handler.pattern, handler.once) == ("bash", True)


def test_an_unknown_keyword_names_the_closest_option(tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match="unknown option `patern`") as told:
        Room(tmp_path)(lambda: on.on("tool:before_call", listen, patern="bash"))
    assert "pattern" in told.value.hint


def test_a_plugin_in_python_may_write_keywords(home: HomeDir) -> None:
    plugins = home.cru / "plugins"
    plugins.mkdir(parents=True)
    (plugins / "a.py").write_text(
        "from cru import on\n"
        '@on("tool:before_call", pattern="ba*", priority=7)\n'
        "def no_rm(ctx, event):\n"
        '    return {"cancel": True, "reason": "not here"}\n'
    )
    model = home.project / "model.txt"
    model.write_text('by: order\ncall: bash {"command": "ls"}\n---\ntext: Well.\n')
    home.configure(f'model = "scripted:{model}"\n')
    assert "Blocked by a: not here" in cru("-t", "look", home=home).err
    assert "tool:before_call priority 7 pattern ba* " in cru("plugin", "list", home=home).out


SILENT = [name for name, alias in ALIASES.items() if alias.never]


def test_names_of_crucible_that_have_no_moment_here_are_known() -> None:
    assert set(SILENT) == {
        *("precognition_format", "tool:display_start", "tool:display_complete", "FileDeleted", "FileMoved"),
        "webhook:received",
    }
    assert set(SILENT) <= set(known_events())


@pytest.mark.parametrize("name", SILENT)
def test_a_handler_of_such_a_name_is_told_and_heard_if_a_script_emits_it(tmp_path: Path, name: str) -> None:
    room, heard = Room(tmp_path), list[str]()
    room(lambda: on.on(name, lambda ctx, event: heard.append(event["name"])))
    assert room.host.plugin.problems == []
    assert [text for text in room.notices() if f"`{name}` never fires: {ALIASES[name].never}" in text]
    asyncio.run(room.parts.bus.dispatch(Custom(name, {})))
    assert heard == [name]


@pytest.mark.slow
@pytest.mark.parametrize("file", ["a.lua", "a.py"])
def test_strict_hooks_do_not_refuse_a_plugin_for_such_a_name(home: HomeDir, file: str) -> None:
    (home.cru / "plugins").mkdir(parents=True)
    texts = {
        "a.lua": "cru.on('precognition_format', function() return 'x' end)\n",
        "a.py": "from cru import on\n@on('precognition_format')\ndef f(ctx, event): return 'x'\n",
    }
    (home.cru / "plugins" / file).write_text(texts[file])
    with server([Reply("fine")]) as model:
        home.configure(url=model.url)
        run = cru("--strict-hooks", "go", home=home)
    assert (run.code, run.out) == (0, "fine\n") and "`precognition_format` never fires" in run.err
    assert "0 broken" in cru("hooks", "check", home=home).out
