"""oq: formats and the jq language."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import toons
from hypothesis import given, settings
from hypothesis import strategies as st

from cru.core.api.host import BadArgument
from cru.core.base.process import forked
from cru.features.formats import convert, oq

DETECT: list[tuple[str, str]] = [
    ('{"a": 1}', "json"),
    ("[1, 2]", "json"),
    ("[1]", "json"),
    ('["a"]', "json"),
    ("", "json"),
    ("hello", "json"),
    ("[section]\na = 1", "toml"),
    ("[section]", "toml"),
    ("# note\n[[rows]]\na = 1", "toml"),
    ("a = 1", "toml"),
    ('"quoted key" = true', "toml"),
    ("title = 'x'\n\n[owner]\nname = 'y'", "toml"),
    ("---\na: 1", "yaml"),
    ("- a\n- b", "yaml"),
    ("text: |\n  more", "yaml"),
    ("a:\n  b: 1", "yaml"),
    ("a: 1\nb: two", "toon"),
    ("tags[2]: a,b", "toon"),
    ("[2]{id,name}:\n  1,a\n  2,b", "toon"),
    ("rows[1]{a}:\n  1\nk: v", "toon"),
    ("- x\nrows[1]{a{b}}:\n  1", "toon"),
    ("- x\nrows[1:]{a}:\n  k: 1", "toon"),
]


@pytest.mark.parametrize(("text", "format"), DETECT)
def test_a_format_is_known_by_its_looks(text: str, format: str) -> None:
    assert oq.detect(text) == format


PARSE: list[tuple[str, Any]] = [
    ('{"a": [1, 2.5, null]}', {"a": [1, 2.5, None]}),
    ("a = 1\nd = 2020-01-02\n[b]\nc = 'x'", {"a": 1, "d": "2020-01-02", "b": {"c": "x"}}),
    ("a: 1\nb: two", {"a": 1, "b": "two"}),
    ("[2]{id,name}:\n  1,a\n  2,b", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]),
]


@pytest.mark.parametrize(("text", "value"), PARSE)
def test_a_text_is_parsed_in_the_format_that_it_has(text: str, value: Any) -> None:
    assert oq.parse(text) == value


@pytest.mark.parametrize(
    ("text", "format"),
    [("{", "json"), ("a = ", "toml"), ("a[2]: 1", "toon"), ("x", "toml"), ("[" * 5000, "json"), ("", "json")],
)
def test_a_text_that_is_not_what_it_is_called_raises(text: str, format: str) -> None:
    with pytest.raises(BadArgument, match=f"not {format}"):
        oq.parse_as(text, format)


@pytest.mark.parametrize("format", ["xml", "", None, 1])
def test_an_unknown_format_raises(format: Any) -> None:
    for work in (lambda: oq.parse_as("x", format), lambda: oq.convert({}, format)):
        with pytest.raises(BadArgument) as caught:
            work()
        assert caught.value.message == f"Unknown format: {format}"


def test_values_are_written_in_every_format() -> None:
    value = {"name": "x", "tags": ["a", "b"], "n": None}
    assert oq.json(value) == '{"name":"x","tags":["a","b"],"n":null}'
    assert json.loads(oq.json_pretty(value)) == value
    assert oq.json_pretty([1]) == "[\n  1\n]"
    assert oq.toml(value) == 'name = "x"\ntags = ["a", "b"]\nn = "null"\n'
    assert oq.toml(None) == "null"
    assert oq.toon(value) == "name: x\ntags[2]: a,b\nn: null"


def test_convert_takes_a_value_or_a_text() -> None:
    assert oq.convert({"a": 1}, "toml") == "a = 1\n"
    assert oq.convert('{"a": {"b": [1]}}', "toon") == "a:\n  b[1]: 1"
    assert oq.convert("a = 1", "json") == '{"a":1}'


@pytest.mark.parametrize("function", [oq.json, oq.json_pretty, oq.toml, oq.toon, oq.yaml])
def test_what_is_not_data_is_not_written(function: Any) -> None:
    for value in (print, {"f": print}, float("nan")):
        with pytest.raises(BadArgument):
            function(value)


def test_toml_needs_a_table_with_keys() -> None:
    with pytest.raises(BadArgument, match="table with keys"):
        oq.toml([1])


def test_format_is_toon_and_leaves_plain_text_alone() -> None:
    assert oq.format({"a": 1}, {"tool": "read"}) == "a: 1"
    assert oq.format("text: as it is\n") == "text: as it is\n"
    assert oq.format([{"a": 1}, {"a": 2}]) == "[2]{a}:\n  1\n  2"


@pytest.mark.slow
def test_yaml_is_read_and_written() -> None:
    assert oq.yaml({"b": [1], "a": "é"}) == "b:\n- 1\na: é\n"
    assert oq.parse("---\na: 2020-01-02\n1: [x]\n") == {"a": "2020-01-02", "1": ["x"]}
    with pytest.raises(BadArgument, match="not yaml"):
        oq.parse_as("a: [", "yaml")
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
    with pytest.raises(BadArgument, match="values"):
        oq.parse_as(bomb, "yaml")


TOON: list[tuple[Any, str]] = [
    ({}, ""),
    ({"a": {}}, "a:"),
    ({"a": []}, "a: []"),
    ([], "[]"),
    ({"k": ["a", "b"]}, "k[2]: a,b"),
    ({"k": [{"id": 1, "name": "x"}, {"name": "y,z", "id": 2}]}, 'k[2]{id,name}:\n  1,x\n  2,"y,z"'),
    ({"k": [[1, 2], []]}, "k[2]:\n  - [2]: 1,2\n  - [0]:"),
    ({"k": [{"rows": [{"a": 1}], "b": 2}]}, "k[1]:\n  - rows[1]{a}:\n      1\n    b: 2"),
    ({"k": [1, {"a": 1}, "x", {}]}, "k[4]:\n  - 1\n  - a: 1\n  - x\n  -"),
    ({"my key": "a:b"}, '"my key": "a:b"'),
    (["", " x", "true", "1", "-", "a\nb"], '[6]: ""," x","true","1","-","a\\nb"'),
    ([1.0, -0.0, 1e21, 1e-7, 0.5], "[5]: 1,0,1e+21,1e-7,0.5"),
    ([[{"a": 1}, {"a": 2}]], "[1]:\n  - [2]:\n    - a: 1\n    - a: 2"),
    ([{"a": 1, "b": {"c": 2}}, {"a": 3, "b": {"c": 4}}], "[2]{a,b{c}}:\n  1,2\n  3,4"),
    ({"x": {"a": 1}, "y": {"a": 2}}, "[2:]{a}:\n  x: 1\n  y: 2"),
    ("#\x1f", '"#\\u001f"'),
    ("plain", "plain"),
    (None, "null"),
]


@pytest.mark.parametrize(("value", "text"), TOON)
def test_toon_is_written_as_its_specification_says(value: Any, text: str) -> None:
    assert oq.toon(value) == text


DEEP = [
    "".join("  " * depth + "a:\n" for depth in range(2000)),
    "[1]:\n" + "".join("  " * depth + "- [1]:\n" for depth in range(1, 2000)),
    "[1]" + "{a" * 2000 + "}" * 2000 + ":\n  1",
]


@pytest.mark.parametrize("text", DEEP)
def test_deeply_nested_toon_is_refused(text: str) -> None:
    with pytest.raises(BadArgument, match=r"not toon: .*deep"):
        convert.read_unbounded("cru.oq.parse_as", text, "toon")


READ: list[tuple[str, Any]] = [
    ("", {}),
    ("[0]:", []),
    ("a[0]:", {"a": []}),
    ("# a comment\na: 1", {"a": 1}),
    ("a[2|]: x|y", {"a": ["x", "y"]}),
    ("a: 1000000000000000000000\nb: 1e-07\nc: 05", {"a": 10**21, "b": 1e-7, "c": "05"}),
]


@pytest.mark.parametrize(("text", "value"), READ)
def test_other_spellings_of_toon_are_read(text: str, value: Any) -> None:
    assert oq.parse_as(text, "toon") == value


@pytest.mark.parametrize(
    "text",
    [
        "a: 1e999",
        "a: 1\na: 2",
        "a[3]: 1,2",
        "a[1]{x,y}:\n  1",
        "a:\n   b: 1",
        "a:\n\tb: 1",
        'a: "x',
        'a: "\\q"',
        "a: 1\n    b: 2",
        "a[2]:\n  - 1\n\n  - 2",
    ],
)
def test_broken_toon_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(BadArgument, match=r"not toon: line \d"):
        oq.parse_as(text, "toon")


ODD = ["null", "true", "1", "1.0", "-", "- a", "a: b", "a.b", "2020-01-02", "1:30", "0x1f", "<<", "=", "~", "[", "#x", " x", "''",
       '"', "\\", "a\nb", "\r\n", "\x85", "\u2028", "1e3", "1_0", ".inf", "yes", "..."]  # fmt: skip
TEXT = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(ODD)
NUMBER = st.integers(-(10**25), 10**25) | st.floats(allow_nan=False, allow_infinity=False)


def data(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
        max_leaves=12,
    )


PLAIN = st.booleans() | NUMBER | TEXT
DATA = data(st.none() | PLAIN)


def is_same(one: Any, other: Any, order: Callable[[dict[str, Any]], list[str]] = list) -> bool:
    """Equal, of the same kinds, and with the keys in this order: 1 is neither true nor "1", but it is 1.0, as in JSON."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and order(one) == order(other)
            and all(is_same(one[key], other[key], order) for key in one)
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(is_same, one, other, [order] * len(one)))
    return one == other and isinstance(one, bool) == isinstance(other, bool)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["json", "yaml", "toon"])
