"""Standard output holds the model's text and nothing else; diagnostics stand on standard error."""

from __future__ import annotations

import json
import subprocess

import pytest
from tests.core.plugins.executables.programs import tool
from tests.kit import Call, HomeDir, Reply, cru, pty, server

from cru.faces.cli.json_mode.face import MOST_OUTPUT

TOOL = Reply("looking", calls=[Call("ls", {})])
SHELL = Reply(calls=[Call("bash", {"command": "echo hi; \x1b[2J\nrm -rf x"})])


def shell(home: HomeDir, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", command], env=home.env, cwd=home.project, capture_output=True, text=True)


def test_stdout_is_the_models_text_in_raw_form(home: HomeDir) -> None:
    text = "# Title\n\n**bold** `code`\n\x1b[31mred\x1b[0m\ttab\r\n"
    with server([Reply(text, pieces=3)]) as model:
        home.configure(url=model.url)
        run = subprocess.run(
            ["cru", "hi"], env=home.env, cwd=home.project, stdin=subprocess.DEVNULL, capture_output=True
        )
    assert (run.returncode, run.stdout, run.stderr) == (0, text.encode(), b"")


@pytest.mark.parametrize(
    ("text", "out"), [("done", "done\n"), ("done\n", "done\n"), ("\ndone", "done\n"), ("\n\ndone", "\ndone\n")]
)
@pytest.mark.parametrize("pieces", [0, 1])
def test_one_newline_goes_at_the_front_and_one_stands_at_the_end(
    home: HomeDir, text: str, out: str, pieces: int
) -> None:
    with server([Reply(text, pieces=pieces)]) as model:
        home.configure(url=model.url)
        assert cru("hi", home=home).out == out


def test_texts_before_and_after_tool_calls_stand_on_their_own_lines(home: HomeDir) -> None:
    with server([TOOL, Reply("\nfound it")]) as model:
        home.configure(url=model.url)
        assert cru("hi", home=home).out == "looking\nfound it\n"


def test_verbose_tells_on_stderr_and_never_on_stdout(home: HomeDir) -> None:
    with server([TOOL, Reply("done")]) as model:
        home.configure(url=model.url)
        run = cru("-v", "hi", home=home)
    assert run.out == "looking\ndone\n"
    assert "[model openai_compatible:mock" in run.err and "[tool ls]\n" in run.err and "[tool ls done in" in run.err


def test_without_verbose_stderr_is_silent(home: HomeDir) -> None:
    with server([TOOL, Reply("done")]) as model:
        home.configure(url=model.url)
        assert cru("hi", home=home).err == ""


def test_a_refusal_by_policy_is_told_without_verbose(home: HomeDir) -> None:
    with server([SHELL, Reply("done")]) as model:
        home.configure(url=model.url)
        run = cru("hi", home=home)
    assert run.out == "done\n" and "[tool bash policy: " in run.err and "nobody can be asked here" in run.err


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (Call("bsh", {"command": "true"}), "[tool bsh unknown: "),
        (Call("bash", {"comand": "true"}), "[tool bash invalid: "),
        (Call("bash", {"command": "sleep 9", "timeout": 0.1}), "[tool bash timeout: "),
    ],
)
def test_a_call_that_comes_to_nothing_is_told_without_verbose(home: HomeDir, call: Call, told: str) -> None:
    with server([Reply(calls=[call]), Reply("done")]) as model:
        home.configure(url=model.url)
        run = cru("-t", "hi", home=home)
    assert run.out == "done\n" and told in run.err and run.err.count("\n") == 1


@pytest.mark.parametrize("flags", [(), ("-v",)])
def test_a_command_that_merely_fails_is_told_with_verbose(home: HomeDir, flags: tuple[str, ...]) -> None:
    with server([Reply(calls=[Call("bash", {"command": "false"})]), Reply("done")]) as model:
        home.configure(url=model.url)
        run = cru(*flags, "-t", "hi", home=home)
    assert ("[tool bash failed: " in run.err) == bool(flags)


