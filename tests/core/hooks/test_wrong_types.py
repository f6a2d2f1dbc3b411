"""Every dialect's reader, given every wrong type at every place: it never raises, and says what is wrong and where."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.hooks.dialect_world import about, parsed

from cru.core.hooks.dialects import FOOTPRINTS, load_dialects
from cru.core.hooks.loader import load_hooks
from cru.core.hooks.model.entry import HookEntry, HookFileProblem
from cru.core.hooks.model.status import LoadPolicy
from cru.core.hooks.parsing.reading import canonical_definition

At = tuple[str | int, ...]
HUGE = 10**400
WRONG: tuple[Any, ...] = (
    None,
    True,
    7,
    -7,
    0.5,
    HUGE,
    -HUGE,
    "",
    "text",
    "nul\0",
    [],
    ["a"],
    [[]],
    [{}],
    {},
    {"a": 1},
    {"a": []},
)
CLAUDE_HANDLER = {
    "type": "command", "if": "Bash(git *)", "timeout": 5, "statusMessage": "s", "once": True, "command": "true", "args": ["a"],
    "async": False, "asyncRewake": False, "shell": "bash",
}  # fmt: skip
GEMINI_HANDLER = {"type": "command", "command": "true", "name": "n", "timeout": 5000, "env": {"A": "b"}}
NATIVE = {
    "event": "tool:before_call", "command": "true", "args": ["a"], "matcher": "x", "if": "bash:*", "name": "n", "env": {"A": "b"},
    "cwd": "sub", "shell": "bash", "async": False, "once": False, "sequential": False, "include_sub_agents": True, "on_error": "deny",
    "priority": 5, "enabled": True, "timeout": 3,
}  # fmt: skip


def native(one: dict[str, Any]) -> dict[str, Any]:
    return {"hooks": [one]}


def nested(event: str, handler: dict[str, Any], **group: Any) -> dict[str, Any]:
    return {"hooks": {event: [{"matcher": "x", **group, "hooks": [handler]}]}}


CODEX = nested("PreToolUse", {"type": "command", "command": "true", "timeout": 5, "async": False})
# What a file may say, all of it right: (dialect, name of the file, the file).
FILES: list[tuple[str, str, dict[str, Any]]] = [
    ("cru", "hooks.json", native(NATIVE)),
    ("cru", "hooks.json", {"hooks": {"PreToolUse": [{"lua": "return", "matcher": "x"}]}}),
    ("cru", "hooks.json", native({"event": "PreToolUse", "python": "a.py:f"})),
    ("cru", "hooks.json", native({"event": "PreToolUse", "file": "a.sh"})),
    ("cru", "config.toml", {"hooks": {"entries": [NATIVE]}}),
    ("crush", "crush.json", {"hooks": {"PreToolUse": [{"name": "n", "matcher": "x", "command": "true", "timeout": 5}]}}),
    ("claude", "settings.json", {**nested("PreToolUse", CLAUDE_HANDLER), "disableAllHooks": False}),
    ("claude", "settings.json", nested("PreToolUse", {"type": "http", "url": "https://x", "headers": {}})),
    ("codex", "hooks.json", CODEX),
    ("codex", "config.toml", {**CODEX, "notify": ["a", "b"], "features": {"hooks": True}}),
    (
        "gemini",
        "settings.json",
        {
            **nested("BeforeTool", GEMINI_HANDLER, sequential=True),
            "hooksConfig": {"enabled": True, "disabled": ["n"]},
        },
    ),
]  # fmt: skip
# Keys that mean nothing to cru, so whatever stands under them is left alone.
FREE = ("statusMessage", "headers", "features", "url")

# In cru's own file that is an object of events, and an empty list is one of entries.
MEANT: list[tuple[At, Any]] = [(("hooks",), []), (("hooks",), {}), (("hooks",), {"a": []})]


def places(value: Any, at: At = ()) -> Iterator[At]:
    """Every place in a document but its top."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*at, key)
        yield from places(one, (*at, key))


def put(document: dict[str, Any], at: At, value: Any) -> Any:
    """A copy with another value there; what stood there before."""
    changed = copy.deepcopy(document)
    node: Any = changed
    for key in at[:-1]:
        node = node[key]
    was, node[at[-1]] = node[at[-1]], value
    return changed, was


def written(document: dict[str, Any], name: str) -> str | None:
    """As the text of such a file; None where TOML has no such thing."""
    if not name.endswith(".toml"):
        return canonical_definition(document)
    try:
        return tomlkit.dumps(document)
    except (TypeError, ValueError, tomlkit.exceptions.ConvertError):
        return None


def read(dialect: str, name: str, text: str) -> tuple[list[HookEntry], list[HookFileProblem]]:
    """As a session reads it, with a look at everything that is told of an entry."""
    found, problems = parsed(load_dialects([dialect])[dialect], text, name)
    source = found[0].source if found else None
    if source is not None:
        loaded = load_hooks([source], load_dialects([dialect]), LoadPolicy(accepted=frozenset([dialect])), about())
        for one in loaded.known:
            entry = one.entry
            hash(entry.identity)
            assert f"{entry.timeout:g} {entry.label} {entry.where}" and entry.timeout > 0
            assert one.state != "active" or "\0" not in repr(
                (entry.command, entry.args, entry.env, entry.cwd, entry.matcher)
            )
            assert isinstance(entry.command, str) and isinstance(entry.matcher, str) and isinstance(entry.name, str)
    return found, problems


