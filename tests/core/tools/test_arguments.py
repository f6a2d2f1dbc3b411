from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cru.core.tools.arguments import SPECS
from cru.core.tools.builtin import TABLE, BuiltInTools
from cru.core.tools.protocol import ArgumentError

TOOLS = {tool.spec.name: tool for tool in BuiltInTools().tools()}

WRONG: list[tuple[str, str, str]] = [
    ("read", "", "`file_path`: required, but missing"),
    ("read", '{"file_path": 1}', "`file_path`: expected a string, got an integer"),
    ("read", '{"file_path": null}', "`file_path`: expected a string, got null"),
    ("read", '{"file_path": ""}', "`file_path`: must not be empty"),
    ("read", '{"file_path": "a", "offset": 0}', "`offset`: expected an integer >= 1"),
    ("read", '{"file_path": "a", "offset": "3"}', "`offset`: expected an integer, got a string"),
    ("read", '{"file_path": "a", "limit": 1.5}', "`limit`: expected an integer, got a number"),
    ("read", '{"path": "a"}', "`path`: unknown argument; known: `file_path`"),
    ("read", '{"filepath": "a"}', "`filepath`: unknown argument; did you mean `file_path`?"),
    ("read", '{"file_path": "a", "zzz": 1}', "`zzz`: unknown argument; known: `file_path`, `offset`, `limit`"),
    ("read", '{"file_path": "a"', "the arguments are not valid JSON"),
    ("read", '["a"]', "the arguments must be a JSON object, got a list"),
    ("read", "null", "the arguments must be a JSON object, got null"),
    ("read", '"a"', "the arguments must be a JSON object, got a string"),
    ("read", "\ud800", "the arguments are not valid JSON"),
    ("write", '{"file_path": "a"}', "`content`: required, but missing"),
    ("write", '{"file_path": "a", "content": ["x"]}', "`content`: expected a string, got a list"),
    ("edit", '{"file_path": "a", "old_string": "b"}', "`new_string`: required, but missing"),
    (
        "edit",
        '{"file_path": "a", "old_string": "b", "new_string": "c", "replace_all": "true"}',
        "`replace_all`: expected true or false, got a string",
    ),
    ("ls", '{"path": {}}', "`path`: expected a string, got an object"),
    ("glob", '{"path": "."}', "`pattern`: required, but missing"),
    ("grep", '{"pattern": ""}', "`pattern`: must not be empty"),
    ("grep", '{"pattern": "a", "context": -1}', "`context`: expected an integer >= 0"),
    ("grep", '{"pattern": "a", "context": 21}', "`context`: expected an integer <= 20"),
    ("grep", '{"pattern": "a", "ignore_case": 1}', "`ignore_case`: expected true or false, got an integer"),
    ("grep", '{"pattern": "a", "include": 1}', "`include`: expected a string, got an integer"),
    ("bash", '{"comand": "ls"}', "`comand`: unknown argument; did you mean `command`?"),
    ("bash", '{"command": "ls", "timeout": "10"}', "`timeout`: expected a number, got a string"),
    ("bash", '{"command": "ls", "timeout": true}', "`timeout`: expected a number, got true or false"),
    ("bash", '{"command": "ls", "timeout": 0}', "`timeout`: expected a number > 0"),
    ("bash", '{"command": "ls", "timeout": 3601}', "`timeout`: expected a number <= 3600"),
    ("bash", '{"command": "ls", "background": "yes"}', "`background`: expected true or false, got a string"),
    ("bash", '{"command": "ls", "stdin": true}', "`stdin` and `detached` are for commands with `background`"),
    ("bash", '{"command": "ls", "detached": true}', "`stdin` and `detached` are for commands with `background`"),
    (
        "bash",
        '{"command": "ls", "background": true, "stdin": true, "detached": true}',
        "a command that is `detached` has no `stdin`",
    ),
    (
        "bash",
        '{"command": "ls", "background": true, "detached": true, "timeout": 5}',
        "a command that is `detached` has no `timeout`",
    ),
    ("bash", '{"command": "y", "input_to": "a", "background": true}', "with `input_to` nothing is started"),
    ("bash", '{"command": "y", "input_to": ""}', "`input_to`: must not be empty"),
    ("task_output", "{}", "`id`: required, but missing"),
    ("task_output", '{"id": "a", "wait": -1}', "`wait`: expected a number >= 0"),
    ("task_output", '{"id": "a", "lines": 0}', "`lines`: expected an integer >= 1"),
    ("task_output", '{"bash_id": "a"}', "`bash_id`: unknown argument; "),
    ("task_cancel", '{"id": ""}', "`id`: must not be empty"),
    ("fetch", "{}", "`url`: required, but missing"),
    ("update_todos", '{"content": 3}', "`content`: expected a string, got an integer"),
    ("update_goals", '{"goals": "x"}', "`goals`: unknown argument; known: `content`"),
    ("update_reflection", "{}", "`content`: required, but missing"),
    ("read_context", "{}", "`context_name`: required, but missing"),
    ("read_context", '{"context_name": ""}', "`context_name`: must not be empty"),
    ("read_context", '{"context_name": "a", "num_messages": -1}', "`num_messages`: expected an integer >= 0"),
    ("read_context", '{"context_name": "a", "include_messages": "yes"}', "`include_messages`: "),
    ("read_context", '{"name": "a"}', "`name`: unknown argument; "),
    ("send_message", '{"to": "", "content": "x"}', "`to`: must not be empty"),
    ("send_message", '{"to": "a", "content": ""}', "`content`: must not be empty"),
    ("send_message", '{"to": "a", "content": "x", "from_": "me"}', "`from_`: unknown argument; did you mean `from`?"),
    ("task", '{"agent": "explore"}', "`prompt`: required, but missing"),
    (
        "task",
        '{"agent": "explore", "prompt": "x", "isolation": "box"}',
        "`isolation`: invalid enum value 'box'; it may be `worktree`, or left out",
    ),
    ("call_user", '{"message": 1}', "`message`: expected a string, got an integer"),
    ("recurse", '{"note": 1}', "`note`: expected a string, got an integer"),
]


