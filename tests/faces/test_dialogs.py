"""Dialogs of plugins on a real terminal: what they look like, every way to answer, and every way out."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from tests.faces.asks import OPEN, WAY, answers, asking, run, scripted
from tests.kit import HomeDir, pty


def test_a_question_shows_who_asks_its_choices_and_what_may_be_typed(home: HomeDir) -> None:
    scripted(home)
    asking(home, WAY)
    terminal = run(home, "2")
    assert (
        "[asks] Way: Which way?\n>   1  left\n    2  right\n    3  back\n  Enter takes, typing filters, Esc cancels > "
        in terminal.text
    )
    assert "  > right\n" in terminal.text
    assert terminal.text.rstrip().endswith("Hello")
    assert answers(home) == [{"kind": "ask", "selected": [1]}]


HINTS = "cru.ui.hints()"
ITEMS = '{"apple", {label = "pear", description = "green"}, {label = "漢字", description = "wide"}}'
PANELS: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [
    (HINTS, ("PEAR",), {"selected": [1]}),
    (HINTS, ("7", "x", "1,2", "ap"), {"selected": [0]}),
    (f"{HINTS}:initial_selection{{2}}", ("",), {"selected": [2]}),
    (f"{HINTS}:multi_select()", ("1,3",), {"selected": [0, 2]}),
    (f"{HINTS}:multi_select()", ("1-2 3",), {"selected": [0, 1, 2]}),
    (f"{HINTS}:multi_select()", ("0",), {"selected": []}),
    (f"{HINTS}:allow_other()", ("my own words",), {"selected": [], "other": "my own words"}),
    (f"{HINTS}:allow_other()", ("9", '"9"'), {"selected": [], "other": "9"}),
    (f"{HINTS}:filterable()", ("green",), {"selected": [1]}),
    (f"{HINTS}:filterable()", ("/nothing", "/", "3"), {"selected": [2]}),
    (f"{HINTS}:filterable():initial_filter('wide')", ("",), {"selected": [2]}),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("hints", "typed", "answer"), PANELS)
def test_a_panel_takes_numbers_labels_own_words_and_filters(
    home: HomeDir, hints: str, typed: tuple[str, ...], answer: dict[str, Any]
) -> None:
    scripted(home)
    asking(home, f'cru.show_panel(cru.ui.panel("Fruit", {ITEMS}, {hints}))')
    run(home, *typed)
    assert answers(home) == [{"kind": "panel", "cancelled": False, **answer}]


def test_what_a_wrong_line_means_is_said(home: HomeDir) -> None:
    scripted(home)
    asking(home, f'cru.show_panel(cru.ui.panel("Fruit", {ITEMS}, {HINTS}))')
    text = run(home, "7", "x", "1,2", "1").text
    for told in ("  there is no 7, there are 3\n", "  x is none of them\n", "  only one of them\n"):
        assert told in text


@pytest.mark.slow
def test_questions_of_a_batch_come_one_after_another_and_cancelling_one_cancels_all(home: HomeDir) -> None:
    scripted(home)
    batch = 'cru.ask.batch():question(cru.ask.question("A", "a?"):choice("x")):question(cru.ask.question("B", "b?"))'
    asking(
        home, f"(function() local r = cru.ask.ask_user({batch}); return {{ r:is_cancelled(), r:answer_count() }} end)()"
    )
    text = run(home, "1", "mine").text
    assert "A (1 of 2): a?\n" in text and "B (2 of 2): b?\n" in text
    run(home, "1", "")
    assert answers(home) == [[False, 2], [True, 0]]


def test_a_popup_gives_its_entry_back(home: HomeDir) -> None:
    scripted(home)
    asking(home, 'cru.popup.show(cru.popup.request("What?", { cru.popup.entry_with_data("Open", nil, 7), "b" }))')
    run(home, "1")
    assert answers(home) == [{"selected_index": 0, "selected_entry": {"label": "Open", "data": 7}}]


def test_nothing_to_choose_from_is_said_and_cancelled(home: HomeDir) -> None:
    scripted(home)
    asking(home, 'cru.popup.show(cru.popup.request("What?", {}))')
    assert "  there is nothing to choose from\n  cancelled\n" in run(home).text


@pytest.mark.parametrize("key", ["esc", "c-c", "c-d"])
def test_a_key_cancels_the_dialog_and_the_turn_goes_on(home: HomeDir, key: str) -> None:
    scripted(home)
    asking(home, WAY)
    with pty("hi", home=home) as terminal:
        terminal.expect(OPEN)
        terminal.key(key)
        terminal.expect("Hello")
        assert terminal.wait() == 0
    assert answers(home) == [{"kind": "cancelled"}] and "  cancelled\n" in terminal.text


def test_an_arrow_key_is_no_escape(home: HomeDir) -> None:
    scripted(home)
    asking(home, WAY)
    with pty("hi", home=home) as terminal:
        terminal.expect(OPEN)
        for key in ("up", "left"):
            terminal.key(key)
        terminal.line("1")
        assert terminal.wait() == 0
    assert answers(home) == [{"kind": "ask", "selected": [0]}]


@pytest.mark.sample(1)
@pytest.mark.parametrize("chat", [False, True])
def test_ctrl_c_again_ends_the_turn_of_a_plugin_that_asks_for_ever(home: HomeDir, chat: bool) -> None:
    scripted(home)
    asking(home, f"(function() while true do {WAY} end end)()")
    with pty(*([] if chat else ["hi"]), home=home) as terminal:
        if chat:
            terminal.expect("> ")
            terminal.line("hi")
        terminal.expect(OPEN)
        terminal.key("c-c")
        terminal.expect("[asks]")
        terminal.expect(OPEN)
        terminal.key("c-c")
        terminal.expect("cru: interrupted")
        assert (terminal.eof() if chat else terminal.wait()) == (0 if chat else 130)


def test_a_dialog_that_nobody_answers_closes_and_leaves_the_terminal_as_it_was(home: HomeDir) -> None:
    scripted(home)
    asking(home, 'cru.ui.ask(nil, { question = "Sure?", choices = { "yes" } }, 0.3)')
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("hi")
        terminal.expect(OPEN)
        terminal.expect("  closed\n")
        terminal.expect("Hello")
        terminal.expect("> ")
        assert terminal.eof() == 0
    assert answers(home) == [{"kind": "cancelled"}]


def test_what_was_typed_before_a_dialog_does_not_answer_it(home: HomeDir) -> None:
    scripted(home)
    wait = 'while not cru.fs.exists("typed") do cru.timer.sleep(0.02) end'
    asking(home, f"(function() {wait} return {WAY} end)()")
    with pty("hi", home=home) as terminal:
        terminal.line("1")
        (home.project / "typed").touch()
        terminal.expect(OPEN)
        terminal.line("2")
        assert terminal.wait() == 0
    assert answers(home) == [{"kind": "ask", "selected": [1]}]


def test_a_window_that_changes_its_size_keeps_what_is_typed(home: HomeDir) -> None:
    scripted(home)
    asking(home, 'cru.ui.ask(nil, { question = "Name?" })')
    with pty("hi", home=home) as terminal:
        terminal.expect(OPEN)
        terminal.send("long na")
        terminal.resize(20, 40)
        terminal.line("me 漢字")
        assert terminal.wait() == 0
    assert answers(home) == [{"kind": "ask", "selected": [], "other": "long name 漢字"}]


def test_a_long_list_comes_in_pages_where_lines_do_not_change(home: HomeDir) -> None:
    scripted(home)
    items = "(function() local t = {}; for i = 1, 50 do t[i] = 'item ' .. i end; return t end)()"
    asking(home, f'cru.show_panel(cru.ui.select("Many", {items}))')
    with pty("hi", home=home, env={"TERM": "dumb"}) as terminal:
        terminal.expect("+ 30 more, Enter cancels > ")
        assert "20  item 20" in terminal.screen() and "item 21" not in terminal.text
        terminal.line("+")
        terminal.expect("+ 10 more, Enter cancels > ")
        terminal.line("50")
        assert terminal.wait() == 0
    assert answers(home)[0]["selected"] == [49]


MANY = "(function() local t = {}; for i = 1, 50 do t[i] = 'item ' .. i end; return t end)()"
PICKED: list[tuple[str, tuple[str, ...], list[int]]] = [
    ("", ("enter",), [0]),
    ("", ("down", "down", "enter"), [2]),
    ("", ("up", "enter"), [49]),
    ("", ("pagedown", "pagedown", "up", "enter"), [19]),
    ("", ("4", "7", "enter"), [46]),
    ("", ("4", "7", "up", "enter"), [45]),
    ("", ("m", " ", "5", "down", "enter"), [14]),
    ("", ("4", "7", "backspace", "backspace", "enter"), [3]),
    (":multi_select()", (" ", "down", "down", " ", "enter"), [0, 2]),
    (":multi_select()", (" ", " ", "down", "enter"), [1]),
    (":multi_select()", (" ", "m", " ", "5", "0", "enter"), [0, 49]),
    (":multi_select():initial_selection{3, 4}", ("enter",), [3, 4]),
    (":initial_selection{7}", ("down", "enter"), [8]),
    (":allow_other()", ("/", "m", " ", "9", "enter"), [8]),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("hints", "keys", "selected"), PICKED)
def test_keys_move_filter_and_mark(home: HomeDir, hints: str, keys: tuple[str, ...], selected: list[int]) -> None:
    scripted(home)
    asking(home, f'cru.show_panel(cru.ui.panel("Many", {MANY}, {HINTS}{hints}))')
    with pty("hi", home=home) as terminal:
        terminal.expect(OPEN)
        for key in keys:
            terminal.send(key) if len(key) == 1 else terminal.key(key)
        assert terminal.wait() == 0
        shown = [line for line in terminal.screen().splitlines() if "item" in line]
    assert answers(home)[0]["selected"] == selected
    assert shown == [f"  > item {at + 1}" for at in selected]


def test_a_list_fits_a_small_terminal(home: HomeDir) -> None:
    scripted(home)
    asking(home, f'cru.show_panel(cru.ui.panel("Many", {MANY}, {HINTS}:multi_select():allow_other()))')
    with pty("hi", home=home) as terminal:
        terminal.expect(OPEN)
        terminal.resize(10, 40)
        terminal.expect_screen("1-5 of 50")
        terminal.key("down")
        terminal.send("\x1b[200~several\nwords\x1b[201~")
        terminal.key("enter")
        assert terminal.wait() == 0
    assert answers(home)[0]["other"].split() == ["several", "words"]


def test_control_characters_of_a_plugin_never_reach_the_terminal(home: HomeDir) -> None:
    scripted(home)
    bad = "\\27[2Jx\\r\\u{202e}"
    asking(home, f'cru.ui.ask(nil, {{ header = "{bad}", question = "{bad}\\nq", choices = {{ "{bad}\\ny" }} }})')
    text = run(home, "1").text
    assert "[asks] \\x1b[2Jx\\x0d\\u202e: \\x1b[2Jx\\r\\u202e\n  q\n>   1  \\x1b[2Jx \\u202e y\n" in text


@pytest.mark.slow
def test_a_text_is_shown_and_a_long_one_in_pages(home: HomeDir) -> None:
    scripted(home)
    asking(home, 'cru.ui.show(nil, { title = "Look", content = "one\\ntwo\\27[2J", format = "plain" })')
    assert "[asks] Look\n  one\n  two\\x1b[2J\n" in run(home).text
    asking(home, 'cru.ui.show(nil, { content = ("line\\n"):rep(40) .. "last" })')
    for typed, last in (("", True), ("a", True), ("q", False)):
        with pty("hi", home=home) as terminal:
            terminal.expect("21 of 41 lines, Enter more")
            terminal.line(typed)
            if not typed:
                terminal.expect("last")
            assert terminal.wait() == 0
        assert ("  last\n" in terminal.text) is last
    assert answers(home) == [{"kind": "show"}] * 4


def test_markdown_is_rendered(home: HomeDir) -> None:
    scripted(home)
    asking(home, 'cru.ui.show(nil, { content = "**bold** words", format = "markdown" })')
    text = run(home).text
    assert "bold words" in text and "**" not in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_and_leaves_the_terminal_as_it_was(home: HomeDir, number: signal.Signals) -> None:
    scripted(home)
    asking(home, WAY)
    with pty("hi", home=home) as terminal:
        terminal.expect(OPEN)
        os.kill(terminal.pid, number)
        terminal.expect("  closed\n")
        assert terminal.wait() == 128 + number
    assert "Traceback" not in terminal.text and home.log()[-1]["entry_type"] == "leg_ended"


def test_a_node_is_shown_drawn(home: HomeDir) -> None:
    scripted(home)
    asking(
        home,
        'cru.ui.show(nil, { title = "Look", content = cru.oil.bullet_list({ "one", "two\\27[2J" }):with_padding(1) })',
    )
    assert "[asks] Look\n\n   • one\n   • two\\x1b[2J\n\n" in run(home).text
    assert answers(home) == [{"kind": "show"}]
