"""`-p` and `-P`: tools by hand."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest
from tests.kit import Done, Hang, HomeDir, Reply, cru, pty, server, start
from tests.kit.scripts import shebang

ECHO = f"""{shebang()}import json, os, sys
if sys.argv[1:] == ["--schema"]:
    print(json.dumps({{"name": "echo", "description": "say it", "parameters": {{"type": "object", "properties": {{}}}}}}))
elif os.environ.get("CHIBI_TOOL_ARGS"):
    sys.stdout.write(os.environ["CHIBI_TOOL_ARGS"])
else:
    sys.stdout.write(sys.stdin.read())
"""


SENT = "Message sent to other (a new context was made for it)"


def plugin(home: HomeDir, name: str, text: str) -> None:
    path = home.cru / "plugins" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if not path.suffix:
        path.chmod(0o755)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("words", "given"),
    [
        (("-p", "echo"), '{"args":[]}'),
        (("-p", "echo", "a", "b c", "-v"), '{"args":["a","b c","-v"]}'),
        (("-p", "echo", '{"a": 1}'), '{"args":["{\\"a\\": 1}"]}'),
        (("-P", "echo", '{"a":  1}'), '{"a":1}'),
        (("-P", "echo", "[1]"), '{"args":["[1]"]}'),
        (("-P", "echo", '{"a": 1}', "x"), '{"args":["{\\"a\\": 1}","x"]}'),
    ],
)
def test_words_become_arguments(home: HomeDir, words: tuple[str, ...], given: str) -> None:
    plugin(home, "echo", ECHO)
    run = cru(*words, home=home)
    assert (
        run.code,
        run.out.replace(": ", ":").replace(", ", ",").replace('\\":', '\\": ').replace('":1}","x', '": 1}","x'),
    ) == (0, given), run


def test_results_are_printed_byte_for_byte_into_a_pipe(home: HomeDir) -> None:
    run = cru("-P", "bash", '{"command": "printf \'a\\\\033[1mb\'"}', home=home)
    assert (run.code, run.out, run.err) == (0, "a\x1b[1mb", "")


def test_on_a_terminal_the_line_ends_and_nothing_dangerous_is_sent(home: HomeDir) -> None:
    with pty("-P", "bash", '{"command": "printf \'a\\\\033[1mb\'"}', home=home) as terminal:
        terminal.expect("a\\x1b[1mb")
        assert terminal.wait() == 0


@pytest.mark.slow
def test_tools_of_every_source_can_be_called(home: HomeDir) -> None:
    plugin(home, "echo", ECHO)
    plugin(
        home,
        "greet.lua",
        '--- Greet.\n-- @tool name="greet" desc="greet"\n-- @param who string "whom"\n'
        'function greet(args) return "hello " .. args.who end\n',
    )
    assert cru("-P", "greet", '{"who": "you"}', home=home).out == "hello you"
    assert cru("-P", "write", '{"file_path": "x", "content": "y"}', home=home).code == 0
    assert (home.project / "x").read_text() == "y"
    assert cru("-P", "update_todos", '{"content": "x"}', home=home).code == 0
    assert cru("-n", "todos", home=home).out == "x\n"
    assert cru("-P", "send_message", '{"to": "other", "content": "hi"}', home=home).out == SENT
    assert home.lines("other", "inbox.jsonl")[0]["content"] == "hi"
    assert cru("-P", "ls", home=home).out.startswith("x\t")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("-P", "lss"), 2, "did you mean `ls`?"),
        (("-p", "nothing-like-it", "x"), 2, "there is no tool `nothing-like-it`"),
        (("-P", "write", "x"), 2, """cru -P write '{"file_path":"…","content":"…"}'"""),
        (("-P", "write", "{"), 2, "not one JSON object: it ends too early (byte 1)"),
        (("-P", "write", ' {"a"; 1}'), 2, "expected ':' (byte 5)"),
        (("-P", "bash", '{"command": "echo no >&2; exit 3"}'), 1, "no\n[exit code 3]"),
        (("-P", "read", '{"file_path": "none"}'), 1, "none"),
        (("-P",), 2, "-P needs TOOL"),
    ],
)
def test_what_fails_is_told_once_on_stderr(home: HomeDir, words: tuple[str, ...], code: int, told: str) -> None:
    run = cru(*words, home=home)
    assert (run.code, run.out) == (code, "") and told in run.err and "Traceback" not in run.err
    assert run.err.count(told) == 1


@pytest.mark.parametrize(
    ("config", "words", "told"),
    [
        ('[permissions]\ndeny = ["bash:*"]\n', ("-t",), "Not allowed by policy: the rule `bash:*`"),
        ('[permissions]\nask = ["bash:*"]\n', (), "wants a question"),
        ("", ("--mode", "plan"), "plan mode only reads"),
    ],
)
def test_rules_and_modes_hold(home: HomeDir, config: str, words: tuple[str, ...], told: str) -> None:
    home.configure(config)
    run = cru(*words, "-P", "bash", '{"command": "touch made"}', home=home)
    assert (run.code, run.out) == (3, "") and told in run.err
    assert not (home.project / "made").exists()


@pytest.mark.parametrize(("key", "code"), [("y", 0), ("n", 3)])
def test_a_rule_that_asks_asks_on_a_terminal(home: HomeDir, key: str, code: int) -> None:
    home.configure('[permissions]\nask = ["bash:*"]\n')
    with pty("-P", "bash", '{"command": "touch made"}', home=home) as terminal:
        terminal.expect("touch made")
        terminal.expect("no > ")
        terminal.line(key)
        assert terminal.wait() == code
    assert (home.project / "made").exists() is (code == 0)


def test_handlers_hear_the_call_and_may_forbid_change_and_replace_it(home: HomeDir) -> None:
    plugin(
        home,
        "watch.lua",
        """
