"""Questions that come while a person types something else: a prompt is never taken as an answer, and none of it is lost."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from tests.core.agents.support import call, configure_scripts, script
from tests.faces.asks import answers, asking, scripted
from tests.kit import Call, HomeDir, Reply, Terminal, pty, server
from tests.kit import home as make_home
from tests.kit.waiting import wait_until

from cru.faces.cli.dialogs.answers import read_reply

PROMPT = "no > "
WAIT = "while [ ! -e go ]; do sleep 0.02; done"


def with_agents(tmp_path: Path, count: int, background: bool) -> HomeDir:
    """A home whose model starts agents; each waits for the file `go` and then wants to write a file of its own."""
    here = make_home(tmp_path)
    lines = []
    for n in range(count):
        wait = f"call: bash {json.dumps({'command': WAIT})}\n---\n" if background else ""
        write = f'call: write {{"file_path": "w{n}", "content": "y"}}\n---\ntext: written {n}\n'
        more = {"background": True} if background else {}
        lines.append(call("general", script(tmp_path, f"child{n}", wait + write), **more))
    text = "by: order\n" + "\n".join(lines) + "\n---\ntext: begun\n" + "---\ntext: heard\n" * 4
    allow = json.dumps([f"bash:{WAIT}", "bash:while *", "bash:sleep *", "bash:[ *"])
    configure_scripts(here, tmp_path, script(tmp_path, "main", text), f"[permissions]\nallow = {allow}\n")
    return here


def type_slowly(terminal: Terminal, text: str, rate: float) -> None:
    for key in text:
        terminal.send(key)
        time.sleep(1 / rate)


def type_across(terminal: Terminal, here: HomeDir, text: str, rate: float) -> None:
    """Type the text while what waits for the file `go` goes on in its middle."""
    timer = threading.Timer(len(text) / rate / 2, (here.project / "go").touch)
    timer.start()
    type_slowly(terminal, text, rate)
    timer.join()


def prompts(here: HomeDir) -> list[str]:
    return [entry["content"] for entry in here.log() if entry.get("role") == "user"]


@pytest.mark.slow
@pytest.mark.parametrize("words", ["a test for it", "yes, and add tests", "s", "y", "always y a"])
@pytest.mark.parametrize("rate", [10, 100])
def test_a_prompt_that_is_typed_when_a_question_comes_is_no_answer(tmp_path: Path, words: str, rate: float) -> None:
    here = with_agents(tmp_path, 1, background=True)
    text = "please write now all of this " * (3 if rate == 100 else 1) + words
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("look")
        terminal.expect("begun")
        terminal.expect("> ")
        type_across(terminal, here, text + "\r", rate)
        terminal.expect("write: w0")
        terminal.expect(PROMPT)
        assert not (here.project / "w0").exists() and not (here.cru / "grants.json").exists()
        terminal.line("n")
        terminal.expect("heard")
        terminal.expect(words)
        terminal.line("")
        terminal.expect("heard")
        assert terminal.eof() == 0
    assert not (here.project / "w0").exists() and not (here.cru / "grants.json").exists()
    assert text in prompts(here)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "words", ["a test for it", "yes, and add tests", "s as a test for it", "y\rand more", "a\rb\rc"]
)
def test_what_answers_a_question_stands_alone_and_the_rest_is_kept(tmp_path: Path, words: str) -> None:
    here = with_agents(tmp_path, 1, background=True)
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("look")
        terminal.expect("begun")
        terminal.expect("> ")
        terminal.send("please write ")
        terminal.expect("please write")
        (here.project / "go").touch()
        terminal.expect(PROMPT)
        terminal.line(words)
        terminal.expect(PROMPT)
        assert not (here.project / "w0").exists() and not (here.cru / "grants.json").exists()
        terminal.line("n")
        terminal.expect("heard")
        terminal.expect(words.rpartition("\r")[2])
        terminal.line("")
        terminal.expect("heard")
        assert terminal.eof() == 0
    assert not (here.project / "w0").exists()
    assert "please write " + words.replace("\r", "\n") in prompts(here)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [10, 100])
def test_what_is_typed_during_a_turn_is_no_answer_and_stands_in_the_next_prompt(tmp_path: Path, rate: float) -> None:
    here = with_agents(tmp_path, 1, background=False)
    wait = f"call: bash {json.dumps({'command': WAIT})}\n---\n"
    (tmp_path / "child0.txt").write_text(wait + (tmp_path / "child0.txt").read_text())
    text = "and then as the next thing write a test: yes, s\r" + "y\r" * (rate == 100)
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("look")
        terminal.expect(": bash")
        type_across(terminal, here, text, rate)
        terminal.expect(PROMPT)
        assert not (here.project / "w0").exists()
        terminal.line("y")
        terminal.expect("begun")
        terminal.expect("yes, s")
        terminal.line("")
        terminal.expect("heard")
        assert terminal.eof() == 0
    assert (here.project / "w0").exists() and prompts(here)[-1] == text.strip().replace("\r", "\n")


@pytest.mark.sample(1)
@pytest.mark.parametrize("rate", [10, 100])
def test_keys_that_are_pressed_when_a_run_asks_are_no_answer(home: HomeDir, rate: float) -> None:
    with server([Reply(calls=[Call("bash", {"command": "touch made"})], delay=0.3), Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect("waiting for the model")
            type_slowly(terminal, "y\ra\r" * (3 if rate == 10 else 20), rate)
            terminal.expect(PROMPT)
            assert not (home.project / "made").exists() and not (home.cru / "grants.json").exists()
            terminal.line("yes, do it")
            terminal.expect("is no answer")
            terminal.expect(PROMPT)
            terminal.line("yes")
            assert terminal.wait() == 0
    assert (home.project / "made").exists()


def test_a_dialog_of_a_plugin_opens_when_nobody_types(home: HomeDir) -> None:
    scripted(home)
    wait = 'while not cru.fs.exists("go") do cru.timer.sleep(0.02) end'
    asking(home, f'(function() {wait} return cru.ui.ask(nil, {{ question = "Name?" }}) end)()')
    with pty("hi", home=home) as terminal:
        type_across(terminal, home, "something else\r1\rof mine\r", 20)
        terminal.expect("cancels > ")
        terminal.line("me")
        assert terminal.wait() == 0
    assert answers(home) == [{"kind": "ask", "selected": [], "other": "me"}]


def test_each_question_of_several_agents_has_its_choices_below_it(tmp_path: Path) -> None:
    here = with_agents(tmp_path, 3, background=False)
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("look")
        for asked in range(3):
            terminal.expect(PROMPT)
            time.sleep(0.4)
            assert terminal.screen().endswith(PROMPT.rstrip()), asked
            terminal.line("y")
        terminal.expect("begun")
        assert terminal.eof() == 0
    wait_until(lambda: all((here.project / f"w{n}").exists() for n in range(3)))


@pytest.mark.parametrize("line", ["y", "Y", "yes ", "s", "session", "p", "project\n", "a", "always"])
def test_a_key_or_its_word_alone_allows(line: str) -> None:
    reply = read_reply(line)
    assert reply is not None and reply.choice != "no" and not reply.reason


@pytest.mark.parametrize("line", ["y x", "yes,", "a test", "s:", "always allow", "yep", "p/q", "session 3", "", "ask"])
def test_anything_else_allows_nothing(line: str) -> None:
    assert read_reply(line) is None