@settings(deadline=None)
@given(value=DATA)
def test_what_was_written_is_read_back(format: str, value: Any) -> None:
    text = getattr(oq, format)(value)
    assert is_same(oq.parse_as(text, format), value), text


@pytest.mark.slow
@settings(deadline=None, max_examples=3000)
@given(value=DATA)
def test_what_was_written_as_toon_is_read_by_another_library(value: Any) -> None:
    text = oq.toon(value)
    assert is_same(toons.loads(text), value), text


@pytest.mark.slow
@settings(deadline=None)
@given(value=st.dictionaries(TEXT, data(PLAIN), max_size=4))
def test_what_was_written_as_toml_is_read_back(value: Any) -> None:
    text = oq.toml(value)
    assert is_same(oq.parse_as(text, "toml"), value, sorted), text  # TOML has tables behind plain values


@pytest.mark.slow
@settings(deadline=None)
@given(value=DATA)
def test_a_filter_gives_what_it_was_given(value: Any) -> None:
    assert is_same(oq.query(value, "."), value)


QUERY: list[tuple[Any, str, Any]] = [
    ({"a": {"b": 1}}, ".a.b", 1),
    ([1, 2, 3], ".[1]", 2),
    ([1, 2], ".[]", [1, 2]),
    ([], ".[]", []),
    ([[1]], ".[]", [1]),
    ([{"n": 1}, {"n": 5}], "map(select(.n > 2) | .n)", [5]),
    ({"b": 1, "a": 2}, "keys", ["a", "b"]),
    ({"a": None}, '.a // "none"', "none"),
    ({"a": "xyz"}, '.a | test("^x")', True),
    ([1, 2], "{count: length, first: .[0]}", {"count": 2, "first": 1}),
    ({1: "x"}, '.["1"]', "x"),
    (None, "[env, $ENV]", [{}, {}]),
    ({"def": 1}, ".def", 1),
    (1, "debug", 1),
    (1, "[inputs]", []),
    (5, "def fac: if . < 2 then 1 else . * (. - 1 | fac) end; fac", 120),
    (None, "100000000000000000000000", 10**23),
    ([0.1, 1.5], ".", [0.1, 1.5]),
]