cru.on("tool:before_call", function(ctx, e)
  if e.origin ~= "user" then return { cancel = true, reason = "origin " .. tostring(e.origin) } end
  if e.name == "bash" then return { cancel = true, reason = "no shell today" } end
  if e.name == "ls" then return { handled = true, result = "mine" } end
end)
cru.on("tool:completed", function(ctx, e) return { result = e.result .. "!", context = "for the model" } end)
""",
    )
    run = cru("-P", "bash", '{"command": "touch made"}', home=home)
    assert run.code == 3 and "no shell today" in run.err and not (home.project / "made").exists()
    assert cru("-P", "ls", home=home).out == "mine!"


def test_journal_and_trace_say_that_it_came_from_the_command_line(home: HomeDir) -> None:
    plugin(home, "watch.lua", 'cru.on("tool:before_call", function(ctx, e) end)')
    assert cru("-P", "ls", home=home).code == 0
    [line] = [line for line in home.lines("default", "journal.jsonl") if line["event"] == "tool:before_call"]
    assert line["purpose"] == "command line"
    assert [line["source"] for line in home.lines("default", "trace.jsonl") if line["k"] == "leg"] == ["command line"]
    shown = cru("trace", home=home).out
    assert "source command line" in shown and "tool:before_call ls → watch" in shown
    assert home.log() == []  # nothing of it was said


def test_with_force_the_model_gets_the_result_before_the_prompt(home: HomeDir) -> None:
    with server([Reply("one"), Reply("two"), Reply("three")]) as model:
        home.configure(url=model.url)
        assert cru("-P", "bash", '{"command": "echo fact"}', home=home, input="why?").out == "fact"
        assert model.requests == []
        run = cru("-X", "-P", "bash", '{"command": "echo /fact"}', home=home, input="why?")
        assert (run.code, run.out) == (0, "/fact\none\n")
        assert model.requests[0].body["messages"][-1]["content"] == "/fact\n\nwhy?"
        assert cru("-X", "-P", "bash", '{"command": "echo fact"}', home=home).out == "fact\ntwo\n"
        assert model.requests[1].body["messages"][-1]["content"] == "fact"
        run = cru("-X", "-P", "bash", '{"command": "exit 1"}', home=home, input="why?")
        assert run.code == 1 and len(model.requests) == 2


def test_a_key_of_the_environment_serves_the_prompt_after_a_call(home: HomeDir) -> None:
    with server([Reply("one")]) as model:
        home.configure(f'base_url = "{model.url}"\nmodel = "mock"\n')
        run = cru("-X", "-P", "ls", home=home, input="why?", env={"CRU_API_KEY": "from-env"})
        assert run.code == 0, run.err
        assert model.requests[0].headers["authorization"] == "Bearer from-env"


def test_json_has_the_result_in_a_line(home: HomeDir) -> None:
    run = cru("--json", "-P", "bash", '{"command": "echo x"}', home=home)
    lines = [msgspec.json.decode(line) for line in run.out.splitlines()]
    assert [line["payload"]["text"] for line in lines if line["type"] == "output"] == ["x"]
    assert lines[-1]["type"] == "result" and lines[-1]["code"] == 0
    run = cru("--json", "-P", "bash", '{"command": "exit 1"}', home=home)
    assert run.code == 1 and msgspec.json.decode(run.out.splitlines()[-1])["code"] == 1


def test_ctrl_c_ends_the_call_and_its_children(home: HomeDir) -> None:
    with start("-P", "bash", '{"command": "echo $$ > pid; sleep 100"}', home=home) as run:
        path = home.project / "pid"
        while not (path.exists() and path.read_text().strip()):
            assert run.alive, run.err
            time.sleep(0.01)
        run.interrupt()
        assert run.wait().code == 130
    assert not _lives(int(path.read_text()))


def _lives(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return False
        time.sleep(0.02)
    return True


def test_calls_that_leave_the_context_alone_run_beside_a_turn(home: HomeDir) -> None:
    with server(lambda request: Hang("so far")) as model:
        home.configure(url=model.url)
        with start("first", home=home) as first:
            first.wait_for("so far")
            assert cru("-P", "bash", '{"command": "echo x"}', home=home) == Done(0, "x", "")
            assert cru("-P", "update_todos", '{"content": "x"}', home=home).code == 4
            assert cru("-C", "other", "-P", "update_todos", '{"content": "x"}', home=home).code == 0


def test_a_context_is_held_while_a_tool_runs_in_it_by_hand(home: HomeDir) -> None:
    command = 'cru -L; touch began; while [ ! -e "$PWD/go" ]; do sleep 0.01; done; echo done'
    with start("-P", "bash", msgspec.json.encode({"command": command}).decode(), home=home) as run:
        while not (home.project / "began").exists():
            assert run.alive, run.err
            time.sleep(0.01)
        for words in (("-D", "default"), ("-R", "default", "other"), ("-a",)):
            refused = cru(*words, home=home)
            assert refused.code == 4 and f"process {run.pid}" in refused.err, words
        assert cru("-P", "ls", home=home).out.startswith("began\t"), "two of them run beside one another"
        (home.project / "go").touch()
        ended = run.wait()
    assert ended == Done(0, "* default [active]\ndone", "")
    assert cru("-R", "default", "other", home=home).code == 0


def test_a_result_is_printed_although_the_trace_is_gone(home: HomeDir) -> None:
    for status in (0, 3):
        command = f"rm -rf {home.context()}; echo result; exit {status}"
        run = cru("-P", "bash", msgspec.json.encode({"command": command}).decode(), home=home)
        assert run.code == (1 if status else 0) and "result" in run.out + run.err and "Traceback" not in run.err
        assert "the trace cannot be written: cannot write" in run.err and run.err.count("trace.jsonl") == 1


def test_what_a_program_says_on_standard_error_is_seen_once(home: HomeDir) -> None:
    schema = 'if [ "$1" = --schema ]; then echo \'{"name": "boom", "description": "d"}\'; exit; fi\n'
    for output, told in (("echo out\n", "cru: out\n[exit code 3]\n"), ("", "cru: boom: exit code 3\n")):
        plugin(home, "boom", f"#!/bin/sh\n{schema}{output}echo trouble >&2\nexit 3\n")
        assert cru("-P", "boom", home=home) == Done(1, "", f"trouble\n{told}")
    run = cru("--json", "-P", "boom", home=home)
    assert "trouble" in msgspec.json.decode(run.out.splitlines()[-1])["payload"]["error"]


def test_the_trace_of_a_call_by_hand_has_no_requests_and_shows_where_some_are(home: HomeDir) -> None:
    assert cru("-P", "ls", home=home).code == 0
    run = cru("trace", "--request", "1", home=home)
    assert run.code == 1 and "turn 1 made no request" in run.err and "no turn that is recorded" in run.err
    with server([Reply("one")]) as model:
        home.configure(url=model.url)
        assert cru("hi", home=home).code == 0
    assert cru("-P", "ls", home=home).code == 0
    assert "cru trace --turn 2 --request 1" in cru("trace", "--request", "1", home=home).err
