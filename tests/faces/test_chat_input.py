"""What is typed in the chat: pastes, keys of one's own, what was typed before."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path

import pytest
from prompt_toolkit.history import InMemoryHistory
from tests.faces.test_images import png
from tests.kit import Hang, HomeDir, Reply, pty, server

from cru.faces.cli.chat import images
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


def test_what_cannot_be_seen_is_seen_in_the_input_and_sent_as_it_is(home: HomeDir) -> None:
    text = "abc\u202edef\u200b\U000e0041 \u05d0 é"
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.send(text)
            terminal.expect_screen("> abc\ufffddef\ufffd\ufffd \u05d0 é")
            terminal.key("enter")
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert prompts(home) == [text]


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


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "key", ["y", "enter", "ctrl-m", "backspace", "tab", "up", "<any>", "<bracketed-paste>", "a b", "ctrl-space"]
)
def test_no_key_that_types_can_do_anything_else(home: HomeDir, key: str) -> None:
    with server([Reply("answer")]) as model:
        home.configure(f'[keys]\nnext_mode = ["{key}"]\nleave = ["{key}", "f3"]\n', url=model.url)
        with pty(home=home) as terminal:
            terminal.expect(f"keys.next_mode: `{key}` is for typing")
            terminal.expect("> ")
            terminal.send("yes\ta bb\x7f\r")
            terminal.expect("answer")
            assert "auto" not in terminal.screen()
            terminal.send("\x1bOR")
            assert terminal.wait() == 0
    assert prompts(home)[0].startswith("yes")


def test_a_key_that_is_named_twice_is_told_and_stopping_comes_first(home: HomeDir) -> None:
    with server([Hang("so far"), Reply("answer")]) as model:
        home.configure('[keys]\neditor = ["escape", "f4"]\nleave = ["f4"]\n', url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("keys.leave: `f4` stands at keys.editor, too")
            terminal.expect("> ")
            terminal.line("hi")
            terminal.expect("so far")
            terminal.key("esc")
            terminal.expect("interrupted")
            terminal.key("c-c")
            terminal.line("again")
            terminal.expect("answer")


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


@pytest.mark.slow
def test_images_are_dropped_named_and_pasted_from_the_clipboard(home: HomeDir, tmp_path: Path) -> None:
    for name, shade in (("drop.png", 1), ("named.png", 2), ("clip.png", 3)):
        (home.project / name).write_bytes(png(shade=shade))
    tools = tmp_path / "tools"
    tools.mkdir()
    program = tools / "xclip"
    program.write_text(f"#!/bin/sh\nexec cat {home.project}/clip.png\n")
    program.chmod(0o755)
    env = {"DISPLAY": ":0", "WAYLAND_DISPLAY": "", "PATH": f"{tools}:{os.environ['PATH']}"}
    with server([Reply("three boxes"), Reply("text")]) as model:
        home.configure(url=model.url)
        with pty(home=home, env=env) as terminal:
            terminal.expect("> ")
            terminal.send(f"see \x1b[200~'{home.project}/drop.png'\x1b[201~")
            terminal.expect_screen("> see [image 64x48]")
            terminal.send(" and @named.png and \x16")
            terminal.expect_screen("@named.png and [image 64x48, 2]")
            terminal.key("enter")
            terminal.expect("three boxes")
            program.write_text("#!/bin/sh\nexit 1\n")
            terminal.send("\x16")
            terminal.expect("the clipboard holds no image")
            terminal.send("x [image 1x1]\x7f")
            terminal.key("enter")
            terminal.expect("text")
            assert terminal.eof() == 0
        first, second = (request.body["messages"] for request in model.requests)
    content = first[-1]["content"]
    sent = [part["image_url"]["url"].partition(",")[2] for part in content if part["type"] == "image_url"]
    assert sorted(sent) == sorted(base64.b64encode(png(shade=shade)).decode() for shade in (1, 2, 3))
    assert content[-1]["text"].startswith("see [image 64x48] and @named.png and [image 64x48, 2]\n\n[image ")
    assert second[-1]["content"] == "x [image 1x1"


def test_an_image_that_cannot_be_sent_is_told_and_nothing_is_asked(home: HomeDir) -> None:
    (home.project / "wide.png").write_bytes(png(9000, 1))
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("see @wide.png")
            terminal.expect("8000 pixels a side")
            terminal.line("hello")
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert prompts(home) == ["hello"] and len(model.requests) == 1


@pytest.mark.parametrize(
    ("name", "script", "words"),
    [
        ("powershell.exe", f"printf %s {base64.b64encode(png()).decode()}", ""),
        ("powershell.exe", "printf a", "the clipboard holds no image"),
        ("pngpaste", "exec sleep 9", "pngpaste did not give the clipboard within 0.2 s"),
        ("other", "true", "no program is there that reads images from the clipboard"),
    ],
)
def test_the_clipboard_is_read_within_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, script: str, words: str
) -> None:
    monkeypatch.setattr(images, "SECONDS", 0.2 if "sleep" in script else 5)
    program = tmp_path / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    env = {"PATH": os.environ["PATH"]}
    which = {name: str(program)}.get
    if words:
        with pytest.raises(images.ClipboardProblem, match=words):
            asyncio.run(images.read_clipboard(env, which))
    else:
        assert asyncio.run(images.read_clipboard(env, which)) == png()
