"""Which hooks there are, when they are called, in which order, and with what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.plugins.executables.hooked import ERAS, ask, heard, model, payload, plugin, spy
from tests.kit import HomeDir

from cru.core.events.catalog import BY_NAME as EVENTS
from cru.core.plugins.executables.executable import HOOKS
from cru.core.plugins.executables.hooks.table import BY_NAME, TABLE

GOLDEN = Path(__file__).with_name("payloads.json")
# Two calls of one reply are both decided before the first one runs.
TURN = """\
call: bash {"command": "seq 1 9000"}
call: send_message {"to": "other", "content": "hello"}
---
text: done
"""
VARYING = ("description", "parameters", "preview_size", "task_id", "tool_count")
ORDER = [
    "on_start", "on_context_switch", "pre_message", "pre_agentic_loop", "pre_system_prompt", "post_system_prompt",
    "pre_api_tools", "pre_api_request",
    "pre_tool", "pre_shell_exec", "pre_tool_output", "pre_cache_output", "post_cache_output", "post_tool_output", "post_tool",
    "pre_tool", "pre_send_message", "post_send_message", "pre_tool_output", "post_tool_output", "post_tool",
    "post_tool_batch", "post_message", "on_end",
]  # fmt: skip
FILES = """\
call: write {"file_path": "a.txt", "content": "one"}
call: edit {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
call: read {"file_path": "/etc/hostname"}
call: read {"file_path": "a.txt"}
call: fetch {"url": "http://127.0.0.1:1/"}
call: nothing not json
---
text: done
"""


def test_the_table_has_every_name_once() -> None:
    assert len(TABLE) == len(BY_NAME) == 34
    assert set(BY_NAME) == set(HOOKS)


@pytest.mark.parametrize("hook", TABLE, ids=lambda hook: hook.name)
def test_a_hook_has_live_events_or_a_reason(hook: Any) -> None:
    assert bool(hook.events) != bool(hook.later)
    assert all(EVENTS[event].live for event in hook.events)


@pytest.mark.sample(1)
@pytest.mark.parametrize("era", ERAS)
def test_one_turn_in_order(home: HomeDir, era: str) -> None:
    model(home, TURN)
    spy(home, era)
    run = ask(home, "-C", "second", "hello")
    assert (run.out, run.err) == ("done\n", "")
    assert [one.hook for one in heard(home)] == ORDER


def _turn(home: HomeDir) -> None:
    model(home, TURN, "fuel = 2000\n")
    ask(home, "-C", "second", "hello")


def _files(home: HomeDir) -> None:
    model(home, FILES)
    ask(home)


def _rolling(home: HomeDir) -> None:
    model(home, "by: order\ntext: yes\nrepeat: 9\n", "auto_compact = false\n")
    for _ in range(3):
        ask(home, "word " * 40)
    sizes = 'context_window_limit = 900\nauto_compact = true\ncompaction_choice = "oldest"\n'
    model(home, "by: order\ntext: in short\n---\ntext: yes\n", sizes)
    ask(home, "word " * 40)


def _archive(home: HomeDir) -> None:
    model(home, "text: one\n---\ntext: two\n")
    ask(home)
    ask(home)
    model(home, "by: order\ntext: in short\n")
    ask(home, "-z")
    ask(home, "-a", "-x")


def _agents(home: HomeDir) -> None:
    child = home.path / "child.txt"
    child.write_text("text: found\n")
    model(
        home,
        'call: task {"agent": "explore", "prompt": "look", "model": "scripted:' + str(child) + '"}\n---\ntext: done\n',
    )
    ask(home)


RUNS: dict[Callable[[HomeDir], None], set[str]] = {
    _turn: {*ORDER},
    _files: {"pre_file_read", "pre_file_write", "pre_fetch_url"},
    _rolling: {"pre_rolling_compact", "post_rolling_compact"},
    _agents: {"pre_spawn_agent", "post_spawn_agent"},
    _archive: {"pre_compact", "post_compact", "pre_clear", "post_clear"},
}


def test_every_hook_that_can_be_called_is_played() -> None:
    assert set().union(*RUNS.values()) == {hook.name for hook in TABLE if hook.events}


@pytest.mark.sample(1)
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("play", RUNS, ids=lambda play: play.__name__)
def test_payloads_are_golden(home: HomeDir, era: str, play: Callable[[HomeDir], None]) -> None:
    """The first payload of each hook."""
    plugin(home, hooks=sorted(RUNS[play]), era=era)
    play(home)
    seen: dict[str, dict[str, Any]] = {}
    for _, hook, given in heard(home):
        seen.setdefault(hook, _plain(given, home))
    golden = msgspec.json.decode(GOLDEN.read_bytes())
    assert set(seen) == RUNS[play]
    assert seen == {hook: golden[hook] for hook in seen}


def _plain(value: Any, home: HomeDir) -> Any:
    """Without what differs from machine to machine, and with long texts cut."""
    if isinstance(value, dict):
        return {key: "…" if key in VARYING else _plain(one, home) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one, home) for one in value[:3]]
    if isinstance(value, str):
        text = value.replace(str(home.project), "PROJECT").replace(str(home.path), "HOME")
        return text if len(text) < 100 else text[:60] + "…"
    return value


def test_hooks_without_a_moment_are_listed_with_the_reason_and_warn_nobody(home: HomeDir) -> None:
    model(home, "text: done\n")
    spy(home)
    assert ask(home).err == ""
    out = ask(home, "plugin", "list").out
    for hook in TABLE:
        assert (hook.name in out) and (not hook.later or hook.later in out)


def test_a_hook_runs_for_each_tool_that_registered_it_and_plugins_in_name_order(home: HomeDir) -> None:
    model(home, "text: done\n")
    tools = [
        {"name": f"tool{n}", "description": "d", "hooks": hooks}
        for n, hooks in enumerate((["on_start"], ["on_start"], []))
    ]
    plugin(home, name="zeta", hooks=["on_start"])
    plugin(home, name="many", tools=tools)
    plugin(home, name="alpha", hooks=["on_start", "on_start"])
    ask(home)
    assert [one.plugin for one in heard(home)] == ["alpha", "many", "many", "zeta"]


def test_name_order_holds_after_a_reload(home: HomeDir) -> None:
    model(home, "text: done\n")
    for name in ("alpha", "beta"):
        plugin(home, name=name, hooks=["pre_message", "on_end"])
    from tests.kit import start

    with start("/plugin reload alpha", home=home) as run:
        run.wait()
    assert [one.plugin for one in heard(home)] == ["alpha", "beta"]


def test_reads_inside_the_project_ask_no_hook(home: HomeDir) -> None:
    (home.project / "a.txt").write_text("one")
    model(home, 'call: read {"file_path": "a.txt"}\n---\ntext: done\n')
    plugin(home, hooks=["pre_file_read"])
    ask(home)
    assert heard(home) == []


@pytest.mark.parametrize(
    ("config", "asked"),
    [
        ("", True),
        ('[permissions]\nallow = ["read:/etc/*"]\n', False),
        ('[permissions]\nallow = ["read:/var/*"]\n', True),
    ],
)
def test_reads_outside_do_in_every_mode_unless_a_rule_allows_the_place(home: HomeDir, config: str, asked: bool) -> None:
    model(home, 'call: read {"file_path": "/etc/hostname"}\n---\ntext: done\n', config)
    plugin(home, hooks=["pre_file_read"])
    ask(home)
    assert [one.payload for one in heard(home)] == ([{"tool_name": "read", "path": "/etc/hostname"}] if asked else [])


def test_public_addresses_ask_no_hook_and_neither_do_those_that_a_rule_decides_on(home: HomeDir) -> None:
    calls = (
        'call: fetch {"url": "http://nowhere.invalid/"}\ncall: fetch {"url": "http://10.0.0.1:1/"}\n---\ntext: done\n'
    )
    model(home, calls, '[permissions]\ndeny = ["fetch:http://10.0.0.1*"]\n')
    plugin(home, hooks=["pre_fetch_url"])
    ask(home)
    assert heard(home) == []


def test_a_permission_hook_sees_the_call_as_others_have_changed_it(home: HomeDir) -> None:
    model(home, 'call: bash {"command": "true"}\n---\ntext: done\n')
    plugin(home, {"pre_tool": {"arguments": {"command": "echo changed"}}}, hooks=["pre_shell_exec"])
    (home.cru / "plugins" / "late.lua").write_text(
        'cru.on("tool:before_call", function(ctx, e) return { args = { command = e.args.command .. " twice" } } end,'
        " { priority = 900 })"
    )
    ask(home)
    assert payload(home, "pre_shell_exec") == {"tool_name": "bash", "command": "echo changed twice"}


def test_every_leg_is_heard_with_its_depth(home: HomeDir) -> None:
    model(home, 'call: recurse {"note": "more"}\n---\ntext: one\n---\ntext: two\n')
    plugin(home, hooks=["pre_message", "pre_agentic_loop", "pre_api_request", "post_message", "post_tool"])
    ask(home)
    said = heard(home)
    assert [one.hook for one in said].count("pre_message") == [one.hook for one in said].count("pre_api_request") == 2
    depths = [one.payload["recursion_depth"] for one in said if one.hook in ("pre_agentic_loop", "pre_api_request")]
    assert depths == [0, 0, 1, 1]
    assert [one.payload["response"] for one in said if one.hook == "post_message"] == ["one", "two"]
    assert [one.payload["tool_name"] for one in said if one.hook == "post_tool"] == ["recurse"]


def test_call_user_is_no_answer_of_the_model(home: HomeDir) -> None:
    model(home, 'call: call_user {"message": "what now?"}\n---\ntext: one\n')
    plugin(home, hooks=["pre_tool", "post_message", "post_tool"])
    ask(home)
    assert [one.hook for one in heard(home)] == ["pre_tool"]


def test_without_a_limit_there_is_no_talk_of_fuel(home: HomeDir) -> None:
    model(home, "text: done\n", "fuel = 0\n")
    plugin(home, {"pre_agentic_loop": {"fuel": 1}}, hooks=["pre_api_tools"])
    ask(home)
    assert all("fuel_remaining" not in one.payload and "fuel_total" not in one.payload for one in heard(home))


def test_the_prompt_of_post_message_is_as_it_was_sent(home: HomeDir) -> None:
    model(home, "text: done\n")
    ask(home, "-c", "other", "-x")
    model(home, 'call: send_message {"to": "other", "content": "psst"}\n---\ntext: done\n')
    ask(home, "-C", "first", "tell them")
    model(home, "text: done\n")
    plugin(home, {"pre_message": {"prompt": "changed"}}, hooks=["post_message"])
    ask(home, "-C", "other", "hello")
    assert payload(home, "post_message")["prompt"].endswith("changed")
    assert "psst" in payload(home, "post_message")["prompt"]


def test_a_prompt_with_nobody_listening_starts_no_program(home: HomeDir) -> None:
    model(home, "text: done\n")
    plugin(home, hooks=["pre_clear"])
    ask(home)
    assert heard(home) == []
    assert all("spy" not in str(line["heard"]) for line in home.lines("default", "journal.jsonl"))


def test_a_switch_is_heard_without_a_prompt_but_a_transient_one_starts_nothing(home: HomeDir) -> None:
    model(home, "text: done\n")
    plugin(home, hooks=["on_start", "on_context_switch"])
    ask(home, "-C", "other", "-l")
    assert heard(home) == []
    ask(home, "-c", "other", "-x")
    assert [one.hook for one in heard(home)] == ["on_start", "on_context_switch"]
    given = payload(home, "on_context_switch")
    assert (given["from_context"], given["to_context"], given["is_transient"]) == ("default", "other", False)


def test_the_context_that_is_current_is_no_switch(home: HomeDir) -> None:
    model(home, "text: done\n")
    plugin(home, hooks=["on_context_switch"])
    ask(home, "-C", "default", "hello")
    assert heard(home) == []
