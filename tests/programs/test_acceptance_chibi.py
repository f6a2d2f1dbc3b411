"""The acceptance list of what cru promises to those who come from chibi, one test a sentence, each through the real command. More of
each lies in the rooms; 6 is in test_acceptance_settings.py, 7 to 9 in test_acceptance_runs.py."""

from __future__ import annotations

import fcntl
import re
import shutil
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.plugins.executables.programs import IMPATIENT, calls, results, script, shape, tool
from tests.kit import Call, HomeDir, Received, Reply, Step, cru, pty, server

from cru.core.plugins.executables.executable import HOOKS

DATA = Path(__file__).parents[1] / "data" / "contexts"
FLAGS = "-C -c -a -A -z -Z -r -R -y -Y -u -U -l -L -d -D -g -G -n -N -p -P"


def entries(home: HomeDir, context: str = "default") -> list[dict[str, Any]]:
    """All lines of a context, those in the archive first; what an anchor keeps lies in both."""
    found: dict[str, dict[str, Any]] = {}
    for entry in (*home.lines(context, "transcript_archive.jsonl"), *home.log(context)):
        found.setdefault(entry["id"], entry)
    return list(found.values())


def prompts(home: HomeDir, context: str = "default") -> list[str]:
    return [e["content"] for e in home.log(context) if e["entry_type"] == "message" and e["role"] == "user"]


# 1: the command line ------------------------------------------------------------------------------------------------------------


def test_1_every_flag_is_there_in_the_order_of_execution(home: HomeDir) -> None:
    """The letters of 0.4, carried out in its order."""
    letters = re.findall(r"^  (-\w), --", cru("help", "chibi", home=home).out, re.MULTILINE)
    assert [letter for letter in letters if letter in FLAGS.split()] == FLAGS.split()
    assert {"-v", "-x", "-X", "-h"} <= set(letters)


def test_1_operations_combine_in_that_order_however_they_are_typed(home: HomeDir) -> None:
    """Switch, archive, rename, system prompt and user name, then the prompt."""
    script(home, "first", "second")
    assert cru("-c", "old", "one", home=home).code == 0
    run = cru("-u", "ann", "-y", "Be brief.", "-r", "fresh", "-a", "-c", "old", "two", home=home)
    assert (
        (run.code, run.out) == (0, "first\n") and home.context("fresh").is_dir() and not home.context("old").exists()
    ), run
    assert (home.context("fresh") / "system_prompt.md").read_text() == "Be brief."
    assert cru("-L", home=home).out.splitlines() == ["* fresh"]
    assert cru("-g", "9", home=home).out.splitlines()[-2:] == [
        "[ANN]: two",
        "[FRESH]: first",
    ]  # -a came before the prompt


@pytest.mark.parametrize(
    ("words", "piped", "sent"),
    [
        (("two", "words"), None, "two words"),
        ((), " piped\n\ntext \n", "piped\n\ntext"),
        (("look", "at"), "line 1\nline 2\n", "look at\n\nline 1\nline 2"),
        (("only", "words"), "\n", "only words"),
    ],
)
def test_1_where_the_prompt_comes_from(home: HomeDir, words: tuple[str, ...], piped: str | None, sent: str) -> None:
    """Words, a pipe, or both with a blank line between; line breaks stay."""
    script(home, "yes")
    assert cru(*words, home=home, input=piped).code == 0
    assert prompts(home) == [sent]


def test_1_on_a_terminal_words_are_the_prompt(home: HomeDir) -> None:
    """And without words it is typed."""
    script(home, "yes")
    with pty("two", "words", home=home) as terminal:
        terminal.expect("yes")
        assert terminal.wait() == 0
    with pty("-C", "typed", home=home) as terminal:
        terminal.expect("> ")
        terminal.line("typed here")
        terminal.expect("yes")
        assert terminal.eof() == 0
    assert (prompts(home), prompts(home, "typed")) == (["two words"], ["typed here"])


