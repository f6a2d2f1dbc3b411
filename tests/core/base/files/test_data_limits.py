"""JSON and TOML of strangers: refused by depth and count before a parser runs, in time proportional to the length."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.kit.growth import assert_linear

from cru.core.base.config.ignored import drop_forbidden, restrict_untrusted
from cru.core.base.config.layers import ConfigError, Layer, merge_layers, read_layer
from cru.core.base.config.positions import line_of
from cru.core.base.files import MAX_DEPTH, MAX_TOML_DEPTH, MAX_VALUES, decode_json, parse_toml, read_json
from cru.core.base.files.nesting import BadToml

DEEP = f"nested more than {MAX_TOML_DEPTH} levels deep"
MANY = f"it holds more than {MAX_VALUES:,} values"
REFUSED = {
    "a key of many parts": (".".join("a" * 50_000) + " = 1", DEEP),
    "a key just too deep": (".".join("a" * (MAX_TOML_DEPTH + 2)) + " = 1", DEEP),
    "a header of many parts": ("[" + ".".join("a" * 500) + "]", DEEP),
    "lists": ("x = " + "[" * 100 + "]" * 100, DEEP),
    "tables in lists": ("x = " + "[{a = " * 100, DEEP),
    "keys in tables": ("x = " + "{a.a.a.a.a.a = " * 15 + "1" + "}" * 15, DEEP),
    "behind a string that ends in a quote": ('x = ["""a"""", ' + "[" * 100, DEEP),
    "behind a string that ends in two": ("x = ['''a''''', " + "[" * 100, DEEP),
    "behind an escaped quote": ('x = ["a\\"", ' + "[" * 100, DEEP),
    "behind a comment with a quote": ('x = [ # "\n' + "[" * 100, DEEP),
    "tables": ("\n".join(f"[t{n}]" for n in range(60_000)), MANY),
    "keys": ("\n".join(f"k{n} = 1" for n in range(60_000)), MANY),
    "numbers": ("x = [" + "1," * 60_000 + "]", MANY),
    "a long number": ("x = " + "9" * 10_000, "not TOML: Exceeds the limit (4300 digits)"),
    "no TOML": ("x = 1\ny = ", "not TOML: Invalid value"),
}
READ = {
    "as deep as may be": ".".join("a" * MAX_TOML_DEPTH) + " = 1",
    "brackets in strings": 'x = "' + "[{." * 5_000 + '"',
    "brackets in long strings": 'x = """\n' + '["{. ' * 5_000 + '"""',
    "brackets in plain strings": "x = '" + "[{.\\" * 5_000 + "'",
    "brackets in comments": "x = 1 # " + "[{." * 5_000,
    "dots in many keys": "\n".join(f"a{n}.b.c = 1.5" for n in range(4_000)),
    "many lists beside each other": "x = [" + "[1]," * 1_500 + "]",
    "a byte order mark": "\ufeffx = 1",
}


@pytest.mark.parametrize("name", REFUSED)
def test_toml_that_costs_too_much_is_refused(name: str) -> None:
    text, problem = REFUSED[name]
    with pytest.raises(BadToml) as caught:
        parse_toml(text)
    assert caught.value.problem.startswith(problem)


@pytest.mark.parametrize("name", READ)
def test_toml_that_only_looks_expensive_is_read(name: str) -> None:
    assert parse_toml(READ[name]) == tomllib.loads(READ[name].removeprefix("\ufeff"))


