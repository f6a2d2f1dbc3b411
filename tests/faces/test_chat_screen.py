"""The chat's screen: what is finished stands in the scrollback, what changes below it, and what is typed at any time is seen."""

from __future__ import annotations

import json
import os
import re
import time

import pytest
from tests.kit import Call, Hang, HomeDir, Reply, pty, server, wait_until
from tests.kit.processes import is_running, ticks

from cru.core.base.values.messages import Usage
from cru.faces.cli.terminal.size import rows_at_words

WAIT = "until [ -e go ]; do sleep 0.01; done"


def prompts(home: HomeDir) -> list[str]:
    return [e["content"] for e in home.log() if e.get("role") == "user"]


def auto(home: HomeDir, url: str) -> None:
    home.configure('mode = "trust"\n', url=url)


def test_an_answer_is_seen_as_it_comes_and_stands_there_once_when_it_is_whole(home: HomeDir) -> None:
    with server([Hang("a **first** paragraph\n\nthe second one has")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect_screen("a first paragraph")
            terminal.expect_screen("the second one has\n")
            terminal.key("esc")
            terminal.expect("cru: interrupted")
            screen = terminal.screen()
            assert terminal.eof() == 0
    assert screen.count("a first paragraph") == screen.count("the second one has") == screen.count("> one") == 1


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        ("one two three", ["one two", "three"]),
        ("one two  three", ["one two ", "three"]),
        ("12345678 1", ["12345678", "1"]),
        ("1234567890123 4", ["12345678", "90123 4"]),
        ("  123456789", ["  123456", "789"]),
        ("漢字 漢字漢字", ["漢字", "漢字漢字"]),
        ("", [""]),
    ],
)
def test_text_that_comes_is_broken_at_words(line: str, rows: list[str]) -> None:
    assert rows_at_words(line, 8) == rows


