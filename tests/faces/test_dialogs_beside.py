"""Dialogs beside everything else on the terminal: text that streams, questions for leave, the chat's prompt, one another."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import msgspec
import pytest
from tests.faces.asks import OPEN, WAY, answer, answers, asking, last_line, plugin, run, scripted
from tests.kit import Call, Hang, HomeDir, Reply, Terminal, cru, pty, server, wait_until

pytestmark = pytest.mark.long


def test_a_plugin_in_python_asks_the_same_way(home: HomeDir) -> None:
    scripted(home)
    plugin(
        home,
        "import cru\n\n"
        "@cru.on('message:received')\n"
        "async def ask(ctx, event):\n"
        "    found = await cru.ui.ask(None, {'question': 'Sure?', 'choices': ['yes', 'no']})\n"
        "    cru.fs.append('answers', cru.json.encode(found))\n",
        "asks.py",
    )
    run(home, "yes")
    assert answers(home) == [{"kind": "ask", "selected": [0]}]


def test_a_command_asks_and_shows_what_came_of_it(home: HomeDir) -> None:
    scripted(home)
    code = f"return {{ commands = {{ way = {{ fn = function() return 'way ' .. {WAY}.selected[1] end }} }} }}"
    plugin(home, code)
    terminal = run(home, "2", words="/way")
    assert terminal.text.endswith("way 1\n")
    with pty(home=home) as chat:
        chat.expect("> ")
        chat.line("/way")
        chat.expect("[asks]")
        answer(chat, "3")
        chat.expect("way 2")
        assert chat.eof() == 0


UNTIL_OPEN = 'while not cru.fs.exists("open") do cru.timer.sleep(0.02) end'
OPENED = f'cru.on("message:received", function() cru.spawn(function() {WAY} end) {UNTIL_OPEN} end)\n'


def reaches(event: str) -> str:
    """A handler that leaves a file at its event."""
    return f'cru.on("{event}", function() cru.fs.write("reached", "") end)'


def answer_before(terminal: Terminal, home: HomeDir, later: str) -> None:
    """The turn begins once the dialog is open; when it has come to its event, the dialog is still the last line, and `later` not shown."""
    terminal.expect(OPEN)
    (home.project / "open").touch()
    wait_until((home.project / "reached").exists)
    answer(terminal, "1")
    assert later not in terminal.text


TOOL = '--- Ask.\n-- @tool name="ask_user"\nfunction ask_user(args) return cru.json.encode({way}) end\n'


def test_a_tool_asks_while_the_models_text_is_on_the_screen(home: HomeDir) -> None:
    plugin(home, TOOL.format(way=WAY))
    with server([Reply("Let me ask.", calls=[Call("ask_user", {}), Call("ask_user", {})]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("-t", "hi", home=home) as terminal:
            for line in ("1", "3"):
                last_line(terminal, "cancels >")
                assert "Let me ask." in terminal.text and "running" not in terminal.screen()
                answer(terminal, line)
            terminal.expect("ok")
            assert terminal.wait() == 0
    results = [m["content"] for m in model.requests[1].body["messages"] if m["role"] == "tool"]
    assert [msgspec.json.decode(one)["selected"] for one in results] == [[0], [2]]


def test_a_dialog_and_a_question_for_leave_come_one_after_the_other(home: HomeDir) -> None:
    plugin(home, OPENED + reaches("permission:requested"))
    with server([Reply(calls=[Call("bash", {"command": "touch made"})]), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            answer_before(terminal, home, "touch made")
            terminal.expect("no > ")
            terminal.line("y")
            assert terminal.wait() == 0
    assert (home.project / "made").exists()


def test_two_dialogs_at_once_are_shown_one_at_a_time(home: HomeDir) -> None:
    scripted(home)
    ask = 'cru.fs.append("answers", cru.json.encode(cru.ui.ask(nil, { question = "q%d", choices = { "a", "b" } })) .. "\\n")'
    code = "".join(f"  cru.spawn(function() {ask % n} end)\n" for n in (1, 2))
    plugin(home, f'cru.on("message:received", function()\n{code}  cru.timer.sleep(0.3)\n  {ask % 3}\nend)')
    terminal = run(home, "1", "2", "1")
    assert [terminal.text.count(f"q{n}") for n in (1, 2, 3)] == [1, 1, 1]
    assert [a["selected"] for a in answers(home)] == [[0], [1], [0]]


def test_text_that_streams_waits_until_the_dialog_is_closed(home: HomeDir) -> None:
    plugin(home, OPENED + reaches("streaming:delta"))
    with server([Hang("first part\n\nsecond part\n\n")]) as model:
        home.configure(url=model.url)
        with pty("-v", "hi", home=home) as terminal:
            answer_before(terminal, home, "part")
            terminal.expect("first part")
            terminal.expect("second part")
            terminal.key("c-c")
            assert terminal.wait() == 130


def test_a_dialog_at_the_chats_prompt_gives_the_line_back(home: HomeDir) -> None:
    scripted(home, "loop: yes\n---\ntext: Hello\n")
    wait = 'while not cru.fs.exists("now") do cru.timer.sleep(0.05) end'
    plugin(home, f'cru.once("message:received", function() cru.once("session:idle", function() '
                 f'cru.spawn(function() {wait} cru.ui.ask(nil, {{ question = "Name?" }}) end) end) end)')  # fmt: skip
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("one")
        terminal.expect("Hello")
        terminal.expect("> ")
        terminal.send("two wo")
        terminal.expect("two wo")
        (home.project / "now").touch()
        terminal.expect("[asks] Name?")
        answer(terminal, "me")
        terminal.expect("two wo")
        terminal.line("rds")
        terminal.expect("Hello")
        assert terminal.eof() == 0
    assert [e["content"] for e in home.log() if e.get("role") == "user"] == ["one", "two words"]


def test_the_chats_prompt_waits_for_a_dialog_that_is_open(home: HomeDir) -> None:
    scripted(home)
    plugin(home, OPENED + reaches("session:idle"))
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("one")
        answer_before(terminal, home, "Hello")
        terminal.expect("Hello")
        terminal.expect("> ")
        assert terminal.eof() == 0


def test_ctrl_z_at_a_dialog_stops_and_the_dialog_is_still_there(home: HomeDir) -> None:
    scripted(home)
    asking(home, WAY)
    with pty("hi", home=home) as terminal:
        terminal.expect(OPEN)
        terminal.key("c-z")
        until_state(terminal.pid, "T")
        os.kill(terminal.pid, signal.SIGCONT)
        until_state(terminal.pid, "S")
        terminal.line("2")
        assert terminal.wait() == 0
    assert answers(home) == [{"kind": "ask", "selected": [1]}]


def until_state(pid: int, state: str) -> None:
    stat = Path(f"/proc/{pid}/stat")
    wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == state, what=f"the state {state}")


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_without_a_person_every_dialog_is_cancelled_at_once(home: HomeDir, flags: tuple[str, ...]) -> None:
    scripted(home)
    asking(home, WAY)
    assert cru(*flags, "hi", home=home).code == 0
    assert answers(home) == [{"kind": "cancelled"}]


def test_json_cancels_on_a_terminal_too(home: HomeDir) -> None:
    scripted(home)
    asking(home, WAY)
    with pty("--json", "hi", home=home) as terminal:
        assert terminal.wait() == 0
    assert answers(home) == [{"kind": "cancelled"}] and OPEN not in terminal.text


def test_a_dialog_works_where_the_answer_goes_into_a_pipe(home: HomeDir) -> None:
    scripted(home)
    asking(home, WAY)
    wrapper = home.path / "piped"
    wrapper.write_text("#!/bin/sh\necho hi | cru | cat >out\n")
    wrapper.chmod(0o755)
    with pty(home=home, script=wrapper) as terminal:
        terminal.expect(OPEN)
        terminal.line("3")
        assert terminal.wait() == 0
    assert (home.project / "out").read_text() == "Hello\n"
    assert answers(home) == [{"kind": "ask", "selected": [2]}]
