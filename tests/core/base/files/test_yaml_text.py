"""YAML of other people's: one kind of error, and no more work than its length is worth."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cru.core.base.files.yaml_text import SHORT, BadYaml, parse_yaml, parse_yaml_documents, write_yaml

BOMB = "a0: &a0 {x: 1}\n" + "".join(
    f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 9)}]}}\n" for level in range(1, 30)
)
BAD = {
    "a tag's value, looked up": ("a: !!bool x", "does not fit its tag"),
    "a tag without a value": ("a: !!int ''", "does not fit its tag"),
    "a date that is none": ("a: !!timestamp x", "does not fit its tag"),
    "a list as a key": ("? [a]\n: 1", "unhashable"),
    "nested": ("[" * 5000, "nested too deep"),
    "nested in a short text": ("[" * 2000, "did not find expected node content"),
    "merge keys that multiply": (BOMB, "merge keys bring too much"),
    "a number with a tag that is none in YAML 1.2": ("a: !!int 1_000", "does not fit its tag"),
    "a word of YAML 1.1 with a tag": ("a: !!bool yes", "does not fit its tag"),
    "a tab as indentation": ("a:\n\tb: 1", "cannot start any token"),
    "a number without end": ("a: " + "9" * 5000, "integer string conversion"),
    "two documents": ("a: 1\n---\nb: 2\n", "but found another document"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", BAD)
def test_every_mistake_is_one_kind_of_error(name: str) -> None:
    text, problem = BAD[name]
    with pytest.raises(BadYaml, match=problem):
        parse_yaml(text)


def test_merge_keys_and_aliases_count_as_they_are_meant() -> None:
    text = "base: &base {a: 1, b: 2}\nother: {<<: [*base, {c: 3}], b: 5}\nagain: *base\n"
    assert parse_yaml(text) == {
        "base": {"a": 1, "b": 2},
        "other": {"a": 1, "b": 5, "c": 3},
        "again": {"a": 1, "b": 2},
    }


def test_a_mistake_has_its_line() -> None:
    with pytest.raises(BadYaml) as caught:
        parse_yaml("a: 1\nb: !what 2\n")
    assert caught.value.line == 2


SCALARS: dict[str, object] = {
    # texts in YAML 1.2, something else in YAML 1.1
    "on": "on", "off": "off", "yes": "yes", "No": "No", "y": "y", "22:22": "22:22", "1:30:00.5": "1:30:00.5", "1_000": "1_000",
    "0b101": "0b101", "2024-01-31": "2024-01-31", "2024-01-31T10:00:00Z": "2024-01-31T10:00:00Z", "=": "=", "-0x1F": "-0x1F",
    "0o8": "0o8", "tRUE": "tRUE", "nUll": "nUll", "1e": "1e", ".": ".", "+": "+", "-.nan": "-.nan", "0X1F": "0X1F", "1.2.3": "1.2.3",
    # the core schema
    "true": True, "True": True, "FALSE": False, "null": None, "~": None, "": None, "Null": None, "017": 17, "08": 8, "+12": 12, "-0": 0,
    "0o17": 15, "0x1F": 31, "1e3": 1000.0, "1E-2": 0.01, "1.": 1.0, ".5": 0.5, "-.5e+1": -5.0, "+.inf": math.inf, "-.INF": -math.inf,
}  # fmt: skip


@pytest.mark.parametrize("is_long", [False, True], ids=["loader in C", "loader in Python"])
def test_scalars_are_those_of_the_core_schema(is_long: bool) -> None:
    filler = f"# {'x' * SHORT}\n" if is_long else ""
    text = filler + "".join(f"- {scalar}\n" for scalar in SCALARS)
    values = parse_yaml(text)
    assert isinstance(values, list)
    assert [(value, type(value)) for value in values] == [(value, type(value)) for value in SCALARS.values()]
    assert math.isnan(parse_yaml(f"{filler}.nan"))  # type: ignore[arg-type]
    assert parse_yaml(f"{filler}on: push\n22:22: x\n") == {"on": "push", "22:22": "x"}
    assert parse_yaml(f"{filler}a:\t1 \nb: [1,\t2]\n") == {"a": 1, "b": [1, 2]}


def test_what_is_written_reads_the_same_by_either_version() -> None:
    import yaml

    texts = [*SCALARS, "1e3", "0o17", "<<", ".nan", "a\nb\n", " a\n b", "\na", "a \n", "a: b", "x" * 200]
    value = {"keys": {text: 1 for text in texts}, "values": texts, "numbers": [1e22, 1.5, -3, 10**30, True, None]}
    written = write_yaml(value)
    assert parse_yaml(written) == value
    assert yaml.safe_load(written) == value


def test_texts_of_several_lines_are_written_as_such() -> None:
    assert write_yaml({"run": "make\nmake test\n", "name": "x " * 60 + "y"}) == (
        f"run: |\n  make\n  make test\nname: {'x ' * 60}y\n"
    )


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
                    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=8))  # fmt: skip
def test_plain_data_survives_a_round_trip(value: object) -> None:
    assert list(parse_yaml_documents(write_yaml(value))) == [value], json.dumps(value)
