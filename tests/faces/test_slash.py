"""Commands as a user types them: words, pipes, the chat; what they print and how the run ends."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kit import Hang, HomeDir, Received, Reply, Step, cru, pty, server, start
from tests.kit.waiting import wait_until


def hang_on_first(request: Received) -> Step:
    return Hang("so far") if "first" in request.body["messages"][-1]["content"] else Reply("answer")


def prompts(home: HomeDir, name: str = "default") -> list[str]:
    return [e["content"] for e in home.log(name) if e.get("role") == "user"]


def hears(home: HomeDir) -> None:
    """A plugin that writes stopped.txt when it hears of /stop."""
    (home.cru / "plugins").mkdir()
    (home.cru / "plugins" / "hears.lua").write_text(
        'cru.on("command:stop", function(ctx, e) cru.fs.write("stopped.txt", "yes") end)\n'
    )


@pytest.fixture
def here(home: HomeDir) -> HomeDir:
    """A home whose model is a script."""
    (home.path / "model.txt").write_text("loop: yes\ntext: hello\n")
    home.configure(f'model = "scripted:{home.path}/model.txt"\n')
    return home


def test_a_command_on_the_command_line_prints_and_asks_no_model(here: HomeDir) -> None:
    run = cru("/tools", home=here)
    assert run.code == 0 and run.out.startswith("read  ") and run.err == "" and here.log() == []


def test_words_after_the_command_need_no_quotes(here: HomeDir) -> None:
    assert cru("/help", "tools", home=here).out.startswith("/tools\n")


@pytest.mark.parametrize("text", ["/stop", "/stop\n", "/stop   \n\n"])
def test_a_command_through_a_pipe(here: HomeDir, text: str) -> None:
    run = cru("--commands", home=here, input=text)
    assert run.code == 0 and run.out == "nothing runs\n"


def test_piped_text_is_no_argument_of_a_command(here: HomeDir) -> None:
    assert cru("/help", home=here, input="tools\n").out == cru("/help", home=here).out


@pytest.mark.parametrize("text", ["/usr/bin is full", "//x", "/", "/ x", " /tools", "/1", "what is /tools"])
def test_other_words_with_a_slash_are_prompts(here: HomeDir, text: str) -> None:
    run = cru(text, home=here)
    assert run.code == 0 and run.out == "hello\n" and prompts(here) == [text]


def test_a_space_before_the_slash_makes_a_prompt_in_a_pipe_too(here: HomeDir) -> None:
    assert cru(home=here, input=" /tools\n").out == "hello\n" and prompts(here) == [" /tools"]


def test_after_two_dashes_nothing_is_a_command(here: HomeDir) -> None:
    assert cru("--", "/clear", home=here).out == "hello\n" and prompts(here) == ["/clear"]


def test_an_unknown_command_names_the_nearest_and_is_not_sent(here: HomeDir) -> None:
    run = cru("/tolos", home=here)
    assert run.code == 2 and run.out == "" and here.log() == []
    assert run.err == (
        "cru: unknown command `/tolos`\n  did you mean `/tools`?\n  a space before the slash makes it a prompt\n"
    )


def test_a_command_from_a_file_is_suggested_too(here: HomeDir) -> None:
    folder = here.path / ".claude" / "commands"
    folder.mkdir(parents=True)
    (folder / "fix.md").write_text("Fix $0")
    run = cru("/fx", home=here)
    assert run.code == 2 and "unknown command `/fx`\n  did you mean `/fix`?\n" in run.err


def test_help_on_an_unknown_command_does_not_speak_of_prompts(here: HomeDir) -> None:
    run = cru("/help tolos", home=here)
    assert (run.code, run.out, run.err) == (2, "", "cru: unknown command `/tolos`\n  did you mean `/tools`?\n")


def test_an_unknown_command_does_not_speak_of_an_older_unfinished_turn(home: HomeDir) -> None:
    with server([Hang("so far"), Reply("done")]) as model:
        home.configure(url=model.url)
        with start("one", home=home) as run:
            run.wait_for("so far")
            run.kill()
            run.wait()
        assert "--resume" not in cru("/tolos", home=home).err.partition("unknown command")[2]
        assert cru("--resume", home=home).out == "done\n"


@pytest.mark.parametrize("words", [("/quit",), ("/pause",), ("/tools", "now"), ("/trace", "x")])
def test_what_does_not_fit_is_told_and_exits_2(here: HomeDir, words: tuple[str, ...]) -> None:
    run = cru(*words, home=here)
    assert run.code == 2 and run.out == "" and run.err.startswith("cru: ") and "Traceback" not in run.err


def test_json_has_the_command_and_a_result(here: HomeDir) -> None:
    lines = [msgspec.json.decode(line) for line in cru("--json", "/stop", home=here).out.splitlines()]
    [said] = [line for line in lines if line["type"] == "command"]
    assert said["payload"]["command"] == "stop" and said["payload"]["text"] == "nothing runs"
    assert lines[-1]["type"] == "result" and lines[-1]["code"] == 0 and lines[-1]["payload"]["cause"] == "done"
    failed = cru("--json", "/tolos", home=here)
    last = msgspec.json.decode(failed.out.splitlines()[-1])
    assert failed.code == 2 and last["code"] == 2 and "unknown command" in last["payload"]["error"]


def test_a_file_given_with_a_command_that_sends_nothing_is_told(here: HomeDir) -> None:
    (here.project / "x.txt").write_text("X")
    run = cru("--attach", "x.txt", "/stop", home=here)
    assert run.code == 0 and run.out == "nothing runs\n" and "attached is not used" in run.err


def test_flags_that_call_no_model_carry_out_no_command(here: HomeDir) -> None:
    run = cru("-x", "/clear", home=here)
    assert run.code == 0 and run.out == "" and "the prompt is not sent (-x)" in run.err and here.log() == []


def test_clear_starts_from_nothing_and_names_the_way_back(here: HomeDir) -> None:
    cru("-C", "work", "one", home=here)
    run = cru("-C", "work", "/clear", home=here)
    assert run.out == "work starts from nothing; what was said before: cru -G work 0\n"
    assert cru("-G", "work", "5", home=here).out == "" and "one" in cru("-G", "work", "0", home=here).out


def test_a_context_keeps_its_model(here: HomeDir) -> None:
    other = here.path / "other.txt"
    other.write_text("loop: yes\ntext: from the other\n")
    run = cru("-C", "work", f"/model scripted:{other}", home=here)
    assert run.code == 0 and "answers from now on in work" in run.out
    assert cru("-C", "work", "hi", home=here).out == "from the other\n" and cru("hi", home=here).out == "hello\n"


def test_a_model_with_a_slip_keeps_the_old_one(here: HomeDir) -> None:
    run = cru("/model scriptd:x", home=here)
    assert run.code == 5 and "did you mean scripted:?" in run.err and cru("hi", home=here).out == "hello\n"


@pytest.mark.parametrize("command", ["/help", "/model", "/tools", "/trace"])
def test_looking_needs_no_lock(home: HomeDir, command: str) -> None:
    with server(hang_on_first) as model:
        home.configure(url=model.url)
        with start("first", home=home) as first:
            first.wait_for("so far")
            before = home.log()
            run = cru(command, home=home)
            assert run.code == 0 and run.out and run.err == "" and home.log() == before


@pytest.mark.parametrize("command", ["/clear", "/compact", "/model other"])
def test_changing_finds_the_context_held(home: HomeDir, command: str) -> None:
    with server(hang_on_first) as model:
        home.configure(url=model.url)
        with start("first", home=home) as first:
            first.wait_for("so far")
            run = cru(command, home=home)
            assert run.code == 4 and f"process {first.pid}" in run.err and run.out == ""


def test_stop_names_the_process_that_must_be_ended_and_plugins_hear_nothing(home: HomeDir) -> None:
    with server(hang_on_first) as model:
        home.configure(url=model.url)
        with start("first", home=home) as first:
            first.wait_for("so far")
            hears(home)
            run = cru("-t", "/stop", home=home)
            assert run.code == 4 and run.out == "" and not (home.project / "stopped.txt").exists()
            assert f"in use by process {first.pid}" in run.err and "(cru -C default) since" in run.err
            assert f"Ctrl-C there, or `kill -INT {first.pid}`" in run.err
            first.interrupt()
            first.wait()
        assert cru("-t", "/stop", home=home).out == "nothing runs\n" and (home.project / "stopped.txt").exists()


def test_ctrl_c_ends_a_compaction(home: HomeDir) -> None:
    with server([Reply("a"), Reply("b"), Hang("so far")]) as model:
        home.configure(url=model.url)
        cru("one", home=home)
        cru("two", home=home)
        before = home.log()
        with start("/compact", home=home) as run:
            model.wait(3)
            run.interrupt()
            done = run.wait()
        assert done.code == 130 and home.log() == before and "Traceback" not in done.err


def test_the_trace_command_shows_what_the_management_command_shows(here: HomeDir) -> None:
    cru("hi", home=here)
    assert cru("/trace", home=here).out == cru("trace", home=here).out
    assert cru("/trace 2", home=here).err.startswith("cru: there is no turn 2")


def test_help_in_the_chat_has_the_keys_and_the_chat_goes_on_after_errors(here: HomeDir) -> None:
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("/help")
        terminal.expect("/tools")
        terminal.expect("Alt-Enter")
        terminal.line("/tolos")
        terminal.expect("did you mean `/tools`?")
        terminal.line("/usr/bin is full")
        terminal.expect("hello")
        terminal.line("/trace")
        terminal.expect("turn 1 of 1")
        assert terminal.eof() == 0
    assert prompts(here) == ["/usr/bin is full"]


@pytest.mark.parametrize(("command", "last"), [("/help", "prompt of it."), ("/tools", "to the user")])
def test_tables_are_broken_at_words_below_their_column(here: HomeDir, command: str, last: str) -> None:
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line(command)
        terminal.expect(last)
        terminal.expect("project · ask")
        printed = terminal.text
        assert terminal.eof() == 0
    about = cru(command, home=here).out.splitlines()
    first = about[0].split()[0]
    shown = printed[printed.rindex(f"\n{first} ") + 1 :].partition("\n> ")[0].splitlines()
    assert len(shown) > len(about) > 10 and max(map(len, shown)) < 80 < max(map(len, about))
    whole = " ".join(" ".join(shown).split())
    assert [
        line for line in about if " ".join(line.split()) not in whole
    ] == []  # the chat has commands of the shell, too


def test_another_model_answers_in_the_same_chat(here: HomeDir) -> None:
    other = here.path / "other.txt"
    other.write_text("loop: yes\ntext: from the other\n")
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.line("hi")
        terminal.expect("hello")
        terminal.line(f"/model scripted:{other}")
        terminal.expect("answers from now on")
        terminal.line("hi")
        terminal.expect("from the other")
        assert terminal.eof() == 0


def test_ctrl_c_ends_a_compaction_and_the_chat_goes_on(home: HomeDir) -> None:
    with server([Reply("first"), Reply("second"), Hang("so far"), Reply("third")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            for answer in ("first", "second"):
                terminal.expect("> ")
                terminal.line("go on")
                terminal.expect(answer)
            terminal.line("/compact")
            model.wait(3)
            terminal.key("c-c")
            terminal.expect("interrupted")
            terminal.line("next")
            terminal.expect("third")
            assert terminal.eof() == 0


def test_clearing_after_a_failed_turn_leaves_nothing_to_resume(home: HomeDir) -> None:
    with server([Hang("so far\n\n")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("one")
            terminal.expect("so far")
            terminal.key("c-c")
            terminal.expect("interrupted")
            terminal.line("/clear")
            terminal.expect("starts from nothing")
            assert terminal.eof() == 0
    assert "resume with" not in terminal.text and "this conversation" in terminal.text


def test_pause_hands_control_over_and_comes_back(here: HomeDir) -> None:
    plugins = here.cru / "plugins"
    plugins.mkdir()
    (plugins / "hears.lua").write_text(
        'for _, n in ipairs({"paused", "resumed"}) do\n'
        '  cru.on("session:" .. n, function(ctx, e) cru.fs.write(n .. ".txt", e.how) end)\nend\n'
    )
    with pty("-t", home=here) as terminal:
        terminal.expect("> ")
        terminal.line("hi")
        terminal.expect("hello")
        terminal.line("/pause")
        stat = Path(f"/proc/{terminal.pid}/stat")
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
        assert not (here.context() / ".lock").exists()
        subprocess.run(["kill", "-CONT", str(terminal.pid)], check=True)
        terminal.line("again")
        terminal.expect("hello")
        assert terminal.eof() == 0
    assert [(here.project / f"{name}.txt").read_text() for name in ("paused", "resumed")] == ["/pause", "SIGCONT"]


def test_tab_completes_commands_of_cru_and_of_plugins(here: HomeDir) -> None:
    (here.cru / "plugins").mkdir()
    (here.cru / "plugins" / "flow.lua").write_text(
        '--- Deliver it.\n-- @command name="deliver" desc="deliver it"\nfunction deliver(args)\n  return "delivered"\nend\n'
    )
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.send("/deli")
        terminal.key("tab")
        terminal.expect_screen("> /deliver")
        terminal.key("enter")
        terminal.expect("delivered")
        terminal.send("/too\t")
        terminal.expect_screen("> /tools")
        terminal.key("enter")
        terminal.expect("built-in")
        assert terminal.eof() == 0


def test_tab_in_a_prompt_opens_nothing(here: HomeDir) -> None:
    with pty(home=here) as terminal:
        terminal.expect("> ")
        terminal.send("to\tx /to\t\r")
        terminal.expect("hello")
        assert terminal.eof() == 0
    assert prompts(here)[0].startswith("to")


def test_the_prompt_of_a_plugins_command_is_logged_with_what_was_typed(here: HomeDir) -> None:
    (here.cru / "plugins").mkdir()
    (here.cru / "plugins" / "flow.lua").write_text(
        '--- Ask.\n-- @command name="ask" desc="ask it"\n'
        'function ask(args)\n  return { message = "asking", inject = "please " .. args._raw }\nend\n'
    )
    run = cru("/ask the thing", home=here)
    assert run.code == 0 and run.out == "asking\nhello\n"
    entry: dict[str, Any] = next(e for e in here.log() if e.get("role") == "user")
    assert entry["content"] == "please the thing"
    assert entry["metadata"]["source"] == "command" and entry["metadata"]["command"] == "/ask the thing"


def test_a_plugin_hears_stop(here: HomeDir) -> None:
    hears(here)
    assert cru("-t", "/help stop", home=here).code == 0
    assert cru("-t", "/clear", home=here).code == 0
    assert not (here.project / "stopped.txt").exists()
    assert cru("-t", "/stop", home=here).code == 0
    assert (here.project / "stopped.txt").exists()