CASES = [(index, at) for index, (_, _, document) in enumerate(FILES) for at in places(document)]


@pytest.mark.sample(30)
@pytest.mark.parametrize(("index", "at"), CASES, ids=lambda value: str(value))
def test_a_wrong_type_is_a_problem_with_its_place(index: int, at: At) -> None:
    dialect, name, document = FILES[index]
    for value in WRONG:
        changed, was = put(document, at, value)
        text = written(changed, name)
        if text is None:
            continue
        found, problems = read(dialect, name, text)
        if (
            value is None
            or isinstance(value, type(was))
            or (isinstance(was, int | float) and isinstance(value, int | float))
        ):
            continue
        if (
            any(key in FREE for key in at)
            or (at, value) in MEANT
            or (at[-2:-1] == ("env",) and isinstance(value, int | float))
        ):
            continue
        said = [(one.path, one.line) for one in problems] + [(e.source.path, e.line) for e in found if e.problem]
        assert said and all(line > 0 for _, line in said), (text, found, problems)


VALUES = st.recursive(
    st.sampled_from([one for one in WRONG if not isinstance(one, list | dict)]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["hooks", "type", "command", "PreToolUse", "matcher", "a"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(VALUES, st.sampled_from([at for at, _ in enumerate(FILES)]), st.randoms(use_true_random=False))
def test_anything_anywhere_is_read_without_an_error(value: Any, index: int, random: Any) -> None:
    dialect, name, document = FILES[index]
    changed, _ = put(document, random.choice(list(places(document))), value)
    text = written(changed, name)
    if text is not None:
        read(dialect, name, text)


@pytest.mark.parametrize("seconds", ["nan", "inf", "-inf", "1e400", "0"])
def test_a_time_limit_that_is_no_number_of_seconds(seconds: str) -> None:
    text = f'[[hooks.entries]]\nevent = "PreToolUse"\ncommand = "true"\ntimeout = {seconds}\n'
    found, problems = read("cru", "config.toml", text)
    assert [one.timeout for one in found] == [60] and "`timeout` must be a number of seconds" in problems[0].text


DEEP = "[" * 600 + "]" * 600


@pytest.mark.parametrize(("index", "at"), [case for case in CASES if not FILES[case[0]][1].endswith(".toml")][::7])
def test_what_lies_deep_is_read_without_an_error(index: int, at: At) -> None:
    dialect, name, document = FILES[index]
    changed, _ = put(document, at, "DEEP")
    found, problems = read(dialect, name, canonical_definition(changed).replace('"DEEP"', DEEP))
    assert found or problems, "neither read nor told"


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("crush", '{"hooks": {"PreToolUse": [\n{"command": "a\\u0000b"}]}}'),
        (
            "claude",
            '{"hooks": {"PreToolUse": [{"hooks": [\n{"type": "command", "command": "a", "args": ["\\u0000"]}]}]}}',
        ),
        (
            "claude",
            '{"hooks": {"PreToolUse": [{"matcher": "\\u0000", "hooks": [\n{"type": "command", "command": "a"}]}]}}',
        ),
        (
            "gemini",
            '{"hooks": {"BeforeTool": [{"hooks": [\n{"type": "command", "command": "a", "env": {"A": "\\u0000"}}]}]}}',
        ),
        (
            "gemini",
            '{"hooks": {"BeforeTool": [{"hooks": [\n{"type": "command", "command": "a", "env": {"\\u0000": "b"}}]}]}}',
        ),
        ("codex", '{"hooks": {"PreToolUse": [{"hooks": [\n{"type": "command", "command": "a\\u0000"}]}]}}'),
        ("cru", '{"hooks": [\n{"event": "PreToolUse", "command": "a", "cwd": "\\u0000"}]}'),
        ("cru", '{"hooks": [\n{"event": "PreToolUse", "file": "x.lua\\u0000"}]}'),
        ("cru", '{"hooks": [\n{"event": "PreToolUse", "args": ["x", "\\u0000"]}]}'),
    ],
)
def test_a_byte_that_no_system_takes_is_a_problem(dialect: str, text: str) -> None:
    found, _ = parsed(load_dialects([dialect])[dialect], text, "settings.json")
    loaded = load_hooks([found[0].source], load_dialects([dialect]), LoadPolicy(accepted=frozenset([dialect])), about())
    assert [(one.state, one.entry.line) for one in loaded.known] == [("broken", 2)]
    assert "NUL" in loaded.known[0].why


def test_text_that_only_speaks_of_it_is_none() -> None:
    text = r'{"hooks": [{"event": "PreToolUse", "command": "printf \\u0000; tr -d \\\\u0000"}]}'
    found, _ = parsed(load_dialects(["cru"])["cru"], text, "hooks.json")
    assert [
        one.state for one in load_hooks([found[0].source], load_dialects(["cru"]), LoadPolicy(), about()).known
    ] != ["broken"]


def test_no_dialect_is_left_out() -> None:
    missing = sorted(FOOTPRINTS.keys() - {dialect for dialect, _, _ in FILES})
    assert missing == [], f"add a file of {', '.join(missing)} to FILES"
