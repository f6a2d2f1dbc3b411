"""Tools that are programs: what they are given, what becomes of what they print, and everything that can go wrong."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.core.plugins.executables.programs import calls, results, script, shape, tool
from tests.kit import Call, HomeDir, Reply, cru, server, start
from tests.kit.processes import is_running
from tests.kit.waiting import wait_until

ENV = ": $CHIBI_TOOL_ARGS; "
"""What makes a program one of the first generation."""


def test_the_result_is_what_is_printed_to_the_byte(home: HomeDir) -> None:
    tool(home, "exact", "printf '  two\\n\\n\\xe2\\x82\\xac \\xff\\n\\n'")
    calls(home, "exact")
    assert results(home) == ["  two\n\n€ \ufffd\n\n"]


def test_both_generations_get_their_arguments(home: HomeDir) -> None:
    tool(home, "early", 'echo "$CHIBI_TOOL_ARGS|$(cat)|$CHIBI_TOOL_NAME"')
    tool(home, "later", 'echo "$(cat)|$CHIBI_TOOL_NAME|$#"')
    calls(home, 'early {"a": "€\\n"}', 'later {"a": {"b": [1, 2.5, null]}}', "early", "later")
    assert results(home) == [
        '{"a":"€\\n"}||early\n', '{"a":{"b":[1,2.5,null]}}|later|0\n', "{}||early\n", "{}|later|0\n",
    ]  # fmt: skip


def test_what_is_in_the_environment(home: HomeDir) -> None:
    tool(home, "shows", "env | grep -E '^(CHIBI|CRU|OPENAI)_' | grep -v ^CRU_CHILD= | sort; pwd; command -v chibi")
    stale = {
        "CHIBI_HOOK": "on_start",
        "CHIBI_HOOK_DATA": "{}",
        "CHIBI_TOOL_ARGS": "{}",
        "CHIBI_VERBOSE": "1",
        "OPENAI_API_KEY": "k",
    }
    inner = home.project / "inner"
    inner.mkdir()
    calls(home, "shows", flags=("-C", "work", "--project-root", str(home.project)), env=stale, cwd=inner)
    lines = results(home, "work")[0].splitlines()
    assert lines[:-2] == [
        "CHIBI_CONTEXT=work", f"CHIBI_HOME={home.cru}", f"CHIBI_PROJECT_ROOT={home.project}", "CHIBI_TOOL_NAME=shows",
        "CRU_CONTEXT=work", "CRU_DEPTH=1", "CRU_EMBEDDINGS=off", f"CRU_HOME={home.cru}", f"CRU_PROJECT_ROOT={home.project}",
        "CRU_SANDBOX=off",
    ]  # fmt: skip
    assert lines[-2] == str(inner) and lines[-1].startswith(str(home.cru / "cache" / "bin"))
    run = calls(home, "shows", flags=("-v", "-C", "loud"))
    assert "CHIBI_VERBOSE=1" in results(home, "loud")[0] and run.code == 0


def test_a_failing_call_keeps_all_that_is_known(home: HomeDir) -> None:
    shape(home, "read_file")
    tool(home, "fails", "echo half; echo why >&2; exit 7")
    tool(home, "dies", "echo half; kill -SEGV $$")
    tool(home, "silent", "exit 1")
    run = calls(home, "read_lines", "fails", "dies", "silent", 'read_lines {"path": "/nowhere/at/all"}')
    given = results(home)
    assert given[:4] == [
        "no path was given\n[exit code 1]", "half\n[standard error]\nwhy\n[exit code 7]", "half\n[ended by SIGSEGV]", "[exit code 1]",
    ]  # fmt: skip
    assert "No such file or directory" in given[4] and given[4].endswith("[exit code 1]")
    assert run.code == 0 and "why\n" in run.err and "Traceback" not in run.err


def test_standard_error_comes_through_at_once_and_does_not_reach_the_model(home: HomeDir) -> None:
    tool(home, "talks", "printf 'on the way' >&2; until [[ -e go ]]; do sleep 0.01; done; echo done; echo more >&2")
    script(home, "call: talks", "fine")
    with start("-t", "go", home=home) as run:
        run.wait_for("on the way")
        (home.project / "go").touch()
        assert run.wait().err.endswith("on the waymore\n")
    assert results(home) == ["done\n"]


def test_of_a_long_standard_error_the_end_is_kept(home: HomeDir) -> None:
    tool(home, "noisy", "for ((i = 0; i < 3000; i++)); do echo line $i >&2; done; exit 1")
    calls(home, "noisy")
    said = results(home)[0]
    assert len(said) < 4200 and said.endswith("line 2999\n[exit code 1]")


@pytest.mark.parametrize("arguments", ["nonsense", "[1]", '"text"'])
def test_arguments_that_are_no_object_are_refused_without_a_run(home: HomeDir, arguments: str) -> None:
    tool(home, "strict", "touch ran")
    calls(home, f"strict {arguments}")
    assert results(home)[0].startswith("bad arguments for strict: ")
    assert not (home.project / "ran").exists()


def test_long_arguments_are_refused_by_the_first_generation_only(home: HomeDir) -> None:
    tool(home, "early", f"{ENV} echo never")
    tool(home, "later", "wc -c")
    text = "x" * 200_000
    calls(home, f'early {{"a": "{text}"}}', f'later {{"a": "{text}"}}')
    early, later = results(home)
    assert early == (
        "the arguments of 200,008 bytes are too long for early, which reads them from an environment variable: at most 102,400"
    )
    assert later.strip() == "200008"


def test_one_that_does_not_read_its_input_is_as_good(home: HomeDir) -> None:
    tool(home, "deaf", "echo fine")
    calls(home, f'deaf {{"a": "{"x" * 300_000}"}}')
    assert results(home) == ["fine\n"]


def test_much_output_is_kept_within_bounds(home: HomeDir) -> None:
    tool(home, "floods", "head -c 30000000 /dev/zero | tr '\\0' x")
    run = calls(home, "floods")
    assert run.code == 0
    assert len(results(home)[0]) < 20_000  # the rest lies in the cache of outputs, as that of every tool


def test_one_that_hangs_is_ended_with_all_that_it_started(home: HomeDir) -> None:
    tool(home, "hangs", "sleep 300 & echo $! >child; echo so far; wait")
    calls(home, "hangs", config="[plugins.hangs]\ntimeout = 1\n")
    said = results(home)[0]
    assert said.startswith("so far\n\n[hangs ran longer than 1 s and was ended") and "`[plugins.hangs] timeout`" in said
    wait_until_gone(home.project / "child")


def test_ctrl_c_ends_it_with_all_that_it_started(home: HomeDir) -> None:
    tool(home, "hangs", "sleep 300 & echo $! >child; touch started; wait")
    script(home, "call: hangs", "never")
    with start("-t", "go", home=home) as run:
        until(home.project / "started")
        run.interrupt()
        assert run.wait().code == 130
    wait_until_gone(home.project / "child")


def test_what_is_printed_after_the_end_is_not_waited_for(home: HomeDir) -> None:
    tool(home, "leaves", "(sleep 0.7; echo late; echo late >&2) & echo now")
    run = calls(home, "leaves")
    assert results(home) == ["now\n"]
    assert "cru: leaves left something running; what that prints from now on is not read" in run.err


def test_one_that_is_gone_or_no_program_any_more(home: HomeDir) -> None:
    tool(home, "gone", "echo never")
    tool(home, "shut", "echo never")
    tool(home, "removes", f"rm {home.cru}/plugins/gone; chmod a-x {home.cru}/plugins/shut")
    run = calls(home, "removes", "gone", "shut")
    _, gone, shut = results(home)
    assert gone == f"[{home.cru}/plugins/gone is gone]"
    assert shut == f"[cannot start {home.cru}/plugins/shut: Permission denied]"
    assert run.code == 0 and "Traceback" not in run.err


def test_calls_of_one_reply_run_together_unless_they_must_not(home: HomeDir) -> None:
    until_both = "for ((i = 0; i < 200; i++)); do [[ $(ls meet | wc -l) == 2 ]] && break; sleep 0.01; done"
    meet = f"mkdir -p meet; touch meet/$CHIBI_TOOL_NAME; {until_both}"
    alone = "[[ -e busy ]] && echo clash; touch busy; sleep 0.1; rm busy; echo alone"
    for name in ("left", "right"):
        tool(home, name, f"{meet}; ls meet | wc -l")
    tool(home, "alone", alone, '"parallel": false')
    both = [Call("left"), Call("right"), Call("alone"), Call("alone", {"again": 1})]
    with server([Reply(calls=both), Reply("done")]) as model:
        home.configure(url=model.url)
        assert cru("-t", "go", home=home).code == 0
        given = [message["content"] for message in model.requests[1].body["messages"] if message["role"] == "tool"]
    assert given == ["2\n", "2\n", "alone\n", "alone\n"]


def test_a_tool_that_steers_is_not_run(home: HomeDir) -> None:
    tool(home, "hand_over", "touch ran", '"flow_control": true, "ends_turn": true')
    tool(home, "go_on", "touch ran", '"flow_control": true')
    run = calls(home, "go_on", 'hand_over {"message": "your turn"}')
    assert (run.code, run.out) == (0, "your turn\n")
    assert not (home.project / "ran").exists()


@pytest.mark.parametrize("with_plugin", [False, True])
def test_recurse_works_by_its_name_alone(home: HomeDir, with_plugin: bool) -> None:
    if with_plugin:
        shape(home, "recurse")
    with server([Reply(calls=[Call("recurse", {"note": "twice"})]), Reply("once"), Reply("again")]) as model:
        home.configure(url=model.url)
        run = cru("-t", "go", home=home)
        offered = [tool["function"]["name"] for tool in model.requests[0].body["tools"]]
        last = model.requests[2].body["messages"][-1]["content"]
    assert run.code == 0 and "again" in run.out and "twice" in last
    assert ("recurse" in offered) == with_plugin
    assert results(home) == (["going on: twice\n"] if with_plugin else ["recursion requested"])


def test_permission_is_asked_for_and_rules_see_what_a_call_is_about(home: HomeDir) -> None:
    shape(home, "read_file")
    (home.project / "a.txt").write_text("A\n")
    rules = '[permissions]\nallow = ["read_lines:a.*"]\n'
    script(home, 'call: read_lines {"path": "a.txt"}', 'call: read_lines {"path": "b.txt"}', "done", config=rules)
    assert cru("go", home=home).code == 0
    allowed, refused = results(home)
    assert allowed == "A\n" and "Not allowed" in refused


# runs within the run -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_another_context_may_be_asked_by_the_old_names_of_flags(home: HomeDir) -> None:
    shape(home, "sub_agent")
    with server([
        Reply(calls=[Call("sub_agent", {"context": "helper", "prompt": "and you?", "system": "You are small."})]),
        Reply("I am well"), Reply("all are well"),
    ]) as model:  # fmt: skip
        home.configure(url=model.url)
        run = cru("-t", "how are you", home=home)
        system = model.requests[1].body["messages"][0]["content"]
    assert run.out == "all are well\n" and "You are small." in system
    assert results(home)[0].startswith("I am well\n")
    assert [entry["content"] for entry in home.log("helper") if entry["entry_type"] == "message"] == [
        "and you?",
        "I am well",
    ]


def test_the_same_context_is_held_and_that_is_said_at_once(home: HomeDir) -> None:
    shape(home, "sub_agent")
    given = {"context": "default", "prompt": "and you?", "system": "x"}
    run = calls(home, f"sub_agent {msgspec.json.encode(given).decode()}")
    said = results(home)[0]
    assert run.out == "done\n" and "[exit code" in said and "default" in said and "-C NAME" in said


@pytest.mark.slow
def test_chibi_is_this_cru(home: HomeDir) -> None:
    tool(home, "which", "chibi --version; chibi -Sother -n system_prompt; chibi --nonsense || echo $?")
    calls(home, "which", cwd=home.project)
    assert results(home)[0].startswith("cru ") and "2\n" in results(home)[0]
    (home.project / "cru").mkdir()  # a module of the project's is not cru
    (home.project / "cru" / "__init__.py").write_text("print('not me')")
    calls(home, "which", flags=("-C", "second"))
    assert "not me" not in results(home, "second")[0]


def test_files_of_the_context_lie_where_programs_look_for_them(home: HomeDir) -> None:
    shape(home, "look")
    (home.context()).mkdir(parents=True)
    (home.context() / "summary.md").write_text("They met.")
    wanted = ('update_todos {"content": "buy milk"}', 'update_goals {"content": "breakfast"}', "look")
    calls(home, *wanted, flags=("-y", "Be brief."))
    said = "summary.md: They met.\ntodos.md: buy milk\ngoals.md: breakfast\nsystem_prompt.md: Be brief.\n"
    assert results(home)[2] == said + "entries: 1\n"


@pytest.mark.slow
def test_many_tools_in_one_program_with_its_state_beside_it(home: HomeDir) -> None:
    shape(home, "skills")
    calls(home, "skill-list", 'skill-learn {"name": "juggling"}', "skill-list", 'bash {"command": "true"}')
    given = results(home)
    assert given[:3] == ["nothing yet", "learnt juggling\n", "juggling\n"]
    assert "that is no skill of yours" in given[3]


@pytest.mark.slow
def test_a_program_may_write_into_another_context_s_inbox(home: HomeDir) -> None:
    shape(home, "hello_chibi")
    with server([Reply("one"), Reply("two")]) as model:
        home.configure(url=model.url)
        assert cru("-C", "mine", "hi", home=home).code == 0
        assert cru("-C", "friend", "hi", home=home).code == 0
        first, second = (request.body["messages"] for request in model.requests)
    assert "Be kind in mine." in first[0]["content"]
    assert "good morning" in msgspec.json.encode(second).decode()


def wait_until_gone(file: Path) -> None:
    """Wait for the end of the process whose id stands in the file."""
    wait_until(lambda: not is_running(int(file.read_text())), what=f"the end of the process of {file.name}")


def until(file: Path) -> None:
    wait_until(file.exists, what=str(file))


RULED = '[permissions]\n{kind} = ["weather:Oslo", "wether:Oslo"]\n'


@pytest.mark.parametrize("town", ["Oslo", " Oslo", "Oslo\n"])
def test_a_rule_on_what_a_program_says_that_a_call_is_about_holds(home: HomeDir, town: str) -> None:
    tool(home, "weather", "echo sunny", '"summary_params": ["town"]')
    home.configure(RULED.format(kind="deny"))
    run = cru("-t", "-P", "weather", msgspec.json.encode({"town": town}).decode(), home=home)
    assert run.code == 3 and "the rule `weather:Oslo`" in run.err and run.out == ""
    assert "rule `wether:Oslo` names no tool (did you mean `weather`?)" in run.err
    assert "`weather:Oslo` names no tool" not in run.err


@pytest.mark.parametrize("town", ["oslo", "Oslo, Norway"])
def test_a_rule_on_a_program_means_what_it_spells(home: HomeDir, town: str) -> None:
    tool(home, "weather", "echo sunny", '"summary_params": ["town"]')
    home.configure(RULED.format(kind="deny"))
    assert cru("-t", "-P", "weather", msgspec.json.encode({"town": town}).decode(), home=home).out == "sunny\n"


def test_an_allow_rule_on_a_program_is_exact(home: HomeDir) -> None:
    tool(home, "weather", "echo sunny", '"summary_params": ["town"]')
    calls(
        home,
        'weather {"town": "Oslo"}',
        'weather {"town": " Oslo"}',
        config=RULED.format(kind="allow"),
        flags=("--mode", "ask"),
    )
    first, second = results(home)
    assert first == "sunny\n" and "nobody can be asked here" in second