@pytest.mark.parametrize(("tool", "arguments", "message"), WRONG)
def test_a_wrong_argument_is_named_with_its_reason(tool: str, arguments: str, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        TOOLS[tool].check(arguments)
    assert str(caught.value).startswith(message)


def test_every_tool_is_in_the_table_of_wrong_arguments() -> None:
    assert {tool for tool, _, _ in WRONG} == set(TABLE)


def test_arguments_come_back_as_given_without_defaults() -> None:
    assert TOOLS["bash"].check('{"command": "ls"}') == {"command": "ls"}
    assert TOOLS["send_message"].check('{"to": "a", "content": "x", "from": "b"}')["from"] == "b"


def test_an_object_already_parsed_is_checked_alike() -> None:
    assert TOOLS["bash"].check({"command": "ls", "timeout": 2}) == {"command": "ls", "timeout": 2}
    with pytest.raises(ArgumentError, match="`timeout`: expected a number, got a string"):
        TOOLS["bash"].check({"command": "ls", "timeout": "2"})


@pytest.mark.parametrize("text", ["", "  ", "{}"])
def test_no_arguments_may_be_written_in_any_of_these_ways(text: str) -> None:
    assert TOOLS["call_user"].check(text) == {}


def test_null_for_an_optional_argument_counts_as_left_out() -> None:
    assert TOOLS["bash"].check('{"command": "ls", "timeout": null}') == {"command": "ls"}
    assert TOOLS["grep"].check('{"pattern": "a", "include": null, "path": null}') == {"pattern": "a"}


@pytest.mark.parametrize("name", TABLE)
def test_the_schema_agrees_with_the_struct(name: str) -> None:
    kind = TABLE[name].arguments
    generated = msgspec.json.schema(kind)["$defs"][kind.__name__]
    for given_by_cru in ("typed_before", "outside_sandbox"):
        generated["properties"].pop(given_by_cru, None)
    assert _bare(SPECS[name].parameters) == _bare(generated)


def _bare(schema: dict[str, Any]) -> dict[str, Any]:
    """Without what only one side has: titles, defaults, descriptions, and null for an optional argument."""
    kept = {k: v for k, v in schema.items() if k not in ("title", "properties", "description")}
    kept["properties"] = {name: _property(value) for name, value in schema["properties"].items()}
    return kept


def _property(value: dict[str, Any]) -> dict[str, Any]:
    one = next((v for v in value.get("anyOf", ()) if v != {"type": "null"}), value)
    return {k: v for k, v in one.items() if k not in ("default", "description")}


@pytest.mark.parametrize("name", TABLE)
def test_every_argument_is_described(name: str) -> None:
    assert SPECS[name].description.endswith(".")
    assert all(value["description"].endswith(".") for value in SPECS[name].parameters["properties"].values())


def test_subject_and_paths_say_what_a_call_touches() -> None:
    assert TOOLS["bash"].subject({"command": "git status"}) == "git status"
    assert list(TOOLS["bash"].paths({"command": "cat x"})) == []
    assert TOOLS["fetch"].subject({"url": "https://a.b/"}) == "https://a.b/"
    assert list(TOOLS["read"].paths({"file_path": "../x"})) == [("read", "../x")]
    assert list(TOOLS["edit"].paths({"file_path": "x"})) == [("write", "x")]
    assert list(TOOLS["grep"].paths({"pattern": "x"})) == [("read", ".")]
    assert TOOLS["send_message"].subject({"to": "other"}) == "other"


def test_the_permission_question_sees_the_home_folder_that_the_tool_will_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert TOOLS["read"].subject({"file_path": "~/x"}) == f"{tmp_path}/x"
    assert list(TOOLS["ls"].paths({"path": "~"})) == [("read", str(tmp_path))]