def test_an_automatic_compaction_is_told_without_verbose(home: HomeDir) -> None:
    config = "auto_compact = true\nauto_compact_threshold = 50\ncontext_window_limit = 10000\n"
    with server(
        [Reply("x" * 9000), Reply("y" * 9000), Reply("z" * 9000), Reply('["1"]'), Reply("summary"), Reply("done")]
    ) as model:
        home.configure(url=model.url)
        for text in ("1", "2", "3"):
            assert cru(text, home=home).err == ""
        home.configure(config, url=model.url)
        run = cru("4", home=home)
    assert run.out == "done\n" and run.err.startswith("[compacted: ") and run.err.count("\n") == 1


def test_a_reader_that_leaves_does_not_stop_the_turn(home: HomeDir) -> None:
    (home.project / "f").write_text("x")
    with server([Reply("x" * 200_000, pieces=1000, calls=[Call("ls", {})]), Reply("end")]) as model:
        home.configure(url=model.url)
        run = shell(home, "cru hi | head -c1")
        assert run.stdout == "x" and run.stderr == "" and len(model.wait(2)) == 2
    assert [e["content"] for e in home.log() if e["entry_type"] == "message"][-1] == "end"
    assert home.log()[-1]["entry_type"] == "leg_ended"


def test_a_reader_that_leaves_a_listing_is_no_error(home: HomeDir) -> None:
    with server([Reply("word " * 50_000)]) as model:
        home.configure(url=model.url)
        assert cru("hi", home=home).code == 0
    run = shell(home, "(cru -g 0; echo $? >code) | head -c1")
    assert run.stderr == "" and (home.project / "code").read_text() == "0\n"


@pytest.mark.sample(1)
@pytest.mark.parametrize("words", ["hi", "--json hi"])
def test_a_full_disk_behind_stdout_is_told_and_the_turn_is_in_the_log(home: HomeDir, words: str) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        run = shell(home, f"cru {words} >/dev/full")
    assert run.returncode == 1 and "standard output: No space left on device" in run.stderr
    assert "Traceback" not in run.stderr and home.log()[-1]["metadata"]["cause"] == "done"


def test_a_full_disk_behind_a_listing_is_told(home: HomeDir) -> None:
    run = shell(home, "cru -L >/dev/full")
    assert run.returncode == 1 and run.stderr == "cru: standard output: No space left on device\n"


@pytest.mark.sample(1)
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_lose_nothing_and_no_text_gets_into_other_files(home: HomeDir, closed: str) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        run = shell(home, f"cru -v hi {closed}")
    assert run.returncode == 0 and "Traceback" not in run.stderr
    assert run.stdout == ("answer\n" if closed == "2>&-" else "")
    for path in home.context().rglob("*"):
        assert not path.is_file() or not path.read_bytes().startswith((b"answer", b"[model")), path
    assert home.log()[-1]["metadata"]["cause"] == "done"


def test_a_locale_without_the_characters_gets_escapes(home: HomeDir) -> None:
    run = cru("--help", home=home, env={"PYTHONIOENCODING": "ascii"})
    assert run.code == 0 and "PROMPT\\u2026" in run.out


def test_operations_print_before_the_answer(home: HomeDir) -> None:
    with server([Reply("answer")]) as model:
        home.configure(url=model.url)
        assert cru("-X", "-L", "hi", home=home).out == "* default\nanswer\n"


def test_markdown_is_rendered_on_a_terminal_only(home: HomeDir) -> None:
    with server([Reply("# Title\n\nsome **bold** text\n\n```\n*raw*\n```\n")] * 2) as model:
        home.configure(url=model.url)
        assert "**bold**" in cru("hi", home=home).out
        with pty("hi", home=home) as terminal:
            assert terminal.wait() == 0
    assert "some bold text" in terminal.text and "**" not in terminal.text and "*raw*" in terminal.text


