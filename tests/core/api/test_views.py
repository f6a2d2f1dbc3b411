"""service, publish, status and oil."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.api.support import Room

from cru.core.api import options, publish, service
from cru.core.api.host import BadArgument, host
from cru.core.api.oil import nodes
from cru.core.api.oil.markup import markup
from cru.core.events.stream import FactPublished, StatusChanged


def test_a_service_runs_beside_everything_until_it_is_stopped(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def start(config: dict[str, Any]) -> None:
        seen.append((host().plugin.name, config))
        await asyncio.sleep(30)

    async def main() -> None:
        made = service.define({"name": "bot", "desc": "a bot", "start": start, "stop": lambda: seen.append("stop"),
                               "health": lambda: True, "config": {"room": {"default": "x"}, "who": {}, "plain": 3}})  # fmt: skip
        assert made["desc"] == "a bot"
        assert await service.status("bot") == {"running": False, "healthy": True, "name": "bot", "desc": "a bot"}
        assert await made["fn"]() is True
        await asyncio.sleep(0.01)
        assert await made["fn"]() is False
        (listed,) = await service.list_()
        assert listed["running"] is True
        assert await service.stop("bot") is True
        assert await service.stop("bot") is False

    Room(tmp_path, config={"who": "me"})(main)
    assert seen == [("demo", {"room": "x", "who": "me", "plain": 3}), "stop"]


def test_a_service_starts_again_until_it_says_that_this_is_useless(tmp_path: Path) -> None:
    room, count = Room(tmp_path), []

    class Useless(Exception):
        original = {"retryable": False, "message": "no token"}

    def start(_config: dict[str, Any]) -> None:
        count.append(1)
        if len(count) < 3:
            raise ValueError("again")
        raise Useless

    async def main() -> None:
        await service.define({"name": "bot", "start": start, "restart": {"base_delay": 0.001}})["fn"]()
        await asyncio.sleep(0.1)
        assert (await service.status("bot"))["running"] is False  # type: ignore[index]

    room(main)
    assert len(count) == 3
    assert "service bot" in room.notices()[-1]


def test_a_secret_comes_from_the_environment_and_a_failing_health_is_unhealthy(tmp_path: Path) -> None:
    room = Room(tmp_path, config={"bot_token": "from config"})
    seen: list[Any] = []
    room.parts.place.env = {**room.parts.place.env, "CRUCIBLE_MY_BOT_BOT_TOKEN": "secret"}

    def unwell() -> None:
        raise ValueError

    async def main() -> None:
        spec = {"name": "my-bot", "start": seen.append, "health": unwell, "config": {"bot_token": {"secret": True}}}
        await service.define(spec)["fn"]()
        await asyncio.sleep(0.01)
        assert (await service.status("my-bot"))["healthy"] is False  # type: ignore[index]

    room(main)
    assert seen == [{"bot_token": "secret"}]
    assert room(service.status, "other") is None
    for bad in ({}, {"name": "x"}, {"name": 1, "start": print}, {"name": "x", "start": print, "stop": 1}):
        with pytest.raises(BadArgument, match=r"cru\.service\.define"):
            room(service.define, bad)


def test_facts_and_status_reach_the_stream(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room(publish.publish, "session_title", "A day at sea")
    room(publish.set_status, {"key": "sync", "text": "syncing", "level": "warn", "progress": 3})
    room(publish.clear_status, {"key": "sync"})
    assert room.world.of(FactPublished) == [FactPublished("demo", "session_title", "A day at sea")]
    assert room.world.of(StatusChanged) == [
        StatusChanged("demo", "sync", "syncing", "warn", 1.0),
        StatusChanged("demo", "sync", ""),
    ]


BAD_STATUS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (publish.publish, ("session_titel", "x")),
    (publish.publish, ("targets", print)),
    (publish.set_status, ({"text": "x"},)),
    (publish.set_status, ({"key": "x", "level": "loud"},)),
    (publish.set_status, ({"key": "x", "progress": "half"},)),
    (publish.set_status, ({"key": "x", "session": "elsewhere"},)),
    (publish.clear_status, ({},)),
]


@pytest.mark.parametrize(("function", "args"), BAD_STATUS)
def test_a_status_that_does_not_fit_is_refused(
    tmp_path: Path, function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    with pytest.raises(BadArgument):
        Room(tmp_path)(function, *args)


def test_the_statusline_takes_sixteen_short_values(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert room(publish.statusline_set, None, "branch", "main") == {"ok": True, "value": "main", "unchanged": False}
    assert room(publish.statusline_set, None, "branch", "main")["unchanged"] is True
    assert len(room(publish.statusline_set, None, "long", "x" * 999)["value"]) == 256
    for n in range(14):
        assert room(publish.statusline_set, None, f"k{n}", n)["ok"] is True
    assert room(publish.statusline_set, None, "one more", 1) == {"ok": False, "reason": "a session takes 16 keys"}
    assert room(publish.statusline_clear, None, "branch") == {"ok": True, "unchanged": False}
    assert room(publish.statusline_clear, None, "branch") == {"ok": True, "unchanged": True}
    assert room(publish.statusline_set, None, "one more", 1)["ok"] is True
    assert room(publish.statusline_set, "elsewhere", "k", 1)["ok"] is False
    assert room(publish.statusline_clear, None, 7)["ok"] is False


def shown(node: Any) -> tuple[str, dict[str, Any], list[str]]:
    assert isinstance(node, nodes.Node)
    return node.kind, node.props, [child.kind for child in node.children]


NODES: list[tuple[Callable[[], Any], tuple[str, dict[str, Any], list[str]]]] = [
    (lambda: nodes.text("hi"), ("text", {"text": "hi"}, [])),
    (lambda: nodes.text(None), ("text", {"text": ""}, [])),
    (lambda: nodes.text(1.5, {"fg": "RED", "bold": True}), ("text", {"text": "1.5", "style": {"fg": "red", "bold": True}}, [])),
    (lambda: nodes.text("x", {"fg": "dark-grey", "bg": "rgb(1, 2,255)"}),
     ("text", {"text": "x", "style": {"fg": "darkgray", "bg": "#0102ff"}}, [])),
    (lambda: nodes.col("a", None, nodes.hr()), ("col", {}, ["text", "hr"])),
    (lambda: nodes.row({"gap": 1, "justify": "space-between", "align": "end", "border": "odd", "fg": "nope", "bold": True}, "a"),
     ("row", {"gap": 1, "justify": "space_between", "align": "end", "border": "single", "bold": True}, ["text"])),
    (lambda: nodes.fragment("a", 1, None, print, nodes.spacer()), ("fragment", {}, ["text", "spacer"])),
    (lambda: nodes.scrollback("key", "a"), ("fragment", {}, ["text"])),
    (lambda: nodes.spinner("x"), ("spinner", {"label": "x"}, [])),
    (lambda: nodes.progress(7), ("progress", {"value": 1.0, "width": 20}, [])),
    (lambda: nodes.badge("new", {"dim": True}), ("badge", {"label": "new", "style": {"dim": True}}, [])),
    (nodes.divider, ("divider", {"char": "─", "width": 80}, [])),
    (nodes.input, ("input", {"value": "", "cursor": 0, "focused": True}, [])),
    (lambda: nodes.input({"focused": False, "placeholder": "p"}),
     ("input", {"value": "", "cursor": 0, "focused": False, "placeholder": "p"}, [])),
    (lambda: nodes.popup(["a", {"label": "b"}]),
     ("popup", {"items": [{"label": "a"}, {"label": "b"}], "selected": 0, "max_visible": 10}, [])),
    (lambda: nodes.bullet_list(["a", 1]), ("bullet_list", {"items": ["a", "1"]}, [])),
    (lambda: nodes.numbered_list([]), ("numbered_list", {"items": []}, [])),
    (lambda: nodes.kv("k", 1), ("kv", {"key": "k", "value": "1"}, [])),
    (lambda: nodes.when(True, "a"), ("text", {"text": "a"}, [])),
    (lambda: nodes.when(None, "a"), ("empty", {}, [])),
    (lambda: nodes.either(False, "a", "b"), ("text", {"text": "b"}, [])),
    (lambda: nodes.text("a").with_padding(1).with_margin(2).with_border().gap(3).justify("center").align("stretch"),
     ("text", {"text": "a", "padding": 1, "margin": 2, "border": "single", "gap": 3, "justify": "center", "align": "stretch"}, [])),
    (lambda: nodes.text("a", {"bold": True}).with_style({"fg": "#A0b1C2"}),
     ("text", {"text": "a", "style": {"bold": True, "fg": "#a0b1c2"}}, [])),
]  # fmt: skip


@pytest.mark.parametrize(("make", "node"), NODES)
def test_a_node_is_plain_data(
    tmp_path: Path, make: Callable[[], Any], node: tuple[str, dict[str, Any], list[str]]
) -> None:
    assert shown(Room(tmp_path)(make)) == node


BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: nodes.text(True), "content must be text or a number, got boolean"),
    (lambda: nodes.text("x", {"fg": "blurple"}), "unknown colour `blurple`"),
    (lambda: nodes.text("x", {"fg": "rgb(1,2,256)"}), "unknown colour"),
    (lambda: nodes.text("x", {"bold": "yes"}), "bold must be a boolean"),
    (lambda: nodes.col("a", 1), "child at position 2 has type 'number'"),
    (lambda: nodes.row("a", {"gap": 1}), "child at position 2 has type 'table'"),
    (lambda: nodes.row({"gap": 1}, True), "child at position 2 has type 'boolean'"),
    (lambda: nodes.col({"label": "x"}), "child at position 1 has type 'table'"),
    (lambda: nodes.col({"gap": -1}), "gap must be"),
    (lambda: nodes.col({"align": "up"}), "align must be one of"),
    (lambda: nodes.when(1, "a"), "condition must be a boolean"),
    (lambda: nodes.progress("x"), "value must be a number"),  # type: ignore[arg-type]
    (lambda: nodes.text("x").justify("left"), "justify must be one of"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_a_node_that_does_not_fit_is_refused(tmp_path: Path, make: Callable[[], Any], message: str) -> None:
    with pytest.raises(BadArgument, match=message):
        Room(tmp_path)(make)


def test_nodes_are_made_by_functions(tmp_path: Path) -> None:
    room = Room(tmp_path)

    async def item(value: str, index: int) -> str:
        return f"{index}{value}"

    made = room(nodes.each, ["a", "b"], item)
    assert [child.props["text"] for child in made.children] == ["1a", "2b"]
    assert shown(room(nodes.maybe, False, lambda v: str(v))) == ("text", {"text": "False"}, [])
    assert room(nodes.maybe, None, lambda v: str(v)).kind == "empty"
    assert room(nodes.match_state, "on", {"on": "yes", "_": "no"}).props == {"text": "yes"}
    assert room(nodes.match_state, "off", {"on": "yes", "_": lambda: nodes.hr()}).kind == "hr"
    assert room(nodes.match_state, "off", {}).kind == "empty"
    button = nodes.component(lambda props, *more: (props, more), {"label": "x", "size": 1})
    assert room(button, {"size": 2}, "a") == ({"label": "x", "size": 2}, ("a",))
    assert room(button, "a") == ({"label": "x", "size": 1}, ("a",))


def test_a_tree_is_plain_data_all_the_way_down(tmp_path: Path) -> None:
    tree = Room(tmp_path)(lambda: nodes.col({"gap": 1}, nodes.row("a")))
    assert tree.as_data() == {
        "kind": "col",
        "props": {"gap": 1},
        "children": [
            {"kind": "row", "props": {}, "children": [{"kind": "text", "props": {"text": "a"}, "children": []}]}
        ],
    }


MARKUP: list[tuple[str, tuple[str, dict[str, Any], list[str]]]] = [
    ("<b>hi</b>", ("text", {"text": "hi", "style": {"bold": True}}, [])),
    ("<p color='red'>a <em>b</em></p>", ("row", {}, ["text", "text"])),
    ("<div gap='1' border>a<hr/><spinner label='x'></div>", ("col", {"gap": 1, "border": "single"}, ["text", "hr", "spinner"])),
    ("<span>a<br>b</span>", ("row", {}, ["text", "text", "text"])),
    ("<ul><li>a <b>b</b></li><li>c</li></ul>", ("bullet_list", {"items": ["a b", "c"]}, [])),
    ("<ol><li>a</li></ol>", ("numbered_list", {"items": ["a"]}, [])),
    ("<code>x &lt; y</code>", ("text", {"text": "x < y", "style": {"fg": "cyan"}}, [])),
    ("<badge color='green'>new</badge>", ("badge", {"label": "new", "style": {"bold": True, "fg": "green"}}, [])),
    ("<blink>a</blink>", ("fragment", {}, ["text"])),
    ("plain <i>text</i>", ("fragment", {}, ["text", "text"])),
    ("", ("fragment", {}, [])),
]  # fmt: skip


@pytest.mark.parametrize(("source", "node"), MARKUP)
def test_markup_becomes_nodes(tmp_path: Path, source: str, node: tuple[str, dict[str, Any], list[str]]) -> None:
    assert shown(Room(tmp_path)(markup, source)) == node


@pytest.mark.parametrize(
    "source", ["<div>", "</div>", "<b><i></b></i>", "<p color='blurple'>x</p>", "<div>" * 200, None]
)
def test_markup_that_cannot_be_read_is_refused(tmp_path: Path, source: Any) -> None:
    with pytest.raises(BadArgument):
        Room(tmp_path)(markup, source)


class Settings:
    """A plugin's own values behind its options."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {"loud": False}
        self.tree: dict[str, Any] = {
            "type": "group",
            "get": lambda info: self.values.get(info["name"]),
            "set": lambda info, value: self.values.__setitem__(info["name"], value),
            "args": {
                "loud": {"type": "toggle", "name": "Loud", "order": 2},
                "folder": {"type": "input", "order": 1, "desc": lambda info: f"the {info['name']}"},
                "size": {"type": "range", "min": 1, "max": 5},
                "way": {"type": "select", "values": {"l": "left", "r": "right"}},
                "more": {
                    "type": "group",
                    "args": {"deep": {"type": "input"}, "off": {"type": "toggle", "disabled": True}},
                },
                "reset": {"type": "execute", "func": lambda _info: self.values.clear()},
            },
        }


