"""What is typed in the chat: pastes, keys of one's own, what was typed before."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.history import InMemoryHistory
from tests.kit import HomeDir, Reply, pty, server

from cru.faces.cli.chat.history import KEPT, READ, open_history
from cru.faces.cli.chat.pastes import Pastes

PASTE = "".join(f"line {number}\n" for number in range(200))


def prompts(home: HomeDir) -> list[str]:
    return [e["content"] for e in home.log() if e.get("role") == "user"]


def test_a_long_paste_is_folded_and_sent_whole(home: HomeDir) -> None:
    with server([Reply("answer"), Reply("again")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.send(f"look at \x1b[200~{PASTE}\x1b[201~ please")
            terminal.expect_screen("> look at [pasted 200 lines] please")
            terminal.key("enter")
            terminal.expect("answer")
            assert "line 7" not in terminal.screen()
            terminal.send(f"gone \x1b[200~{PASTE}\x1b[201~")
            terminal.expect_screen("> gone [pasted 200 lines]")
            terminal.send("\x7fhere")
            terminal.expect_screen("> gone here")
            terminal.key("enter")
            terminal.expect("again")
            assert terminal.eof() == 0
    assert prompts(home) == [f"look at {PASTE} please", "gone here"]


def test_pastes_of_one_size_keep_apart_and_what_was_typed_like_one_stays() -> None:
    pastes = Pastes()
    marks = [pastes.fold("a\n" * 30), pastes.fold("b\n" * 30), pastes.fold("a\n" * 30), pastes.fold("c" * 2_001)]
    assert marks == ["[pasted 30 lines]", "[pasted 30 lines, 2]", "[pasted 30 lines]", "[pasted 2,001 characters]"]
    assert pastes.fold("short") == "short" and pastes.unfold("[pasted 31 lines]") == "[pasted 31 lines]"
    assert pastes.unfold("x [pasted 30 lines, 2]") == "x " + "b\n" * 30
    assert pastes.fold_again(pastes.unfold("x [pasted 30 lines] y")) == "x [pasted 30 lines] y"


def test_what_a_paste_holds_is_no_mark_of_another_one() -> None:
    pastes = Pastes()
    first = pastes.fold("a\n" * 30)
    second = pastes.fold(f"{first}\n" * 40)
    assert pastes.unfold(f"{second} {first}") == f"{first}\n" * 40 + " " + "a\n" * 30
    pastes = Pastes()
    quoting = pastes.fold("[pasted 50 lines]\n" * 30)
    later = pastes.fold("b\n" * 50)
    text = pastes.unfold(f"{quoting} {later}")
    assert text == "[pasted 50 lines]\n" * 30 + " " + "b\n" * 50 and pastes.fold_again(text) == f"{quoting} {later}"


def test_esc_esc_asks_for_undo_and_keys_can_be_chosen(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure('[keys]\nnew_line = ["f2"]\neditor = ["ctrl-what"]\n', url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("keys.editor: there is no key `ctrl-what`")
            terminal.expect("> ")
            terminal.send("\x1b\x1b")
            terminal.expect_screen("> /undo")
            terminal.key("c-c")
            terminal.send("one\x1bOQtwo")
            terminal.expect_screen("> one\n  two")
            terminal.key("enter")
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert prompts(home) == ["one\ntwo"]


@pytest.mark.parametrize("line", ["new_lines = []", 'new_line = "f2"', "editor = [1]"])
def test_a_wrong_table_of_keys_is_told_with_its_place(home: HomeDir, line: str) -> None:
    home.configure(f"[keys]\n{line}\n")
    with pty(home=home) as terminal:
        terminal.expect("config.toml:")
        terminal.eof()
        assert "Traceback" not in terminal.text and "keys" in terminal.text


def test_each_project_has_its_history_and_what_is_of_none_is_of_all(tmp_path: Path) -> None:
    path = tmp_path / "chat_history"
    path.write_text("\n# 2026-01-01 00:00:00.000\n+of all\n+two lines\n")
    for project, text in (("one", "of one"), ("two", "of two"), ("one", "+\n# x")):
        open_history(path, tmp_path / project).store_string(text)
    history = open_history(path, tmp_path / "one")
    assert list(history.load_history_strings()) == ["+\n# x", "of one", "of all\ntwo lines"]
    assert list(open_history(path, tmp_path / "two").load_history_strings()) == ["of two", "of all\ntwo lines"]


def test_a_large_history_is_read_at_its_end_and_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "chat_history"
    path.write_text("\n# 2026-01-01 00:00:00\n+typed before\n" * (KEPT // 36))
    history = open_history(path, tmp_path)
    history.store_string("the last")
    entries = list(history.load_history_strings())
    assert entries[0] == "the last" and len(entries) * 36 < READ and not path.stat().st_size > 1_000
    assert path.with_name("chat_history.1").stat().st_size > KEPT


def test_what_is_no_file_is_no_history(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "folder").mkdir()
    for name in ("link", "folder", "missing/file"):
        assert isinstance(open_history(tmp_path / name, tmp_path), InMemoryHistory)
    assert not (tmp_path / "elsewhere").exists()
