"""Commands have one name in the shell and in the chat, and the names and habits of other agents work or say what works here."""

from __future__ import annotations

import pytest
from tests.kit import Call, HomeDir, Reply, cru, pty, server

from cru.core.command_table import COMMANDS
from cru.faces.cli.flag_places import expand_command, is_chat_command, nearest_command, take_options
from cru.faces.cli.flags import Parsed, overview, parse


def flags(parsed: Parsed) -> dict[str, tuple[str, ...]]:
    return {flag.name: values for flag, values in parsed.flags}


@pytest.mark.parametrize(
    ("line", "words", "given"),
    [
        (["hi", "--json"], ("hi",), {"json": ()}),
        (["what", "is", "this", "--model", "m", "--mode=plan"], ("what", "is", "this"), {"model": ("m",), "mode": ("plan",)}),
        (["-v", "hi", "--json"], ("hi",), {"verbose": (), "json": ()}),
        (["what", "does", "--json", "do"], ("what", "does", "--json", "do"), {}),
        (["explain", "--model", "in", "click"], ("explain", "--model", "in", "click"), {}),
        (["hi", "--", "--json"], ("hi", "--", "--json"), {}),
        (["--", "hi", "--json"], ("hi", "--json"), {}),
        (["explain", "tar", "-t"], ("explain", "tar", "-t"), {}),
        (["hi", "--delete-current-context"], ("hi", "--delete-current-context"), {}),
        (["hi", "--jsn"], ("hi", "--jsn"), {}),
        (["what", "is", "--model"], ("what", "is", "--model"), {}),
        (["what", "is", "--model", "--json"], ("what", "is"), {"model": ("--json",)}),
        (["hi", "--json-config"], ("hi", "--json-config"), {}),
        (["hi", "--json", "there", "--model=m"], ("hi", "--json", "there"), {"model": ("m",)}),
        (["hooks", "log", "--json"], ("hooks", "log", "--json"), {}),
        (["-p", "fix the bug"], ("fix the bug",), {"print": ()}),
        (["-p", "--json", "fix it"], ("fix it",), {"print": (), "json": ()}),
        (["-p", "counter", "up", "--json"], (), {"plugin": ("counter", "up", "--json")}),
        (["--print", "--continue", "hi"], ("hi",), {"print": (), "continue": ()}),
    ],
)  # fmt: skip
def test_options_may_stand_behind_the_prompt(line: list[str], words: tuple[str, ...], given: dict[str, object]) -> None:
    parsed = take_options(parse(line))
    assert (parsed.words, flags(parsed)) == (words, given)