@pytest.mark.sample(10)
@pytest.mark.parametrize(("value", "filter", "result"), QUERY)
def test_query_speaks_jq(value: Any, filter: str, result: Any) -> None:
    assert oq.query(value, filter) == result


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "filter",
    [".[", "nope", "halt", "halt_error", '"x" | halt_error(1)', "error(\"x\")", ".a.b", "def f: 1 + f; f", "", None,
     "nan", "{(1): 2} | tobytes", '"x" | tobytes', 'import "m" as m; .', 'include "m"; .', 'import "d" as $d; $d', "input_filename"]
)  # fmt: skip
def test_a_filter_that_fails_raises_and_never_ends_the_process(filter: Any) -> None:
    with pytest.raises(BadArgument, match=r"cru\.oq\.query"):
        print(oq.query([1], filter))


@pytest.mark.parametrize("code", ["[" * 100_000, "(" * 201, "." * 20_000])
def test_a_filter_that_would_overflow_the_stack_is_refused(code: str) -> None:
    with pytest.raises(BadArgument, match="too long"):
        oq.query(1, code)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "why"),
    [
        (lambda: oq.query({}, "last(range(1e12))"), "took longer than"),
        (lambda: oq.query({}, "[range(1e12)]"), "memory|took longer than"),
        (lambda: oq.parse_as("a." * 200_000 + "a = 1", "toml"), "nested more than 64 levels deep"),
    ],
)
def test_what_would_not_end_is_ended(monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any], why: str) -> None:
    monkeypatch.setattr(forked, "SECONDS", 0.5)
    with pytest.raises(BadArgument, match=why):
        work()


@pytest.mark.slow
def test_large_data_comes_back_from_the_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "SECONDS", 60)
    value = [{"n": n, "text": "\u00e9" * 20} for n in range(500)]
    for name in ("yaml", "toon"):
        assert oq.parse_as(oq.convert(value, name), name) == value
    assert oq.query(value, "map(.n) | add") == sum(range(500))
    with pytest.raises(BadArgument, match="not yaml"):
        oq.parse_as("[" * 10_000, "yaml")
