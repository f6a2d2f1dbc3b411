"""settings.json of Claude Code: what is read, in which order, and what is said about what is odd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.core.hooks.claude_world import EVENTS, about, config, entry, read

from cru.core.hooks.dialects.claude.dialect import DIALECT as CLAUDE
from cru.core.hooks.loader import load_hooks, read_sources
from cru.core.hooks.model.status import LoadPolicy

HERE = about(Path("/project"))
COMMAND = {"type": "command", "command": "x"}


def test_entries_are_flat_and_in_the_order_of_the_file() -> None:
    text = """{
      "model": "opus", "permissions": {"allow": ["Bash"]},
      "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "one"}]}],
        "PreToolUse": [
          {"matcher": "Bash", "hooks": [{"type": "command", "command": "two"}, {"type": "command", "command": "three"}]},
          {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "four", "timeout": 5}]}
        ]
      }
    }"""
    entries, problems = read(text)
    assert problems == []
    assert [(e.event, e.matcher, e.command, e.line, e.timeout) for e in entries] == [
        ("Stop", "", "one", 4, 600), ("PreToolUse", "Bash", "two", 6, 600), ("PreToolUse", "Bash", "three", 6, 600),
        ("PreToolUse", "Edit|Write", "four", 7, 5),
    ]  # fmt: skip
    assert len({e.id for e in entries}) == 4 and all(e.include_sub_agents is None for e in entries)


def test_an_id_depends_on_nothing_around() -> None:
    [alone], _ = read(config("PreToolUse", COMMAND, matcher="Bash"))
    entries, _ = read(config("PreToolUse", {"type": "command", "command": "y"}, COMMAND, matcher="Bash"))
    [other], _ = read(config("PreToolUse", COMMAND, matcher="Read"))
    assert entries[1].id == alone.id != other.id


@pytest.mark.parametrize(
    ("event", "handler", "seconds"),
    [
        ("PreToolUse", {}, 600), ("UserPromptSubmit", {}, 30), ("MessageDisplay", {}, 10), ("SessionEnd", {}, 1.5),
        ("PreToolUse", {"timeout": 0.5}, 0.5), ("UserPromptSubmit", {"timeout": 90}, 90), ("SessionEnd", {"timeout": 90}, 60),
        ("SessionEnd", {"timeout": 5}, 5),
    ],
)  # fmt: skip
def test_limits_are_seconds(event: str, handler: dict[str, Any], seconds: float) -> None:
    assert entry(event, **handler).timeout == seconds


@pytest.mark.parametrize(("given", "seconds"), [("5000", 5.0), ("90000", 60.0), ("soon", 1.5), ("0", 1.5)])
def test_the_limit_at_the_end_of_a_session_may_be_set(tmp_path: Path, given: str, seconds: float) -> None:
    facts = about(tmp_path, CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS=given)
    [made], _ = read(config("SessionEnd", COMMAND), facts=facts)
    assert made.timeout == seconds


def test_flags() -> None:
    flags: dict[str, Any] = {"async": True, "if": "Bash(git *)", "args": ["a"], "shell": "bash"}
    made = entry("PreToolUse", **flags, statusMessage="…")
    assert (made.asynchronous, made.condition, made.args, made.shell) == (
        True,
        "Bash(git *)",
        ("a",),
        "bash",
    )


def test_once_has_no_effect_in_settings() -> None:
    [made], [problem] = read(config("PostToolUse", {**COMMAND, "once": True}))
    assert not made.once and not made.problem and "the hook runs each time" in str(problem)


@pytest.mark.parametrize(("word", "on_error"), [(None, ""), ("continue", ""), ("block", "deny")])
def test_what_a_failure_means(word: str | None, on_error: str) -> None:
    assert entry("PreToolUse", onFailure=word).on_error == on_error


@pytest.mark.parametrize("word", ["blok", "deny", 1, ["block"], {}])
def test_a_word_for_failures_that_nobody_knows_guards_and_is_told(word: object) -> None:
    [made], [problem] = read(config("PreToolUse", {**COMMAND, "onFailure": word}))
    assert made.on_error == "deny" and problem.loses_hooks and "counts as block" in str(problem)


def test_a_hook_that_wakes_the_agent_runs_beside_it() -> None:
    [made], problems = read(config("Stop", {**COMMAND, "asyncRewake": True}))
    assert made.asynchronous and made.rewake and not made.problem and not problems


@pytest.mark.parametrize("kind", ["http", "mcp_tool", "prompt", "agent"])
def test_other_types_load_and_wait(kind: str) -> None:
    key = {"http": "url", "mcp_tool": "tool"}.get(kind, "prompt")
    text = config("Stop", {"type": kind, key: "what"})
    [known] = load_hooks([_source(text)], {"claude": CLAUDE}, LoadPolicy(frozenset({"claude"})), HERE).known
    assert (known.state, known.entry.label) == ("not available yet", "what") and kind in known.why


def _source(text: str) -> Any:
    from cru.core.hooks.model.entry import HookSource

    return HookSource("claude", "user", Path("/u/settings.json"), text)


# text, or a handler of PreToolUse → what is said
ODD: list[tuple[str, str]] = [
    ("{\n\"a\" 1}", "settings.json:2: not JSON"),
    ("[]", "not a JSON object"),
    ('{"hooks": []}', "`hooks` must be an object"),
    ('{"hooks": {"PreTolUse": []}}', "there is no event `PreTolUse` (did you mean `PreToolUse`?)"),
    ('{"hooks": {"PreToolUse": {}}}', "`PreToolUse` must be a list"),
    ('{"hooks": {"PreToolUse": [{"command": "x"}]}}', 'write {"matcher": "…", "hooks": [ … ]} around it'),
    ('{"hooks": {"PreToolUse": [{"matchr": "", "hooks": []}]}}', "`matchr` is not known here (did you mean `matcher`?)"),
    (config("PreToolUse", "x"), "a handler must be an object"),
    (config("PreToolUse", {**COMMAND, "timeuot": 3}), "did you mean `timeout`?"),
    (config("PreToolUse", {**COMMAND, "timeout": "3"}), "`timeout` must be a number of seconds"),
    (config("PreToolUse", {**COMMAND, "timeout": -1}), "`timeout` must be a number of seconds"),
    (config("PreToolUse", {**COMMAND, "timeout": True}), "`timeout` must be a number of seconds"),
    (config("PreToolUse", {"type": "comand", "command": "x"}), "did you mean `command`?"),
    (config("PreToolUse", {"type": 3}), "the `type` of a handler is one of command, http"),
    ('{"disableAllHooks": "yes"}', "`disableAllHooks` must be true or false"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "told"), ODD)
def test_what_is_odd_is_said(text: str, told: str) -> None:
    _, problems = read(text)
    assert told in "\n".join(map(str, problems))


# handler, matcher → why it never runs
BROKEN: list[tuple[dict[str, Any], Any, str]] = [
    ({"command": "x"}, "", "`type` is missing"),
    ({"type": "command"}, "", "`command` is missing"),
    ({"type": "command", "command": " "}, "", "`command` is missing"),
    ({**COMMAND, "args": "x"}, "", "`args` must be a list of texts"),
    ({**COMMAND, "args": [1]}, "", "`args` must be a list of texts"),
    ({**COMMAND, "shell": "zsh"}, "", "`shell` is one of bash, powershell"),
    ({**COMMAND, "if": "git *"}, "", "no permission rule"),
    (COMMAND, "Bash(", "no regular expression"),
    (COMMAND, 3, "`matcher` must be a text"),
]


@pytest.mark.parametrize(("handler", "matcher", "why"), BROKEN)
def test_what_cannot_run_is_listed_as_broken(handler: dict[str, Any], matcher: Any, why: str) -> None:
    [known] = load_hooks(
        [_source(config("PreToolUse", handler, matcher=matcher))], {"claude": CLAUDE}, LoadPolicy(), HERE
    ).known
    assert known.state == "broken" and why in known.why


def test_an_if_where_there_is_no_tool_never_holds() -> None:
    [made], _ = read(config("Stop", {**COMMAND, "if": "Bash(git *)"}))
    assert "events of tools only" in made.problem


def test_where_the_files_lie(tmp_path: Path) -> None:
    places = CLAUDE.places(about(tmp_path, CLAUDE_CONFIG_DIR="/elsewhere"))
    assert [(layer, str(path)) for layer, path in places[1:]] == [
        ("user", "/elsewhere/settings.json"), ("project", f"{tmp_path}/.claude/settings.json"),
        ("project", f"{tmp_path}/.claude/settings.local.json"),
    ]  # fmt: skip


def _written(path: Path, where: str, **more: Any) -> None:
    file = path / where
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.encode({**more, "hooks": {"Stop": [{"hooks": [{**COMMAND, "command": where}]}]}}))


@pytest.mark.parametrize(
    ("off", "states"), [("user", "disabled disabled"), ("project", "active disabled"), ("", "active active")]
)
def test_all_may_be_disabled_but_not_the_users_by_a_project(tmp_path: Path, off: str, states: str) -> None:
    facts = about(tmp_path)
    facts.root = tmp_path / "p"
    _written(tmp_path, ".claude/settings.json", disableAllHooks=off == "user")
    _written(tmp_path, "p/.claude/settings.json", disableAllHooks=off == "project")
    for _ in range(2):  # read again, as after a change
        given, problems = read_sources([CLAUDE], facts)
        loaded = load_hooks(
            given, {"claude": CLAUDE}, LoadPolicy(frozenset({"claude"}), is_trusted=lambda entry: True), facts
        )
        assert problems == [] and " ".join(known.state for known in loaded.known) == states


def test_every_documented_event_has_a_row() -> None:
    moments = CLAUDE.events
    assert set(moments) == set(EVENTS)
    assert all(row.event or row.unavailable for rows in moments.values() for row in rows)
    later = [
        known
        for known in load_hooks(
            [_source(config(name, COMMAND)) for name in EVENTS],
            {"claude": CLAUDE},
            LoadPolicy(frozenset({"claude"})),
            HERE,
        ).known
        if known.state == "no moment"
    ]
    assert {known.entry.event for known in later} == {name for name, rows in moments.items() if not rows[0].event}
    assert all(known.why for known in later)