def test_a_block_that_is_not_whole_yet_is_announced_on_a_terminal(home: HomeDir) -> None:
    text = "a line\n" * 6 + "\nnext block"
    with server([Reply(text, pieces=6, split=200, gap=0.03)]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            terminal.expect("answering, ")
            terminal.expect(" characters …")
            terminal.expect("a line a line")
            terminal.expect("next block")
            assert terminal.wait() == 0
            assert "answering" not in terminal.screen()


def test_no_escape_sequence_of_the_model_reaches_a_terminal(home: HomeDir) -> None:
    with server([Reply("a \x1b]0;owned\x07 b \x1b[2J c \x9b31m d", pieces=4)]) as model:
        home.configure(url=model.url)
        with pty("hi", home=home) as terminal:
            assert terminal.wait() == 0
    assert "\\x1b]0;owned\\x07" in terminal.text and "\\x1b[2J" in terminal.text and "\\x9b31m" in terminal.text


def test_no_escape_sequence_of_a_tool_call_reaches_a_terminal(home: HomeDir) -> None:
    with server([SHELL, Reply("ok")]) as model:
        home.configure(url=model.url)
        with pty("-t", "hi", home=home) as terminal:
            assert terminal.wait() == 0
    assert "[tool bash echo hi; \\x1b[2J\\nrm -rf x]" in terminal.text


def test_the_log_is_shown_without_escape_sequences_on_a_terminal_and_raw_in_a_pipe(home: HomeDir) -> None:
    with server([Reply("a \x1b[2J b")]) as model:
        home.configure(url=model.url)
        cru("hi", home=home)
    assert cru("-g", "1", home=home).out == "[DEFAULT]: a \x1b[2J b\n"
    with pty("-g", "1", home=home) as terminal:
        assert terminal.wait() == 0
    assert "a \\x1b[2J b" in terminal.text


def test_a_terminal_shows_what_is_going_on(home: HomeDir) -> None:
    with server([Reply(calls=[Call("bash", {"command": "sleep 0.2"})]), Reply("ok", delay=0.2)]) as model:
        home.configure(url=model.url)
        with pty("-t", "hi", home=home) as terminal:
            terminal.expect("waiting for the model …")
            terminal.expect("[tool bash sleep 0.2]")
            terminal.expect("running bash …")
            terminal.expect("ok")
            assert terminal.wait() == 0
            assert "…" not in terminal.screen()


@pytest.mark.sample(1)
@pytest.mark.parametrize("words", ['-P read \'{"file_path": "f"}\'', "--json -P ls", "-P big", "-p big"])
def test_a_full_disk_behind_a_call_by_hand_is_told(home: HomeDir, words: str) -> None:
    (home.project / "f").write_text("x\n")
    tool(home, "big", "echo hello")
    run = shell(home, f"cru -t {words} >/dev/full")
    assert run.returncode == 1 and run.stderr == "cru: standard output: No space left on device\n"


def test_a_reader_that_leaves_a_call_by_hand_is_no_error(home: HomeDir) -> None:
    tool(home, "big", "head -c 3000000 /dev/zero | tr '\\0' x")
    run = shell(home, "(cru -t -P big; echo $? >code) | head -c1")
    assert run.stderr == "" and (home.project / "code").read_text() == "0\n"


@pytest.mark.slow
def test_the_lines_of_a_running_tool_are_bounded(home: HomeDir) -> None:
    tool(home, "big", "head -c 12000000 /dev/zero | tr '\\0' x")
    run = cru("--json", "-t", "-P", "big", home=home)
    lines = [json.loads(line) for line in run.out.splitlines()]
    text = "".join(line["payload"]["text"] for line in lines if line["type"] == "tool:output")
    assert run.code == 0 and text.startswith("x" * MOST_OUTPUT) and len(text) < MOST_OUTPUT + 200
    assert text.rstrip().endswith("first and the last half of as many ...]") and text.count("cut here") == 1