def test_an_option_behind_the_prompt_counts(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        done = cru("hello there", "--json", "--model", "other", home=home)
        assert model.requests[0].body["model"] == "other"
        assert model.requests[0].body["messages"][-1]["content"] == "hello there"
    assert done.code == 0 and done.out.splitlines()[-1].startswith('{"v":1,"type":"result"')


def test_a_prompt_behind_the_letter_for_printing_is_asked(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        assert cru("-p", "say something", home=home).out == "answer\n"


def test_a_prompt_in_the_place_of_a_context_says_what_to_type(home: HomeDir) -> None:
    run = cru("-c", "go on with it", home=home)
    assert run.code == 2 and "cru 'go on with it'" in run.err


@pytest.mark.parametrize(
    ("line", "is_command"),
    [
        ("undo", True), ("undo 2", True), ("undo --leave", True), ("undo 2 --leave", True), ("undo the last change", False),
        ("mode plan", True), ("mode of transport", False), ("model m --all", True), ("model list gpt", True), ("model the data", False),
        ("clear", True), ("clear the cache", False), ("new", True), ("new features please", False), ("export out.md", True),
        ("new parser", True), ("new parser for dates, please write it", False), ("new parser, please", False), ("new -", False),
        ("resume garden", True), ("resume -", True), ("resume writing the tests", False), ("resume, please", False),
        ("compact keep the names", True), ("compact keep", False), ("compact the vectors in index.py", False), ("theme light", True),
        ("theme of the book", False), ("exit codes of cru", False),
        ("export the data", False), ("status of the build", False), ("config base_url", True), ("hello", False), ("diff all", True),
    ],
)  # fmt: skip
def test_words_are_a_command_of_the_chat_if_they_fit_it(line: str, is_command: bool) -> None:
    assert is_chat_command(line.split()) is is_command


def test_what_is_piped_in_is_no_argument_of_a_command(home: HomeDir) -> None:
    with server([Reply("answer"), Reply("answer")]) as model:
        home.configure(url=model.url)
        assert [cru(prompt, home=home).code for prompt in ("one", "two")] == [0, 0]
    run = cru("undo", home=home, input="2")
    assert run.code == 0 and "1 turn is taken back: “two”" in run.out
    assert cru("mode", home=home, input="trust").out == cru("mode", home=home).out


def test_an_empty_word_belongs_to_no_command() -> None:
    assert not is_chat_command(["undo", ""])


def test_each_command_of_the_chat_works_in_the_shell(home: HomeDir) -> None:
    home.configure('mode = "plan"\n')
    shown = cru("mode", home=home)
    assert shown.code == 0 and shown.out == cru("/mode", home=home).out and "* plan" in shown.out


def test_a_prompt_that_begins_as_a_command_is_asked(home: HomeDir) -> None:
    with server([Reply("answer"), Reply("answer")]) as model:
        home.configure(url=model.url)
        assert cru("undo", "what", "you", "did", home=home).out == "answer\n"
        assert cru("help me with this", home=home).out == "answer\n"


def test_the_overview_fits_on_a_screen_and_has_every_command() -> None:
    lines = overview().splitlines()
    assert len(lines) <= 30 and max(map(len, lines)) <= 100
    groups = lines[lines.index("Commands, by what they are about:") + 1 : lines.index("Flags:")]
    assert COMMANDS.keys() <= {*" ".join(groups).split()} and max(map(len, groups)) < 80


@pytest.mark.parametrize(
    ("topic", "text"),
    [("flags", "--strict-hooks"), ("commands", "workflows"), ("undo", "in the chat: /undo"), ("vault", "cru vault")],
)  # fmt: skip
def test_help_explains(home: HomeDir, topic: str, text: str) -> None:
    run = cru("help", topic, home=home)
    assert run.code == 0 and text in run.out and run.err == ""


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("help mcp add", "cru mcp add"), ("help models list", "cru models"), ("help undo redo", "in the chat: /undo"),
        ("help flags of cru", "--strict-hooks"), ("help /undo 2", "in the chat: /undo"), ("/help undo 2", "/undo [N]"),
    ],
)  # fmt: skip
def test_help_explains_the_first_of_several_words(home: HomeDir, line: str, text: str) -> None:
    run = cru(*line.split(), home=home, input="more")
    assert (run.code, run.err) == (0, "") and text in run.out


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("help zzz", ""),
        ("help git push", ""),
        ("help udno it", "did you mean: cru help undo"),
        ("help me with this", ""),
    ],
)
def test_help_never_asks_the_model(home: HomeDir, line: str, near: str) -> None:
    run = cru(*line.split(), home=home, input="more")
    assert (run.code, run.out) == (2, "") and f"there is no command {line.split()[1]}" in run.err
    assert near in run.err and "conversations  new sessions resume" in run.err
    assert f"as a prompt: cru -- {line}" in run.err


def test_help_on_what_is_not_there_says_so(home: HomeDir) -> None:
    run = cru("help", "nonsense", home=home)
    assert run.code == 2 and "no command nonsense" in run.err and run.out == ""


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("udno", "undo"), ("Undoo", "undo"), ("rewind", "undo"), ("usage", "cost"), ("quitt", "quit"), ("hook list", "hooks list"),
        ("continue", "resume"), ("/undo", ""), ("hello", ""), ("hook lost", ""), ("delete", "sessions delete"), ("list", "sessions list"),
        ("ls", "sessions"), ("keys", "login"), ("auth", "login"), ("plan", "mode"), ("bashes", "tasks"), ("stats", "status"),
        ("list the files", ""), ("delete main.c", ""), ("list open issues", ""),
        ("delete list entries", ""), ("continue with it", ""), ("tests", ""), ("chats delete", "sessions delete"),
    ],
)  # fmt: skip
def test_a_word_that_is_nearly_a_command_is_no_prompt(line: str, near: str) -> None:
    assert " ".join(nearest_command(line.split())) == near


@pytest.mark.parametrize(
    ("line", "words", "given"),
    [
        ("undo 2", ("/undo", "2"), {}), ("quit", ("/exit",), {}), ("new", (), {"switch-context": ("new",)}), ("resume", (), {"resume": ()}),
        ("rename short", (), {"rename-current-context": ("short",)}),
    ],
)  # fmt: skip
def test_a_command_of_the_chat_is_a_flag_or_a_text_in_the_shell(line: str, words: object, given: object) -> None:
    parsed = parse(line.split())
    assert is_chat_command(parsed.words)
    expand_command(parsed)
    assert (parsed.words, flags(parsed)) == (words, given)