def test_1_an_unknown_flag_is_a_usage_error(home: HomeDir) -> None:
    run = cru("-w", "hello", home=home)
    assert run.code == 2 and run.err.startswith("cru: unknown flag -w")


# 2: plugins ---------------------------------------------------------------------------------------------------------------------


def test_2_both_generations_run_unmodified(home: HomeDir) -> None:
    shape(home, "read_file", "look", "skills", "run_command_later")
    (home.project / "a.txt").write_text("A\n")
    calls(
        home,
        'read_lines {"path": "a.txt"}',
        "look",
        'skill-learn {"name": "x"}',
        'run_command_later {"command": "true"}',
    )
    assert results(home) == ["A\n", "entries: 1\n", "learnt x\n", "the user said no\n"]


def test_2_nothing_of_a_call_around_it_reaches_a_plugin(home: HomeDir) -> None:
    tool(home, "shows", "env | grep -E '^CHIBI_(HOOK|TOOL_ARGS|VERBOSE)' || echo clean")
    stale = {"CHIBI_HOOK": "on_start", "CHIBI_HOOK_DATA": "{}", "CHIBI_TOOL_ARGS": "{}", "CHIBI_VERBOSE": "1"}
    calls(home, "shows", env=stale)
    assert results(home) == ["clean\n"]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["schema", "tool", "hook"])
def test_2_whatever_hangs_is_ended(home: HomeDir, what: str) -> None:
    hooks = '"hooks": ["pre_message"]' if what == "hook" else ""
    first = "[[ $1 == --schema ]] && sleep 60" if what == "schema" else ""
    tool(home, "slow", "sleep 60", hooks, first)
    run = calls(home, "slow", config="[plugins.slow]\ntimeout = 0.3\nhook_timeout = 0.3\n", script=IMPATIENT)
    assert (run.code, run.out) == (0, "done\n") and "0.3 s" in run.err + results(home)[0], run


def test_2_a_plugin_knows_the_context_and_whether_to_be_verbose(home: HomeDir) -> None:
    tool(home, "shows", 'echo "$CHIBI_CONTEXT ${CHIBI_VERBOSE:-quiet}"')
    calls(home, "shows", flags=("-C", "one"))
    calls(home, "shows", flags=("-v", "-C", "two"))
    assert (results(home, "one"), results(home, "two")) == (["one quiet\n"], ["two 1\n"])


def test_2_the_model_reads_what_a_failing_tool_printed(home: HomeDir) -> None:
    tool(home, "fails", "echo half a result; exit 3")
    calls(home, "fails")
    assert results(home) == ["half a result\n[exit code 3]"]


# 3: hooks -----------------------------------------------------------------------------------------------------------------------


def heard(home: HomeDir) -> dict[str, dict[str, Any]]:
    lines = (home.cru / "hooks.log").read_text().splitlines()
    return {hook: msgspec.json.decode(payload) for hook, _, payload in (line.partition(" ") for line in lines)}


def test_3_all_34_names_are_known_and_payloads_are_those_of_both_versions(home: HomeDir) -> None:
    shape(home, "hook_inspector")
    run = calls(home, 'bash {"command": "true"}')
    assert run.code == 0 and "there is no hook" not in run.err and len(HOOKS) == 34
    assert {"current_context", "verbose", "chibi_home", "project_root", "tool_count"} == set(heard(home)["on_start"])
    assert {"context_name", "summary", "todos", "goals", "flock_goals"} == set(heard(home)["pre_system_prompt"])
    assert {"tool_name", "arguments", "result", "cached"} == set(heard(home)["post_tool"])


@pytest.mark.slow
def test_3_on_start_names_the_context_of_the_run(home: HomeDir) -> None:
    shape(home, "hook_inspector")
    calls(home, flags=("-C", "other"))
    assert heard(home)["on_start"]["current_context"] == heard(home)["pre_message"]["context_name"] == "other"


