"""fmt, inspect, check, tbl_*, json: functions of their arguments alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.core.api.support import Room

from cru.core.api import check, json
from cru.core.api.formatting import fmt, inspect
from cru.core.api.host import BadArgument, NoSession
from cru.core.api.log import toast
from cru.core.api.tables import tbl_deep_extend, tbl_get

FMT: list[tuple[str, Any, str]] = [
    ("Hello {name}", {"name": "x"}, "Hello x"),
    ("{a}{b}", {"a": 1, "b": 2.0}, "12.0"),
    ("{missing} stays", {}, "{missing} stays"),
    ("{missing} stays", None, "{missing} stays"),
    ("{my_key}", {"my_key": 1}, "{my_key}"),
    ("{no}", {"no": False}, "false"),
    ("{yes}", {"yes": True}, "true"),
    ("{nil}", {"nil": None}, "{nil}"),
    ("{1}", ["a"], "{1}"),
    ("{x}", {"x": "{y}", "y": "z"}, "{y}"),
    ("{x} %d \\1", {"x": "\\2 %1"}, "\\2 %1 %d \\1"),
    ("{é}", {"é": 1}, "{é}"),
    ("{x}", {"x": 1e300}, "1e+300"),
]


@pytest.mark.parametrize(("template", "vars", "text"), FMT)
def test_fmt_fills_a_template(template: str, vars: Any, text: str) -> None:
    assert fmt(template, vars) == text


@pytest.mark.parametrize(("template", "vars"), [(1, {}), (None, {}), ("x", "y"), ("x", 1)])
def test_fmt_refuses_what_is_no_template_and_no_table(template: Any, vars: Any) -> None:
    with pytest.raises(BadArgument, match=r"cru\.fmt"):
        fmt(template, vars)


INSPECT: list[tuple[Any, str]] = [
    (None, "nil"),
    (1, "1"),
    (1.0, "1.0"),
    (True, "true"),
    ('a"b\n\0', '"a\\"b\\n\\000"'),
    ({}, "{}"),
    ([1, "a"], '{ 1, "a" }'),
    ({"a": 1, "b c": 2, "end": 3, 1: 4}, '{\n  [1] = 4,\n  a = 1,\n  ["b c"] = 2,\n  ["end"] = 3\n}'),
    ({"a": {"b": [1]}}, "{\n  a = {\n    b = { 1 }\n  }\n}"),
    ([{"a": 1}], "{\n  {\n    a = 1\n  }\n}"),
    (print, "<function>"),
]


@pytest.mark.parametrize(("value", "text"), INSPECT)
def test_inspect_shows_a_value(tmp_path: Path, value: Any, text: str) -> None:
    assert inspect(value) == text


def test_inspect_stops_at_its_depth_and_indents_as_told() -> None:
    assert inspect({"a": {"b": 1}}, {"max_depth": 1, "indent": " "}) == "{\n a = {...}\n}"
    endless: list[Any] = []
    endless.append(endless)
    assert "{...}" in inspect(endless)
    with pytest.raises(BadArgument, match="max_depth"):
        inspect(1, {"max_depth": "deep"})


PASSES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (check.string, ("x", "title")),
    (check.number, (1.5, "n", {"min": 1, "max": 2})),
    (check.boolean, (False, "b")),
    (check.table, ({}, "t")),
    (check.table, ([1], "t")),
    (check.func, (print, "f")),
    (check.one_of, ("a", ["a", "b"], "mode")),
]


@pytest.mark.parametrize(("function", "args"), PASSES)
def test_check_gives_back_what_passes(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    assert function(*args) == args[0]


FAILS: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (check.string, (1, "title"), "title: expected string, got number"),
    (check.string, (None, "title"), "title: expected string, got nil"),
    (check.number, ("1", "n"), "n: expected number, got string"),
    (check.number, (True, "n"), "n: expected number, got boolean"),
    (check.number, (0, "n", {"min": 1}), "n: must be >= 1, got 0"),
    (check.number, (7, "n", {"max": 5}), "n: must be <= 5, got 7"),
    (check.boolean, (0, "b"), "b: expected boolean, got number"),
    (check.table, (print, "t"), "t: expected table, got function"),
    (check.func, ({}, "f"), "f: expected function, got table"),
    (check.one_of, ("c", ["a", "b"], "mode"), "mode: must be one of [a, b], got c"),
    (check.one_of, (True, [1, 2], "mode"), "mode: must be one of [1, 2], got true"),
]


@pytest.mark.parametrize(("function", "args", "message"), FAILS)
def test_check_names_what_is_wrong(function: Callable[..., Any], args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(BadArgument) as caught:
        function(*args)
    assert caught.value.message == message


@pytest.mark.parametrize("function", [check.string, check.number, check.boolean, check.table, check.func])
def test_an_optional_check_lets_nil_pass_and_nothing_else(function: Callable[..., Any]) -> None:
    assert function(None, "x", {"optional": True}) is None
    assert check.one_of(None, [1], "x", {"optional": True}) is None
    with pytest.raises(BadArgument):
        function(object(), "x", {"optional": True})


def test_an_unknown_option_is_reported_with_the_closest_known_one(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert room(check.string, "x", "title", {"optoinal": True}) == "x"
    assert room.notices()[-1] == "cru.check.string: unknown option `optoinal`; did you mean `optional`?"


def test_settings_are_the_defaults_with_what_is_given(tmp_path: Path) -> None:
    room, defaults = Room(tmp_path), {"limit": 20, "tag": "DONE", "loud": False}
    assert room(check.settings, None, defaults) == defaults
    assert room(check.settings, {"limit": 0.5, "loud": True}, defaults) == {"limit": 0.5, "tag": "DONE", "loud": True}
    assert defaults["limit"] == 20
    assert room(check.settings, {"limti": 5, "colour": 1}, defaults) == defaults
    assert room.notices()[-2:] == [
        "[plugins.demo] limti: no such setting; did you mean `limit`?",
        "[plugins.demo] colour: no such setting; settings are limit, loud, tag",
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"limit": "5"}, "limit: expected number, got string"),
        ({"limit": True}, "limit: expected number, got boolean"),
        ({"limit": -1}, "limit: must be 0 or more, got -1"),
        ({"limit": float("nan")}, "limit: must be 0 or more, got nan"),
        ({"loud": 1}, "loud: expected boolean, got number"),
        ({"tag": ["x"]}, "tag: expected string, got table"),
    ],
)
def test_a_setting_of_another_type_is_refused(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadArgument) as caught:
        Room(tmp_path)(check.settings, given, {"limit": 20, "tag": "DONE", "loud": False})
    assert caught.value.message == f"[plugins.demo] {message}"


EXTEND: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("force", [{"a": 1}, {"a": 2}], {"a": 2}),
    ("keep", [{"a": 1}, {"a": 2}], {"a": 1}),
    ("force", [{"a": {"b": 1}}, {"a": {"c": 2}}], {"a": {"b": 1, "c": 2}}),
    ("keep", [{"a": {"b": 1}}, {"a": {"b": 9, "c": 2}}], {"a": {"b": 1, "c": 2}}),
    ("force", [{"a": [1, 2]}, {"a": [3]}], {"a": [3]}),
    ("keep", [{"a": False}, {"a": True}], {"a": False}),
    ("force", [{"a": {"b": 1}}, {"a": 1}], {"a": 1}),
    ("force", [{}, None, []], {}),
]


@pytest.mark.parametrize(("behaviour", "tables", "result"), EXTEND)
def test_tbl_deep_extend_merges(behaviour: str, tables: list[Any], result: dict[str, Any]) -> None:
    assert tbl_deep_extend(behaviour, *tables) == result


def test_tbl_deep_extend_leaves_its_arguments_alone() -> None:
    first: dict[str, Any] = {"a": {"b": 1}}
    tbl_deep_extend("force", first, {"a": {"c": 2}})["a"]["d"] = 3
    assert first == {"a": {"b": 1}}
    with pytest.raises(BadArgument, match="force"):
        tbl_deep_extend("sideways", {})
    with pytest.raises(BadArgument, match="table"):
        tbl_deep_extend("keep", "x")  # type: ignore[arg-type]


def test_tbl_get_follows_a_path_and_counts_arrays_from_one() -> None:
    assert tbl_get({"a": [{"b": 3}]}, "a", 1, "b") == 3
    assert tbl_get({"a": [1]}, "a", 0) is None
    assert tbl_get({"a": [1]}, "a", 2) is None
    assert tbl_get({"a": 1}, "a", "b", "c") is None
    assert tbl_get({"a": False}, "a") is False
    assert tbl_get(None, "a") is None
    with pytest.raises(BadArgument):
        tbl_get("text", 1)


@pytest.mark.parametrize("value", [None, True, 1, 1.0, -0.5, "é\n", [], {}, [1, [2]], {"a": {"b": [None]}}, 2**60])
def test_json_round_trips(value: Any) -> None:
    text = json.encode(value)
    assert json.decode(text) == value
    assert type(json.decode(text)) is type(value)


def test_json_encodes_empty_tables_and_arrays_apart() -> None:
    assert json.encode({"a": {}}) == '{"a":{}}'
    assert json.encode({"a": json.array({})}) == '{"a":[]}'
    assert json.encode({1: "a"}) == '{"1":"a"}'
    assert json.array([1]) == [1]
    with pytest.raises(BadArgument, match="table with keys"):
        json.array({"a": 1})


def loop() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


@pytest.mark.parametrize(
    "value", [print, {"a": print}, object(), float("nan"), float("inf"), loop(), {1.5: 1}, "\ud800"]
)
def test_json_refuses_what_is_not_data(value: Any) -> None:
    with pytest.raises(BadArgument, match=r"cru\.json\.encode"):
        json.encode(value)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "nul", "'a'", "1 2", "[" * 100_000, None, 1])
def test_json_refuses_what_is_not_json(text: Any) -> None:
    with pytest.raises(BadArgument, match=r"cru\.json\.decode"):
        json.decode(text)


def test_outside_of_a_session_a_name_that_needs_one_says_so() -> None:
    with pytest.raises(NoSession):
        toast("hello")


def test_fmt_gives_no_text_without_bounds() -> None:
    with pytest.raises(BadArgument, match="16 Mi characters"):
        fmt("{a}" * 1000, {"a": "x" * 100_000})