@pytest.mark.parametrize("name", ["a key of many parts", "tables", "lists", "a string"])
def test_toml_is_refused_in_time(name: str) -> None:
    pieces: dict[str, Callable[[int], str]] = {
        "a key of many parts": lambda size: "a." * (size // 2) + "a = 1",
        "tables": lambda size: "[t]\n" * (size // 4),
        "lists": lambda size: "x = [" + "[]," * (size // 3),
    }
    make = pieces.get(name, _string_of_brackets)

    def work(size: int) -> Callable[[], object]:
        text = make(size)
        return lambda: _outcome(lambda: parse_toml(text))

    assert_linear(work, 400_000)


def _string_of_brackets(size: int) -> str:
    return 'x = "' + '\\"[' * (size // 3) + '"'


def _outcome(read: Callable[[], object]) -> str:
    try:
        return str(read())
    except ValueError as error:
        return str(error)


JSON = {
    "deep": (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested more than"),
    "deeper": (b'{"a":' * 990 + b"1" + b"}" * 990, "nested more than"),
    "far too deep": (b"[" * 1_000_000, "nested more than"),
    "behind an escaped quote": (b'["\\"", ' + b"[" * 200 + b"]" * 201, "nested more than"),
    "no UTF-8": (b'"\xff"', "not UTF-8"),
    "a long number": (b"9" * 10_000, "out of range"),
    "a large exponent": (b"1e999999999", "out of range"),
    "half of a character": (b'"\\ud800"', "truncated"),
    "UTF-16": ("{}".encode("utf-16"), "malformed"),
    "empty": (b"", "truncated"),
}


@pytest.mark.parametrize("name", JSON)
def test_json_that_cannot_be_read_is_one_kind_of_error(tmp_path: Path, name: str) -> None:
    data, problem = JSON[name]
    (tmp_path / "a.json").write_bytes(data)
    with pytest.raises(msgspec.DecodeError, match=problem):
        decode_json(data, object)
    with pytest.raises(msgspec.DecodeError, match=problem):
        read_json(tmp_path / "a.json", object)


@pytest.mark.parametrize(
    "data", [b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, b'["' + b"[{" * 9_000 + b'"]', b"[" + b"[]," * 9_000 + b"1]"]
)
def test_json_that_only_looks_deep_is_read(data: bytes) -> None:
    assert decode_json(data, object) == msgspec.json.decode(data)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"[1, 2]")
    with pytest.raises(OSError, match="larger than"):
        read_json(tmp_path / "a.json", object, limit_bytes=3)


# settings --------------------------------------------------------------------------------------------------------------------------------

SETTINGS: dict[str, Callable[[int], str]] = {
    "unknown keys": lambda count: "\n".join(f"k{n} = 1" for n in range(count)),
    "unknown tables": lambda count: "\n".join(f"[t{n}]" for n in range(count // 11)),
    "rules that count only at home": lambda count: "[permissions]\nallow = [" + '"outside_sandbox:x",' * count + "]",
    "a long key": lambda count: "a" * (40 * count) + " = 1",
    "escapes in a key": lambda count: '"' + "\\u0041" * (6 * count) + '" = 1',
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", SETTINGS)
def test_what_is_wrong_with_settings_is_found_in_time_and_said_briefly(tmp_path: Path, name: str) -> None:
    texts: list[str] = []

    def work(count: int) -> Callable[[], object]:
        (tmp_path / "config.toml").write_text(SETTINGS[name](count))
        return judge

    def judge() -> None:
        layer = read_layer("project", tmp_path / "config.toml")
        assert layer is not None
        texts.append(
            "\n".join(str(problem) for step in (drop_forbidden, restrict_untrusted) for problem in step(layer)[1])
        )
        with pytest.raises(ConfigError) as caught:
            merge_layers([], [Layer("user", {**layer.data, "x": 1}, layer.file, layer.text)])
        texts.append(str(caught.value))

    assert_linear(work, 19_000)
    assert max(map(len, texts)) < 20_000


def test_the_lines_of_many_keys_are_looked_up_in_time() -> None:
    def work(count: int) -> Callable[[], object]:
        text = "\n".join(f"a.k{n} = 1" for n in range(count))
        return lambda: [line_of(text, ("a", f"k{n}")) for n in range(0, count, 2)]

    assert_linear(work, 8_000)
