"""What commands show, and what plugins say about themselves: on a terminal, in a pipe, in `--json`."""

from __future__ import annotations

import msgspec
import pytest
from tests.faces.asks import plugin, scripted
from tests.kit import Hang, HomeDir, cru, pty, server

COMMAND = """return { commands = { say = { fn = function(args, ctx)
  ctx.display_info("the \\27[2Jresult")
  ctx.display_error("a problem")
end } } }"""


def test_a_command_shows_its_text_on_stdout_and_its_errors_on_stderr(home: HomeDir) -> None:
    scripted(home)
    plugin(home, COMMAND)
    done = cru("/say", home=home)
    assert (done.code, done.out, done.err) == (0, "the \x1b[2Jresult\n", "cru: a problem\n")
    with pty("/say", home=home) as terminal:
        assert terminal.wait() == 0
    assert terminal.text == "the \\x1b[2Jresult\ncru: a problem\n"


def test_json_has_an_object_for_what_a_command_shows(home: HomeDir) -> None:
    scripted(home)
    plugin(home, COMMAND)
    lines = [msgspec.json.decode(line) for line in cru("--json", "/say", home=home).out.splitlines()]
    said = [line["payload"] for line in lines if line["type"] == "command"]
    assert [(one["text"], one["is_error"]) for one in said] == [("the \x1b[2Jresult", False), ("a problem", True)]


STATUS = """cru.on("message:received", function()
  cru.set_status({ key = "sync", text = "syncing\\27[2J", level = "warn", progress = 0.5 })
  cru.statusline.set(nil, "branch", "main")
  cru.publish("session_title", "A day at sea")
end)
cru.on("turn:complete", function() cru.clear_status({ key = "sync" }) end)"""


def test_json_has_a_line_for_every_change(home: HomeDir) -> None:
    scripted(home)
    plugin(home, STATUS)
    lines = [msgspec.json.decode(line) for line in cru("--json", "hi", home=home).out.splitlines()]
    kinds = ("status:changed", "fact:published")
    said = [(line["type"], line["payload"]) for line in lines if line["type"] in kinds]
    first, second, title, last = [payload for _, payload in said][:4]
    assert (first["key"], first["text"], first["level"], first["progress"]) == ("sync", "syncing\x1b[2J", "warn", 0.5)
    assert (second["place"], second["key"], second["text"]) == ("statusline", "branch", "main")
    assert title == {"owner": "asks", "key": "session_title", "value": "A day at sea"}
    assert (last["key"], last["text"]) == ("sync", "")


@pytest.mark.parametrize("flags", [(), ("-v",)])
def test_a_pipe_is_told_with_verbose_only(home: HomeDir, flags: tuple[str, ...]) -> None:
    scripted(home)
    plugin(home, STATUS)
    done = cru(*flags, "hi", home=home)
    told = ("[status asks sync: ! syncing\\x1b[2J 50%]", "[status asks sync: none]", "[status asks branch: main]",
            "[asks publishes session_title: A day at sea]")  # fmt: skip
    assert done.out == "Hello\n" and [text in done.err for text in told] == [bool(flags)] * 4


def test_the_progress_line_shows_the_latest_and_goes_away(home: HomeDir) -> None:
    plugin(home, STATUS)
    with server(
        [
            Hang(
                "",
            )
        ]
    ) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect_screen("waiting for the model · ! syncing\\x1b[2J █████░░░░░ 50% · main …")
            terminal.key("c-c")
            terminal.expect("interrupted")
            assert "syncing" not in terminal.screen()
            assert terminal.wait() == 130


def test_a_status_that_is_too_long_for_the_line_is_cut(home: HomeDir) -> None:
    plugin(home, f'cru.on("message:received", function() cru.set_status({{ key = "k", text = "{"漢字" * 50}" }}) end)')
    with server([Hang("")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect("waiting for")
            terminal.expect("… …")
            terminal.key("c-c")
            terminal.expect("interrupted")
            assert "漢" not in terminal.screen()
            assert terminal.wait() == 130


def test_a_note_at_the_chats_prompt_stands_above_it(home: HomeDir) -> None:
    scripted(home)
    wait = 'while not cru.fs.exists("now") do cru.timer.sleep(0.05) end'
    plugin(home, f'cru.once("message:received", function() cru.spawn(function() {wait} cru.toast("all done") end) end)')
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("one")
        terminal.expect("Hello")
        terminal.expect("> ")
        terminal.send("two wo")
        terminal.expect("two wo")
        (home.project / "now").touch()
        terminal.expect_screen("cru: all done\n> two wo")
        terminal.key("c-c")
        assert terminal.eof() == 0


def test_statuses_stand_beside_the_chats_prompt(home: HomeDir) -> None:
    scripted(home)
    plugin(home, STATUS)
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("hi")
        terminal.expect("Hello")
        terminal.expect_screen(" main")
        assert terminal.eof() == 0