@pytest.mark.sample(1)
@pytest.mark.parametrize("does", ["exit 1", "kill -9 $$", "sleep 60", "printf '\\377{'"])
def test_3_no_failure_of_a_hook_ends_a_turn(home: HomeDir, does: str) -> None:
    hooks = ", ".join(f'"{name}"' for name in HOOKS)
    tool(home, "bad", does, f'"hooks": [{hooks}]')
    run = calls(
        home,
        'bash {"command": "echo hi"}',
        config=f"[plugins.bad]\nhook_timeout = {0.1 if does == 'sleep 60' else 30}\n",
    )
    assert (run.code, run.out, results(home)) == (0, "done\n", ["hi"]), run


def test_3_results_are_applied(home: HomeDir) -> None:
    """A prompt replaced, arguments rewritten, a write refused by an old plugin, a message delivered elsewhere."""
    shape(home, "deny_files", "courier")
    says = """case $CHIBI_HOOK in pre_message) echo '{"prompt": "other"}' ;;
    pre_tool) jq -c 'select(.tool_name == "bash") | {arguments: {command: "echo mine"}}' ;; esac"""
    tool(home, "changes", says, '"hooks": ["pre_message", "pre_tool"]')
    message = 'send_message {"to": "ann", "content": "hello"}'
    calls(home, 'bash {"command": "true"}', 'write {"file_path": "a", "content": "x"}', message)
    assert results(home) == ["mine", "Blocked by deny_files: this folder is shut", "Message sent to ann by pigeon"]
    assert not (home.project / "a").exists() and not (home.context("ann") / "inbox.jsonl").exists()
    (resolved,) = [e for e in home.log() if e["entry_type"] == "message_resolved" and e["metadata"].get("rewritten")]
    assert resolved["content"] == "other"


# 4: storage ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["chibi-0.4", "chibi-0.10"])
def test_4_a_home_of_chibi_is_opened_as_it_is(home: HomeDir, version: str) -> None:
    """Its context is gone on with under the names and fields of 0.4."""
    shutil.copytree(DATA / version, home.path / ".chibi")
    with server([Reply("I am back")]) as model:
        home.configure(url=model.url)
        shutil.copy(home.cru / "config.toml", home.path / ".chibi")
        run = cru("--home", str(home.path / ".chibi"), "hello", home=home)
    assert (run.code, run.out) == (0, "I am back\n") and "Traceback" not in run.err, run
    folder = home.path / ".chibi" / "contexts" / "desk"
    said = [msgspec.json.decode(line) for line in (folder / "context.jsonl").read_bytes().splitlines()[-4:]]
    for entry in said:
        assert {"id", "timestamp", "from", "to", "content", "entry_type"} <= set(entry)
    assert [(e["from"], e["to"]) for e in said if e["entry_type"] == "message"] == [("user", "desk"), ("desk", "user")]


def test_4_no_line_is_ever_changed_or_lost(home: HomeDir) -> None:
    """Not by compaction, archiving or renaming: rotation moves lines to the archive as they are."""
    script(home, *[f"answer {n}" for n in range(4)], "in short", "after")
    for n in range(4):
        cru(f"question {n}", home=home)
    before = (home.context() / "context.jsonl").read_bytes().splitlines()
    assert [cru(flag, home=home).code for flag in ("-z", "-a")] == [0, 0]
    cru("-r", "desk", home=home)
    cru("go on", home=home)
    after = b"".join(p.read_bytes() for p in sorted(home.context("desk").glob("*.jsonl")) if "journal" not in p.name)
    assert len(before) > 8 and all(line in after for line in before)
    assert before == [*((home.context("desk") / "transcript_archive.jsonl").read_bytes().splitlines())][: len(before)]