def test_what_comes_stands_as_it_will_when_it_is_whole(home: HomeDir) -> None:
    words = "word " * 15 + "a-word-at-the-end and more"
    with server([Hang(words)]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect_screen("\na-word-at-the-end and more\n")
            terminal.key("esc")
            terminal.expect("cru: interrupted")
            terminal.expect_screen("\na-word-at-the-end and more\n")
            assert terminal.eof() == 0


def test_what_is_entered_while_it_works_waits_in_sight_and_can_be_taken_back(home: HomeDir) -> None:
    with server([Hang("so far"), Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect_screen("so far")
            terminal.line("two")
            terminal.line("three")
            terminal.expect_screen("  next: two\n  next: three\n…")
            terminal.key("up")
            terminal.expect_screen("  next: two\n… three")
            terminal.key("c-c")
            terminal.expect_screen("> two\n  three")
            assert len(model.requests) == 1
            terminal.line("!")
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert prompts(home) == ["one", "two\nthree!"]


@pytest.mark.slow
def test_a_running_command_shows_its_last_lines_and_a_clock(home: HomeDir) -> None:
    command = f"seq 100; printf '\\033[2Jred\\n'; {WAIT}; echo end"
    with server([Reply(calls=[Call("bash", {"command": command})]), Reply("done")]) as model:
        auto(home, model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect_screen("  | 99\n  | 100\n  | \\x1b[2Jred\nrunning bash …")
            terminal.expect_screen("running bash … 1 s")
            (home.project / "go").touch()
            terminal.expect("done")
            terminal.expect("> ")
            assert "running bash" not in terminal.screen()
            assert terminal.eof() == 0


def test_todos_stand_at_the_call_and_the_next_one_in_sight_while_it_works(home: HomeDir) -> None:
    todos = "- [x] read\n- [ ] write\n- [ ] test\nnot one\x1b[2J"
    with server([Reply(calls=[Call("update_todos", {"content": todos})]), Hang("so far")]) as model:
        auto(home, model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect_screen("  - [x] read\n  - [ ] write\n  - [ ] test\n  not one\\x1b[2J")
            terminal.expect_screen("so far\n  todos: 1 of 3 done, next: write\n")
            terminal.key("c-c")
            terminal.expect("interrupted")
            assert terminal.eof() == 0


def test_the_status_line_says_where_one_is(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.expect_screen("project · ask")
            terminal.line("one")
            terminal.expect("answer")
            terminal.expect_screen("> \nproject · mock · ask · ".replace("> ", ">"))
            terminal.expect_screen(" · sandbox off")
            assert terminal.eof() == 0


def test_the_status_line_says_how_full_the_window_is_and_which_hooks_wait(home: HomeDir) -> None:
    hooks = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    (home.project / ".claude").mkdir()
    (home.project / ".claude" / "settings.json").write_text(json.dumps(hooks))
    with server([Reply("x" * 4_000)]) as model:
        home.configure("context_window_limit = 10000\n", url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect_screen("% full · ")
            terminal.expect_screen(" · ! 1 hook awaits trust")
            assert re.search(r"ask · [1-9]\d % full", terminal.screen())
            assert terminal.eof() == 0


def test_the_status_line_counts_no_prompt_whose_answer_has_not_come(home: HomeDir) -> None:
    usage = Usage(input=1000, output=200)
    with server([Reply("first", usage=usage), Hang(), Reply("third", usage=usage)]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("first")
            terminal.expect_screen("mock · ask · 1.2k tokens")
            terminal.line("two")
            model.wait(2)
            terminal.expect_screen("mock · ask · 1.2k tokens in all")
            terminal.key("c-c")
            terminal.expect("cru: interrupted")  # what is entered before that stands in the input again
            terminal.line("three")
            terminal.expect("third")
            terminal.expect_screen("1.2k tokens, ")
            assert terminal.eof() == 0


def test_ctrl_c_twice_in_an_empty_line_leaves(home: HomeDir) -> None:
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.key("c-c")
        terminal.key("c-c")
        assert terminal.wait() == 0


def test_a_line_goes_on_behind_a_backslash_and_ctrl_j(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one\\")
            terminal.send("two")
            terminal.key("c-j")
            terminal.line("three")
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert prompts(home) == ["one\ntwo\nthree"]


def test_without_escape_sequences_it_goes_line_by_line(home: HomeDir) -> None:
    with server([Reply("answer"), Reply("again")]) as model:
        home.configure(url=model.url)
        with pty(home=home, env={"TERM": "dumb"}, is_first_prompt_enough=True) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("answer")
            terminal.expect("> ")
            terminal.line("two")
            terminal.expect("again")
            terminal.expect("> ")
            assert terminal.eof() == 0
    assert prompts(home) == ["one", "two"]


@pytest.mark.parametrize("name", ["dumb", "xterm-256color"])
def test_an_idle_chat_does_nothing(home: HomeDir, name: str) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home, env={"TERM": name}, is_first_prompt_enough=name == "dumb") as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("answer")
            terminal.expect("> ")
            terminal.expect_silence(0.5)  # what comes late on a busy machine is no fault
            before, drawn = ticks(terminal.pid), len(terminal.text)
            time.sleep(0.5)
            terminal.screen()
            assert len(terminal.text) == drawn
            assert ticks(terminal.pid) - before < 5  # of 50
            assert terminal.eof() == 0


@pytest.mark.parametrize("has_colours", [True, False])
def test_no_color_is_heeded(home: HomeDir, has_colours: bool) -> None:
    with pty(home=home, env={} if has_colours else {"NO_COLOR": "1"}) as terminal:
        drawn = b""
        while b"project" not in drawn.rpartition(b"/help")[2]:  # the status line
            drawn += os.read(terminal.descriptor, 4096)
    codes = {code for codes in re.findall(rb"\x1b\[([\d;]*)m", drawn) for code in codes.split(b";")}
    assert bool(codes & {b"36", b"90"}) == has_colours  # cyan, grey


def test_a_narrow_terminal_and_one_that_changes_lose_nothing(home: HomeDir) -> None:
    with server([Hang("漢字 " * 40), Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.resize(12, 20)
            terminal.line("one")
            terminal.expect_screen("漢字 漢字")
            for rows, columns in ((5, 10), (3, 3), (24, 80)):
                terminal.resize(rows, columns)
            terminal.key("c-c")
            terminal.expect("interrupted")
            terminal.line("two")
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert prompts(home) == ["one", "two"]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["x" * 300_000, "line\n" * 5_000], ids=["a line", "lines"])
def test_much_text_is_no_reason_to_wait(home: HomeDir, text: str) -> None:
    with server([Reply(text + "\n\nthe end"), Reply("again")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.send("two")
            terminal.expect("the end")
            terminal.expect_screen("> two")
            terminal.key("enter")
            terminal.expect("again")
            assert terminal.eof() == 0


def test_the_clock_of_what_does_not_run_costs_nothing(home: HomeDir) -> None:
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.expect_screen("project · ask")
        terminal.expect_silence(0.5)
        before = len(terminal.text)
        time.sleep(1.2)
        terminal.screen()
        assert len(terminal.text) == before
        terminal.key("c-d")
        wait_until(lambda: terminal.wait() == 0)


def test_stop_does_not_wait_for_the_end_of_an_answer(home: HomeDir) -> None:
    with server([Hang("so far"), Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect_screen("so far")
            terminal.line("two")
            terminal.expect_screen("  next: two")
            terminal.line("/stop")
            terminal.expect_screen("> two")
            assert len(model.requests) == 1
            terminal.key("enter")
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert prompts(home) == ["one", "two"]


def test_what_a_call_changed_stands_below_it_as_a_diff(home: HomeDir) -> None:
    (home.project / "a.py").write_text("".join(f"line {n}\n" for n in range(20)))
    edit = {"file_path": "a.py", "old_string": "line 7\n", "new_string": "line seven\x1b[2J\n"}
    create = {"file_path": "b.py", "content": "new\n"}
    calls = [Call("read", {"file_path": "a.py"}), Call("edit", edit), Call("write", create)]
    with server([Reply(calls=calls), Reply("done")]) as model:
        auto(home, model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("done")
            screen = terminal.screen()
            assert terminal.eof() == 0
    assert "  --- a/a.py\n  +++ b/a.py\n  @@ -5,7 +5,7 @@\n      5  line 4\n" in screen
    assert "      8 -line 7\n      8 +line seven\\x1b[2J\n      9  line 8\n" in screen
    assert "  --- /dev/null\n  +++ b/b.py\n  @@ -0,0 +1 @@\n      1 +new\n" in screen


def test_a_call_with_an_id_that_was_used_before_shows_its_own_change(home: HomeDir) -> None:
    writes = [
        Reply(calls=[Call("write", {"file_path": f"{name}.txt", "content": f"{name}\n"}, id="same")]) for name in "ab"
    ]
    with server([writes[0], Reply("first"), writes[1], Reply("second")]) as model:
        auto(home, model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("first")
            terminal.line("two")
            terminal.expect("second")
            screen = terminal.screen()
            assert terminal.eof() == 0
    assert screen.count("+++ b/a.txt") == screen.count("+++ b/b.txt") == 1


def test_a_command_leaves_its_last_lines(home: HomeDir) -> None:
    with server([Reply(calls=[Call("bash", {"command": "seq 9; exit 3"})]), Reply("done")]) as model:
        auto(home, model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("done")
            screen = terminal.screen()
            assert terminal.eof() == 0
    assert "  | … 5 lines before\n  | 6\n  | 7\n  | 8\n  | 9\n  | [exit code 3]\n" in screen


def test_files_are_offered_behind_an_at(home: HomeDir) -> None:
    for name in ("src/engine/leg.py", "src/legend.md", "build/leg.o", "a leg.txt"):
        (home.project / name).parent.mkdir(parents=True, exist_ok=True)
        (home.project / name).write_text("")
    (home.project / ".gitignore").write_text("build/\n")
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.send("read @leg")
            wait_until(lambda: re.search(r"@leg\n[^@]*src/legend\.md", terminal.screen()) is not None)
            screen = terminal.screen()
            assert "a leg.txt" in screen and "leg.o" not in screen
            terminal.key("tab")
            terminal.send(" and @sengl")
            wait_until(lambda: re.search(r"@sengl\n[^@]*src/engine/leg\.py", terminal.screen()) is not None)
            terminal.key("tab")
            terminal.line("")
            terminal.expect("answer")
            assert terminal.eof() == 0
    assert prompts(home) == ["read @src/legend.md and @src/engine/leg.py"]


def test_a_command_of_ones_own_runs_and_the_model_hears_of_it(home: HomeDir) -> None:
    with server([Reply("answer"), Reply("next")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("!echo out; pwd >&2; exit 3")
            terminal.expect("out\n")
            terminal.expect("[exit code 3]")
            terminal.expect("> ")
            terminal.line("!echo half; echo $$ >pid; exec sleep 600")
            wait_until(lambda: (home.project / "pid").exists() and (home.project / "pid").read_text().endswith("\n"))
            terminal.key("c-c")
            terminal.expect("half\n[interrupted]")
            terminal.expect("> ")
            assert not model.requests
            assert terminal.screen().count("out\n") == terminal.screen().count("half\n") == 1
            terminal.line("one")
            terminal.expect("answer")
            terminal.line(" !two")
            terminal.expect("next")
            assert terminal.eof() == 0
    assert not is_running(int((home.project / "pid").read_text()))
    sent = str(model.requests[0].body["messages"])
    assert "The user ran a command of their own:" in sent and f"out\\n{home.project}\\n[exit code 3]" in sent
    assert "exec sleep 600\\nhalf\\n[interrupted]" in sent
    assert prompts(home)[-1].strip() == "!two"