def test_options_are_described_changed_and_given_back_after_a_restart(tmp_path: Path) -> None:
    room, mine = Room(tmp_path), Settings()
    room(options.options, mine.tree)
    described = room(options.describe_options, room.session, "demo")
    assert [".".join(one["path"]) for one in described][:2] == ["folder", "loud"]
    folder = described[0]
    assert (folder["type"], folder["value"], folder["desc"]) == ("input", None, "the folder")
    for path, value in (("loud", True), ("folder", "notes"), ("size", 3), ("way", "r"), ("more.deep", "x")):
        room(options.change_option, room.session, "demo", path, value)
    assert mine.values == {"loud": True, "folder": "notes", "size": 3, "way": "r", "deep": "x"}
    again, fresh = Room(tmp_path), Settings()
    again(options.options, fresh.tree)
    assert fresh.values == mine.values
    again(options.change_option, again.session, "demo", "reset")
    assert fresh.values == {}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("loud", 1),
        ("folder", 1),
        ("size", 0),
        ("size", 6),
        ("size", "3"),
        ("way", "left"),
        ("more.off", True),
        ("more", 1),
        ("lout", True),
    ],
)
def test_an_option_takes_only_what_fits(tmp_path: Path, path: str, value: Any) -> None:
    room, mine = Room(tmp_path), Settings()
    if path == "more":
        del mine.tree["set"]
    room(options.options, mine.tree)
    with pytest.raises(BadArgument):
        room(options.change_option, room.session, "demo", path, value)
    assert mine.values == {"loud": False}


@pytest.mark.parametrize(
    "tree", ["x", {}, {"type": "grup"}, {"args": {"a": {"type": "slider"}}}, {"args": {1: {"type": "input"}}}]
)
def test_a_tree_of_options_must_be_well_made(tmp_path: Path, tree: Any) -> None:
    with pytest.raises(BadArgument, match=r"cru\.options"):
        Room(tmp_path)(options.options, tree)