def test_4_the_context_and_its_tool_history_come_from_the_log_alone(home: HomeDir) -> None:
    with server([Reply(calls=[Call("bash", {"command": "echo found"})]), Reply("one"), Reply("two")]) as model:
        home.configure('mode = "trust"\n', url=model.url)
        assert cru("first", home=home).code == 0
        for path in home.context().iterdir():
            if path.is_file() and path.name != "context.jsonl":
                path.unlink()
        assert cru("second", home=home).code == 0
        sent = model.requests[2].body["messages"][1:]
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "assistant", "user"]
    assert sent[1]["tool_calls"][0]["function"]["name"] == "bash" and sent[2]["content"] == "found"


@pytest.mark.parametrize(("age", "code"), [(0, 4), (100, 0)])
def test_4_a_lock_of_chibi_is_respected_until_it_is_stale(home: HomeDir, age: int, code: int) -> None:
    """`.lock` holds Unix seconds; one and a half heartbeats later it is nobody's."""
    script(home, "yes")
    home.context().mkdir(parents=True)
    (home.context() / ".lock").write_text(str(int(time.time()) - age))
    run = cru("hello", home=home)
    assert run.code == code and (home.context() / ".lock").exists() == bool(code)


def test_4_a_message_of_another_program_stands_before_the_next_prompt(home: HomeDir) -> None:
    """Written under `flock` on `.inbox.lock`, read once."""
    with server([Reply("yes"), Reply("yes")]) as model:
        home.configure(url=model.url)
        home.context().mkdir(parents=True)
        said = {"id": "1", "timestamp": int(time.time()), "from": "friend", "to": "default", "content": "good morning"}
        with (home.context() / ".inbox.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (home.context() / "inbox.jsonl").write_bytes(msgspec.json.encode(said) + b"\n")
        assert [cru(text, home=home).code for text in ("first", "second")] == [0, 0]
        first, second = (request.body["messages"][-1]["content"] for request in model.requests)
    assert "good morning" in first and "friend" in first and first.endswith("first") and second == "second"
    assert (home.context() / "inbox.jsonl").read_bytes() == b""


# 5: compaction ------------------------------------------------------------------------------------------------------------------

SMALL = 'context_window_limit = 1600\nauto_compact = true\ncompaction_choice = "oldest"\nno_tool_calls = true\n'
LONG = "word " * 240


def summarising(request: Received) -> Step:
    """A summary for a request without the conversation, else an answer that names its question."""
    said = request.body["messages"]
    is_summary = "in short" not in str(said[-1]) and "question" not in str(said[-1]["content"])[:12]
    return Reply("in short: all well") if is_summary else Reply(f"answer to {said[-1]['content'][:10]}")


@pytest.mark.slow
def test_5_the_prompt_that_set_off_a_compaction_is_answered_and_nothing_is_lost(home: HomeDir) -> None:
    """Twice: the second one keeps what the first one kept."""
    with server(summarising) as model:
        home.configure(SMALL, url=model.url)
        runs = [cru(f"question {n} {LONG}", home=home) for n in range(8)]
        last = model.requests[-1].body["messages"]
    assert [run.code for run in runs] == [0] * 8
    assert [run.out for run in runs] == [f"answer to question {n}\n" for n in range(8)]
    anchors = [e for e in entries(home) if e["entry_type"] == "anchor"]
    assert len(anchors) >= 2
    said = [e["content"] for e in entries(home) if e["entry_type"] == "message" and e["role"] == "user"]
    assert [text[:10] for text in said] == [f"question {n}" for n in range(8)]
    assert "in short: all well" in last[0]["content"] and len(last) < 12
    first, second = anchors[:2]
    dropped = [
        e["id"]
        for e in entries(home)
        if e["id"] in first["metadata"]["keep"] and e["id"] not in second["metadata"]["keep"]
    ]
    order = [e["id"] for e in entries(home)]
    kept = [order.index(id) for id in second["metadata"]["keep"]]
    assert all(order.index(id) < min(kept) for id in dropped)  # only older ones went: no hole was made
