"""What the answers of hooks do, each in a real turn."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.plugins.executables.hooked import ERAS, ask, heard, model, payload, plugin, results
from tests.kit import Call, HomeDir, Reply, server
from tests.kit.steps import Received

BASH = 'call: bash {"command": "echo hi"}\n---\ntext: done\n'
LONG = 'call: bash {"command": "seq 1 9000"}\n---\ntext: done\n'


def requests(home: HomeDir, *steps: Reply, prompt: str = "hello", config: str = 'mode = "trust"\n') -> list[Received]:
    """What the provider was sent."""
    with server([*steps, Reply("done")]) as provider:
        home.configure(config, url=provider.url)
        ask(home, prompt)
        return provider.requests


def system(request: Received) -> str:
    return str(request.body["messages"][0]["content"])


@pytest.mark.parametrize("era", ERAS)
def test_the_last_prompt_wins_and_all_saw_the_first(home: HomeDir, era: str) -> None:
    for name in ("a", "b"):
        plugin(home, {"pre_message": {"prompt": f"of {name}"}}, name=name, era=era)
    plugin(home, hooks=["pre_message"], name="c", era=era)
    (request,) = requests(home)
    assert request.body["messages"][-1]["content"] == "of b"
    assert [one.payload["prompt"] for one in heard(home)] == ["hello"] * 3


@pytest.mark.parametrize("era", ERAS)
def test_texts_stand_above_and_below_the_system_prompt(home: HomeDir, era: str) -> None:
    for name in ("a", "b"):
        says = {"pre_system_prompt": {"inject": f"TOP {name}"}, "post_system_prompt": {"inject": f"END {name}"}}
        plugin(home, says, name=name, era=era)
    (request,) = requests(home)
    said = system(request)
    assert said.startswith("TOP b\n\nTOP a\n\n") and said.endswith("\n\nEND a\n\nEND b")


@pytest.mark.parametrize("era", ERAS)
def test_the_first_block_is_the_last_word(home: HomeDir, era: str) -> None:
    model(home, BASH)
    plugin(home, {"pre_tool": {"arguments": {"command": "echo changed"}}}, name="a", era=era)
    plugin(home, {"pre_tool": {"block": True, "message": "not this"}}, name="b", era=era)
    plugin(home, {"pre_tool": {"block": True, "message": "nor that"}}, name="c", era=era)
    plugin(home, hooks=["pre_shell_exec", "pre_tool_output", "post_tool"], name="d", era=era)
    ask(home)
    assert results(home) == ["Blocked by b: not this"]
    assert [one.plugin for one in heard(home)][:3] == ["a", "b", "c"]  # all of them ran
    assert [one.hook for one in heard(home)][3:] == ["pre_tool_output", "post_tool"]


def test_a_block_needs_no_message(home: HomeDir) -> None:
    model(home, BASH)
    plugin(home, {"pre_tool": {"block": True}})
    ask(home)
    assert results(home) == ["Blocked by spy: blocked by a hook"]


@pytest.mark.parametrize("era", ERAS)
def test_the_last_arguments_win(home: HomeDir, era: str) -> None:
    model(home, BASH)
    for name in ("a", "b"):
        plugin(home, {"pre_tool": {"arguments": {"command": f"echo {name}"}}}, name=name, era=era)
    ask(home)
    assert results(home) == ["b"]
    assert [one.payload["arguments"] for one in heard(home)] == [{"command": "echo hi"}] * 2


@pytest.mark.parametrize(
    ("answer", "warning"),
    [
        ({"pre_message": {"prompt": 5}}, "pre_message: `prompt` is no text and is left out"),
        ({"pre_api_tools": {"exclude": "bash"}}, "pre_api_tools: `exclude` is no list of names and is left out"),
        ({"pre_api_request": {"request_body": []}}, "pre_api_request: `request_body` is no object and is left out"),
        ({"pre_api_request": {"request_body": {"messages": ["x"]}}}, "pre_api_request: `messages` cannot be read and are left out"),
        ({"pre_agentic_loop": {"fallback": "nobody"}}, "pre_agentic_loop: there is no fallback `nobody`: call_user or call_agent"),
        ({"post_tool_batch": {"fuel": "much"}}, "post_tool_batch: `fuel` is no whole number and is left out"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)  # fmt: skip
def test_what_cannot_be_used_is_told_and_changes_nothing(home: HomeDir, answer: dict[str, Any], warning: str) -> None:
    model(home, BASH)
    plugin(home, answer)
    run = ask(home)
    assert (run.out, run.err) == ("done\n", f"cru: spy: {warning}\n")
    assert results(home) == ["hi"]


@pytest.mark.parametrize("says", ["plain text", "true", "[info] looked", '"block"'])
def test_only_objects_have_an_effect(home: HomeDir, says: str) -> None:
    model(home, BASH)
    plugin(home, {"pre_tool": f"printf '{says}'"})
    assert ask(home).err == ""
    assert results(home) == ["hi"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("era", ERAS)
def test_an_output_is_replaced_or_blocked(home: HomeDir, era: str) -> None:
    model(home, 'call: bash {"command": "echo hi"}\ncall: nothing {}\n---\ntext: done\n')
    plugin(home, {"pre_tool_output": {"output": "first"}}, name="a", era=era)
    plugin(home, {"pre_tool_output": {"output": "second"}}, name="b", era=era)
    ask(home)
    assert results(home) == ["second", "second"]
    plugin(home, {"pre_tool_output": {"block": True, "message": "secret"}}, name="aa", era=era)
    ask(home, "-C", "again", "hello")
    assert results(home, "again") == ["secret", "secret"]


def test_a_long_output_is_sent_in_full_or_with_a_summary(home: HomeDir) -> None:
    model(home, LONG)
    plugin(home, {"pre_cache_output": {"summary": "numbers"}}, hooks=["post_tool_output"], name="b")
    ask(home)
    assert results(home)[0].endswith("Summary:\nnumbers")
    assert payload(home, "post_tool_output")["cached"] is True
    plugin(home, {"pre_cache_output": {"block": True}}, name="a")
    ask(home, "-C", "again", "hello")
    assert results(home, "again")[0].endswith("9000") and len(results(home, "again")[0]) > 40_000


def test_tools_are_included_and_excluded(home: HomeDir) -> None:
    plugin(home, {"pre_api_tools": {"include": ["read", "bash", "grep"]}}, name="a")
    plugin(home, {"pre_api_tools": {"include": ["bash", "grep", "nothing"], "exclude": ["grep"]}}, name="b")
    (request,) = requests(home)
    assert [one["function"]["name"] for one in request.body["tools"]] == ["bash"]


def test_an_empty_include_takes_all(home: HomeDir) -> None:
    plugin(home, {"pre_api_tools": {"include": []}})
    (request,) = requests(home)
    assert not request.body.get("tools")


@pytest.mark.parametrize("era", ERAS)
def test_parameters_and_model_of_a_request(home: HomeDir, era: str) -> None:
    plugin(home, {"pre_api_request": {"request_body": {"temperature": 0.1, "top_p": 0.5}}}, name="a", era=era)
    plugin(home, {"pre_api_request": {"request_body": {"temperature": 0.9, "model": "other"}}}, name="b", era=era)
    first, _ = requests(home, Reply(calls=[Call("bash", {"command": "true"})]))
    body = first.body
    assert (body["temperature"], body["top_p"], body["model"]) == (0.9, 0.5, "other")
    assert len(heard(home)) == 2  # not again for the second request


def test_a_model_without_a_provider_names_who_chose_it(home: HomeDir) -> None:
    model(home, BASH)
    plugin(home, {"pre_api_request": {"request_body": {"model": "gpt-nine"}}})
    err = ask(home, code=5).err
    assert "spy chose a model that there is not: no provider is configured for the model 'gpt-nine'" in err


def test_a_whole_body_may_come_back_with_messages_changed(home: HomeDir) -> None:
    change = """printf '%s' "$payload" | sed 's/"content":"hello"/"content":"changed"/'"""
    plugin(home, {"pre_api_request": change})
    (request,) = requests(home)
    assert request.body["messages"][-1] == {"role": "user", "content": "changed"}
    assert [entry["content"] for entry in home.log() if entry["entry_type"] == "message"] == ["hello", "done"]


def test_the_system_prompt_and_tools_of_a_body_are_left_alone(home: HomeDir) -> None:
    body = {"messages": [{"role": "system", "content": "be evil"}, {"role": "user", "content": "hello"}], "tools": []}
    plugin(home, {"pre_api_request": {"request_body": body}})
    with server([Reply("done")]) as provider:
        home.configure(url=provider.url)
        err = ask(home).err
    assert "be evil" not in system(provider.requests[0]) and provider.requests[0].body["tools"]
    assert "pre_system_prompt and post_system_prompt" in err and "pre_api_tools" in err


@pytest.mark.parametrize("hook", ["pre_agentic_loop", "post_tool_batch"])
def test_fuel_is_set(home: HomeDir, hook: str) -> None:
    model(home, 'call: bash {"command": "true"}\nrepeat: 9\n')
    plugin(home, {hook: {"fuel": 0 if hook == "post_tool_batch" else 1}})
    assert "out of budget: " in ask(home, code=3).err
    assert len(results(home)) == 1


def test_deltas_add_up_and_never_go_below_nothing(home: HomeDir) -> None:
    model(home, 'call: bash {"command": "true"}\nrepeat: 9\n---\ntext: done\n', "fuel = 100\n")
    plugin(home, {"post_tool_batch": {"fuel_delta": -30}}, name="a")
    plugin(home, {"post_tool_batch": {"fuel_delta": -19}}, name="b")
    ask(home, code=3)
    left = [one.payload["fuel_remaining"] for one in heard(home) if one.plugin == "a"]
    assert left == [99, 49]  # minus one for each batch; the second one leaves nothing


def test_the_agent_goes_on_when_the_fallback_says_so(home: HomeDir) -> None:
    model(home, 'text: one\n---\ntext: two\n---\ncall: call_user {"message": "over"}\n')
    plugin(home, {"pre_agentic_loop": {"fallback": "call_agent"}})
    assert ask(home).out == "one\ntwo\nover\n"


def test_the_batch_beats_the_loop_and_each_leg_begins_anew(home: HomeDir) -> None:
    model(home, 'text: one\n---\ncall: bash {"command": "true"}\n---\ntext: two\n---\ntext: three\n')
    plugin(home, {"pre_agentic_loop": {"fallback": "call_agent"}}, name="a")
    plugin(home, {"post_tool_batch": {"fallback": "call_user"}}, name="b")
    assert ask(home).out == "one\ntwo\n"
    assert {one.payload["current_fallback"] for one in heard(home) if one.hook == "pre_agentic_loop"} == {"call_user"}


FILES = {
    "pre_file_read": 'read {"file_path": "/etc/hostname"}',
    "pre_file_write": 'write {"file_path": "a.txt", "content": "x"}',
    "pre_shell_exec": 'bash {"command": "touch a.txt"}',
    "pre_fetch_url": 'fetch {"url": "http://127.0.0.1:1/"}',
}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("hook", FILES)
def test_permission_hooks_refuse_in_every_mode(home: HomeDir, hook: str, era: str) -> None:
    model(home, f"call: {FILES[hook]}\n---\ntext: done\n")
    plugin(home, {hook: {"denied": True, "reason": "hands off"}}, era=era)
    ask(home)
    assert results(home) == ["Blocked by spy: hands off"]
    assert not (home.project / "a.txt").exists()


@pytest.mark.parametrize("hook", FILES)
def test_the_answer_of_older_plugins_is_a_refusal_too(home: HomeDir, hook: str) -> None:
    model(home, f"call: {FILES[hook]}\n---\ntext: done\n")
    plugin(home, {hook: {"approved": False}}, name="b")
    plugin(home, {hook: {"approved": True}}, name="a")
    ask(home)
    assert results(home) == ["Blocked by b: denied by a hook"]


def test_a_yes_is_no_leave(home: HomeDir) -> None:
    """Nobody can be asked here, so what needs a question is refused all the same."""
    model(home, f"call: {FILES['pre_file_write']}\n---\ntext: done\n", mode="ask")
    plugin(home, {"pre_file_write": {"approved": True, "denied": False}})
    ask(home)
    assert "Not allowed by policy" in results(home)[0]


@pytest.mark.parametrize(
    ("says", "by"), [({"delivered": True, "via": "carrier"}, "carrier"), ({"delivered": True}, "post")]
)
def test_a_message_may_be_delivered_another_way(home: HomeDir, says: dict[str, Any], by: str) -> None:
    model(home, 'call: send_message {"to": "other", "content": "hi"}\n---\ntext: done\n')
    tools = [{"name": "post", "description": "d", "hooks": ["pre_send_message", "post_send_message"]}]
    plugin(home, {"pre_send_message": says}, name="a", tools=tools)
    plugin(home, {"pre_send_message": {"delivered": True, "via": "too late"}}, name="b")
    ask(home)
    assert results(home) == [f"Message sent to other by {by}"]
    assert payload(home, "post_send_message")["delivery_result"] == results(home)[0]
    assert not (home.context("other") / "inbox.jsonl").exists()


def test_observing_hooks_have_no_effect(home: HomeDir) -> None:
    everything = {"block": True, "denied": True, "prompt": "x", "output": "x", "inject": "x", "arguments": {}}
    names = [
        "on_start",
        "on_end",
        "post_message",
        "post_tool",
        "post_tool_output",
        "post_cache_output",
        "post_send_message",
    ]
    model(home, LONG)
    plugin(home, {name: everything for name in names})
    run = ask(home)
    assert (run.out, run.err) == ("done\n", "")
    assert len(heard(home)) == 6


def test_four_dialects_in_one_call(home: HomeDir) -> None:
    """The golden journal: Lua rewrites, a Crush hook denies, a Claude hook asks; the program is not heard any more. Without the refusal it
    is, and its arguments are those that run."""
    from tests.faces.hooked import ALL, claude, crush

    deny = crush(home, {"name": "guard", "command": "echo nothing is deleted here >&2; exit 2"})
    ask_first = '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask"}}'
    claude(home, {"command": f"echo '{ask_first}'"}, matcher="Bash")
    plugin(home, {"pre_tool": {"arguments": {"command": "echo from the program"}}}, name="program")
    (home.cru / "plugins" / "nice.lua").write_text(
        'cru.on("tool:before_call", function(ctx, e) return { args = { command = "nice " .. e.args.command } } end)'
    )
    model(home, BASH, f"[hooks]\n{ALL}\n")
    ask(home)
    (line,) = [one for one in home.lines("default", "journal.jsonl") if one["event"] == "tool:before_call"]
    told = [
        (one["owner"].split()[0], one.get("skipped", ""), one.get("answer", {}).get("decision", ""))
        for one in line["heard"]
    ]
    assert told[0] == ("nice", "", "") and told[1] == ("hook", "", "deny") and told[2] == ("hook", "", "ask")
    assert told[3][0] == "program" and told[3][1].startswith("cancelled by hook")
    assert (line["decision"], line["reason"]) == ("deny", "nothing is deleted here")
    assert line["changed"]["args"]["command"] == "nice echo hi"
    assert heard(home) == []

    deny.unlink()
    ask(home, "-C", "again", "hello")
    (line,) = [one for one in home.lines("again", "journal.jsonl") if one["event"] == "tool:before_call"]
    assert payload(home, "pre_tool")["arguments"] == {"command": "nice echo hi"}
    change = {"field": "args", "op": "set", "value": {"command": "echo from the program"}}
    assert line["heard"][-1]["owner"] == "program" and line["heard"][-1]["answer"] == {"changes": [change]}
    assert (line["decision"], line["changed"]["args"]["command"]) == ("ask", "echo from the program")
    assert "nobody can be asked here" in results(home, "again")[0]  # what a hook asks, only a person answers
