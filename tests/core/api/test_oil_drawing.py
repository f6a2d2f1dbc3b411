"""What views of `cru.oil` look like: on a terminal, as plain text, as HTML; and that each of them ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.core.api.support import Room

from cru.core.api.host import BadArgument
from cru.core.api.log import notify
from cru.core.api.oil import groups
from cru.core.api.oil.markup import markup
from cru.core.api.oil.nodes import (
    Node,
    badge,
    bullet_list,
    col,
    divider,
    fragment,
    hr,
    input,
    kv,
    numbered_list,
    popup,
    progress,
    row,
    scrollback,
    spacer,
    spinner,
    text,
    when,
)
from cru.core.api.oil.view import view_of
from cru.core.base.values.oil.layout import lay_out
from cru.core.base.values.oil.wrap import columns_of
from cru.core.events.stream import CommandSaid, Notice
from cru.faces.cli.oil import drawing

PLAIN: list[tuple[Callable[[], Node], int, str]] = [
    (lambda: text("a b c d e f"), 5, "a b c\nd e f"),
    (lambda: text("abcdefgh"), 3, "abc\ndef\ngh"),
    (lambda: text("go to abcdefgh"), 6, "go to\nabcdef\ngh"),
    (lambda: text("日本語テキスト"), 6, "日本語\nテキス\nト"),
    (lambda: text("a日本"), 2, "a\n日\n本"),
    (lambda: text("x👨\u200d👩\u200d👧y"), 40, "x👨\u200d👩\u200d👧y"),
    (lambda: text("a\n\nb\tc"), 20, "a\n\nb   c"),
    (lambda: text("  indented"), 40, "  indented"),
    (lambda: text("\x1b[31mred\u202e\u200b\r"), 60, "\\x1b[31mred\\u202e\\u200b\\r"),
    (lambda: col("a", None, "b"), 9, "a\nb"),
    (lambda: col({"gap": 1}, "a", fragment("b", "c"), when(False, "d")), 9, "a\n\nb\n\nc"),
    (lambda: col({"align": "end"}, "a", "bcd"), 5, "    a\n  bcd"),
    (lambda: col({"align": "center"}, "abc"), 9, "   abc"),
    (lambda: col({"border": True}, "a"), 5, "┌───┐\n│a  │\n└───┘"),
    (lambda: text("a").with_border("double"), 5, "╔═══╗\n║a  ║\n╚═══╝"),
    (lambda: col({"border": "heavy", "padding": 1}, "a"), 7, "┏━━━━━┓\n┃     ┃\n┃ a   ┃\n┃     ┃\n┗━━━━━┛"),
    (lambda: col("b", text("a").with_margin(1), "c"), 7, "b\n\n a\n\nc"),
    (lambda: col({"border": True}, "a"), 2, "a"),
    (lambda: row("a", spacer(), "b"), 9, "a       b"),
    (lambda: row(spacer(), "a", spacer(), "b"), 8, "   a   b"),
    (lambda: row({"gap": 2}, "a", "b"), 9, "a  b"),
    (lambda: row({"justify": "space_between"}, "a", "b", "c"), 9, "a   b   c"),
    (lambda: row({"justify": "end"}, "a"), 4, "   a"),
    (lambda: row({"justify": "space_around"}, "a", "b"), 10, "  a    b"),
    (lambda: row("a", hr()), 5, "a────"),
    (lambda: row("one two ", text("three", {"bold": True}), " four"), 11, "one two\nthree four"),
    (lambda: row({"gap": 1}, col("a b c d e f g h i"), col("x")), 10, "a b c d  x\ne f g h\ni"),
    (lambda: row({"gap": 1}, col("a b c d e f"), col("u v w x y z")), 10, "a b c d e\nf\nu v w x y\nz"),
    (lambda: row(col({"border": True}, "a"), col({"border": True}, "b", "c")), 6, "┌─┐┌─┐\n│a││b│\n│ ││c│\n└─┘└─┘"),
    (lambda: row({"align": "center"}, "a", col("x", "y", "z")), 4, " x\nay\n z"),
    (lambda: row({"align": "end"}, "a", col("x", "y")), 4, " x\nay"),
    (lambda: progress(0.5, 4), 20, "██░░ 50%"),
    (lambda: progress(1, 10**9), 12, "███████ 100%"),
    (lambda: badge("new\nest"), 20, "[new est]"),
    (lambda: divider("=-", 5), 20, "=-=-"),
    (lambda: divider("─", 10**9), 4, "────"),
    (lambda: divider("", 9), 4, ""),
    (hr, 6, "──────"),
    (lambda: spinner("work"), 20, "… work"),
    (lambda: input({"value": "abc", "cursor": 1}), 20, "abc"),
    (lambda: input({"placeholder": "name?"}), 20, "name?"),
    (lambda: popup(["a", {"label": "bb", "desc": "two", "kind": "x"}], 1), 30, "  a\n> bb (x)  two"),
    (lambda: popup([str(n) for n in range(9)], 8, 2), 30, "  7\n> 8\n  … 7 more"),
    (lambda: bullet_list(["a b c", "d"]), 6, "• a b\n  c\n• d"),
    (lambda: numbered_list(["a"] * 10), 9, "\n".join(f"{n:>2}. a" for n in range(1, 11)).strip("\n")),
    (lambda: kv("key", "a b c d"), 10, "key: a b c\n     d"),
    (lambda: kv("k", col("a", "b")), 9, "k: a\n   b"),
    (lambda: scrollback("key", "a", "b"), 9, "a\nb"),
    (lambda: markup("<p>a <b>b</b><br>c</p>"), 20, "a b\nc"),
    (lambda: markup("<div border='single'><h1>x</h1><hr></div>"), 5, "┌───┐\n│x  │\n│───│\n└───┘"),
]  # fmt: skip


@pytest.mark.sample(20)
@pytest.mark.parametrize(("make", "columns", "drawn"), PLAIN)
def test_a_view_as_plain_text(tmp_path: Path, make: Callable[[], Node], columns: int, drawn: str) -> None:
    node = Room(tmp_path)(make)
    assert node.to_text(columns) == drawn
    assert max(map(columns_of, lay_out(view_of(node), columns)), default=0) <= columns


HTML: list[tuple[Callable[[], Node], str]] = [
    (lambda: text("<b>&\x1b", {"fg": "#010203", "bold": True}),
     '<span style="color: #010203; font-weight: bold">&lt;b&gt;&amp;\\x1b</span>'),
    (lambda: col({"gap": 1, "border": "single"}, "a"),
     '<div style="display: flex; flex-direction: column; gap: 1lh; border: 1px solid"><span>a</span></div>'),
    (lambda: row({"justify": "space_between", "align": "end"}, spacer()),
     '<div style="display: flex; flex-direction: row; justify-content: space-between; align-items: flex-end">'
     '<span style="flex: 1"></span></div>'),
    (lambda: fragment("a", when(False, "b")), '<div style="display: contents"><span>a</span></div>'),
    (lambda: progress(0.25), '<span><progress max="1" value="0.25"></progress> 25%</span>'),
    (lambda: badge("x"), "<span>[x]</span>"),
    (lambda: spinner("x"), "<span>… x</span>"),
    (lambda: divider("=", 3), '<div style="overflow: hidden; white-space: nowrap">===</div>'),
    (hr, "<hr>"),
    (lambda: input({"value": '"x'}), '<span><input readonly value="&quot;x"></span>'),
    (lambda: popup([{"label": "a", "desc": "b", "kind": "c"}, "d"]), "<ul><li><b>a (c)</b> — b</li><li>d</li></ul>"),
    (lambda: bullet_list(["<"]), "<ul><li>&lt;</li></ul>"),
    (lambda: numbered_list(["a"]), "<ol><li>a</li></ol>"),
    (lambda: kv("a", "b").with_padding(1), '<div style="padding: 1lh 1ch"><b>a:</b> b</div>'),
]  # fmt: skip


@pytest.mark.parametrize(("make", "drawn"), HTML)
def test_a_view_as_html(tmp_path: Path, make: Callable[[], Node], drawn: str) -> None:
    html = Room(tmp_path)(make).to_html()
    assert html == f'<div class="oil" style="font-family: monospace; white-space: pre-wrap">{drawn}</div>'


PAINTED: list[tuple[Callable[[], Node], str, str]] = [
    (lambda: text("a", {"fg": "red", "bg": "darkgray"}), "", "\x1b[31;100ma\x1b[0m"),
    (lambda: text("a", {"fg": "white", "dim": True}), "", "\x1b[2;97ma\x1b[0m"),
    (lambda: text("a", {"fg": "gray", "italic": True, "underline": True}), "", "\x1b[3;4;37ma\x1b[0m"),
    (lambda: text("a", {"fg": "#ff0000"}), "", "\x1b[38;5;196ma\x1b[0m"),
    (lambda: col({"fg": "blue"}, "a", text("b", {"bold": True})), "", "\x1b[34ma\x1b[0m\n\x1b[1;34mb\x1b[0m"),
    (lambda: input({"value": "ab"}), "", "\x1b[7ma\x1b[0mb"),
    (lambda: text("a\x1b[31mb\u202e"), "", "a\\x1b[31mb\\u202e"),
    (lambda: text("a b"), "cru: ", "cru: a b"),
    (lambda: col("a", "b"), "日: ", "日: a\n    b"),
]


@pytest.mark.parametrize(("make", "mark", "drawn"), PAINTED)
@pytest.mark.parametrize(("name", "value"), [("TERM", "xterm-256color"), ("TERM", "dumb"), ("NO_COLOR", "1")])
def test_a_view_on_a_terminal(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[], Node],
    mark: str,
    drawn: str,
    name: str,
    value: str,
) -> None:
    for variable in ("NO_COLOR", "COLORTERM"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv(name, value)
    drawing._system.cache_clear()
    main, terminal = os.openpty()
    try:
        shown = drawing.draw(view_of(Room(tmp_path)(make)), terminal, mark)
    finally:
        os.close(main)
        os.close(terminal)
    plain = drawing.draw(view_of(Room(tmp_path)(make)), -1, mark)
    assert shown == (drawn if value == "xterm-256color" else plain)
    assert "\x1b" not in plain


def _cycle() -> Node:
    node = col("a")
    node.children = (node,)
    return node


def _doubled() -> Node:
    node = text("z")
    for _ in range(60):
        node = row(node, node)
    return node


def _deep(border: bool) -> Node:
    node = text("word " * 30_000)
    for _ in range(60):
        node = row({"border": border, "padding": 10**9}, node, text("a").with_border())
    return node


VAST: list[tuple[Callable[[], Node], str]] = [
    (_cycle, "more than 64 levels"),
    (_doubled, "more than 64 levels|more than 10,000 nodes"),
    (lambda: col(*["a"] * 1_000_000), "more than 10,000 nodes|more than 5,000 lines"),
    (lambda: bullet_list(["a"] * 1_000_000), "more than 10,000 nodes|more than 5,000 lines"),
    (lambda: popup(["a"] * 1_000_000), "more than 10,000 nodes"),
    (lambda: text("a b" * 1_000_000), "more than 200,000 characters"),
    (lambda: text("\n" * 100_000 + "end"), "more than 5,000 lines"),
    (lambda: _deep(True), "more than 5,000 lines"),
    (lambda: col(*[text("a").with_padding(10**9)] * 9_000), "more than 5,000 lines"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("make", "told"), VAST)
def test_every_view_ends_and_tells_what_was_cut(tmp_path: Path, make: Callable[[], Node], told: str) -> None:
    node = Room(tmp_path)(make)
    drawn = node.to_text(80)
    assert any(f"[cut here: {reason}]" in drawn for reason in told.split("|"))
    assert len(node.to_html()) < 3_000_000


def test_groups_are_styles_by_name(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room(groups.set_group, "late", {"fg": "RED", "bold": True, "reverse": 1, "bg": "no colour"})
    room(groups.link_group, "due", "late")
    assert room(text, "a", "due").props["style"] == {"fg": "red", "bold": True}
    assert room(lambda: text("a").with_style("late")).props["style"] == {"fg": "red", "bold": True}
    room(groups.link_group, "late", "due")
    for name in ("late", "lat", "nothing"):
        with pytest.raises(BadArgument, match=f"there is no style `{name}`"):
            room(badge, "a", name)


def test_a_note_may_be_a_view_and_its_progress_is_a_bar(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room(lambda: notify(row("copied ", badge("3"))))
    room(lambda: notify("copying", None, {"progress": {"current": 1, "total": 4}}))
    room(lambda: notify("copying", None, {"progress": {"current": 1}}))
    told = [(notice.text, notice.view) for notice in room.world.of(Notice)]
    drawn = ["" if isinstance(view, msgspec.UnsetType) else drawing.draw(view, -1) for _, view in told]
    assert [text for text, _ in told] == ["copied [3]", "copying (1/4)", "copying (1/?)"]
    assert drawn == ["copied [3]", "copying (1/4) █████░░░░░░░░░░░░░░░ 25%", ""]


def test_a_view_is_data_for_programs(tmp_path: Path) -> None:
    view = Room(tmp_path)(lambda: view_of(col({"gap": 1, "fg": "red"}, popup([{"label": "a"}]), "b")))
    assert msgspec.json.decode(msgspec.json.encode(CommandSaid("x", "b", view=view))) == {
        "command": "x", "text": "b", "is_error": False,
        "view": {"kind": "col", "gap": 1, "style": {"fg": "red"},
                 "children": [{"kind": "popup", "items": [{"label": "a"}]}, {"kind": "text", "text": "b"}]},
    }  # fmt: skip