@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        ("--permission-mode", "acceptEdits"),
        ("--output-format", "--json"),
        ("--max-turns", "fuel=N"),
        ("--session-id", "-C NAME"),
    ],
)
def test_a_flag_of_another_agent_says_what_works_here(home: HomeDir, flag: str, hint: str) -> None:
    run = cru(flag, "x", "hi", home=home)
    assert run.code == 2 and hint in run.err


def test_a_chat_goes_on_in_other_conversations(home: HomeDir) -> None:
    home.cru.mkdir(parents=True, exist_ok=True)
    (home.cru / "init.lua").write_text(
        'cru.on("context:switched", function(ctx, e) cru.fs.write("switched", e.old .. " " .. e.new) end)\n'
    )
    with server([Reply("first answer"), Reply("second answer")]) as model:
        home.configure(url=model.url)
        with pty(home=home) as terminal:
            terminal.expect("> ")
            terminal.line("hello")
            terminal.expect("first answer")
            terminal.line("/rename greeting")
            terminal.expect("in the context greeting")
            terminal.expect("first answer")
            terminal.expect("> ")
            terminal.line("/new")
            terminal.expect("in the context 2")
            terminal.expect("> ")
            terminal.line("once more")
            terminal.expect("second answer")
            terminal.line("/resume greting")
            terminal.expect("greeting")
            terminal.expect("> ")
            terminal.line("/resume greeting")
            terminal.expect("in the context greeting")
            terminal.expect("> ")
            assert terminal.eof() == 0
        assert (home.project / "switched").read_text().endswith(" greeting")
        assert len(model.requests[1].body["messages"]) == len(model.requests[0].body["messages"])


def test_a_command_of_the_shell_runs_on_the_terminal_of_the_chat(home: HomeDir) -> None:
    with pty(home=home) as terminal:
        terminal.expect("> ")
        terminal.line("/hooks list")
        terminal.expect("there are no hooks")
        terminal.expect("> ")
        terminal.line("/help flags")
        terminal.expect("--strict-hooks")
        terminal.expect("> ")
        terminal.line("/plugin new greeter")
        terminal.expect("greeter")
        terminal.expect("> ")
        terminal.line("/completion")
        terminal.expect("works in the shell only")
        terminal.expect("> ")
        terminal.line("/hooks nonsense")
        terminal.expect("[exit code 2]")
        terminal.expect("> ")
        assert terminal.eof() == 0
    assert (home.cru / "plugins/greeter").is_dir()


def test_status_context_and_config_say_what_is(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure('mode = "plan"\n', url=model.url)
        assert cru("hi", home=home).code == 0
        status, context, config = (cru(name, home=home).out for name in ("status", "context", "config"))
    assert "mode          plan" in status and f"project       {home.project}" in status
    assert "log entries" in context and "tools" in context
    assert "mode = plan  (" in config and "config.toml:" in config and "sk-" not in config
    run = cru("config", "nothing.of_that", home=home)
    assert run.code != 0 and "nothing sets" in run.err


def test_a_conversation_is_exported_once(home: HomeDir) -> None:
    calls = [Call("bash", {"command": "seq 30; echo '```'"})]
    with server([Reply(calls=calls), Reply("It **works**.")]) as model:
        home.configure('mode = "trust"\n', url=model.url)
        assert cru("try it", home=home).code == 0
    assert "written: " in cru("export", "out.md", home=home).out
    text = (home.project / "out.md").read_text()
    assert text.startswith("# ") and "## You\n\ntry it" in text and "## cru\n\nIt **works**." in text
    assert "… 11 more lines" in text and "seq 30" in text
    again = cru("export", "out.md", home=home)
    assert again.code != 0 and "is there already" in again.err
    assert (home.project / "out.md").read_text() == text


def test_the_last_answer_is_copied_by_a_program(home: HomeDir) -> None:
    programs = home.path / "programs"
    programs.mkdir()
    copier = programs / "wl-copy"
    copier.write_text(f"#!/bin/sh\ncat > {home.path}/copied\n")
    copier.chmod(0o755)
    env = {"WAYLAND_DISPLAY": "w", "PATH": f"{programs}:{home.env['PATH']}"}
    with server([Reply("to be copied")]) as model:
        home.configure(url=model.url)
        with pty(home=home, env=env) as terminal:
            terminal.expect("> ")
            terminal.line("hi")
            terminal.expect("to be copied")
            terminal.line("/copy")
            terminal.expect("by wl-copy")
            terminal.expect("> ")
            assert terminal.eof() == 0
    assert (home.path / "copied").read_text() == "to be copied"


def test_init_asks_the_model_for_the_guide(home: HomeDir) -> None:
    with server([Reply("done")]) as model:
        home.configure(url=model.url)
        assert cru("init", home=home).code == 0
        assert "AGENTS.md" in model.requests[0].body["messages"][-1]["content"]
