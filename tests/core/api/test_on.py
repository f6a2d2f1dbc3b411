"""cru.on and cru.once: how Python says options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.api.support import Room
from tests.kit import HomeDir, cru

from cru.core.api import on
from cru.core.api.host import BadArgument
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
