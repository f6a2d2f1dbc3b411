"""YAML of other people's: one kind of error, and no more work than its length is worth."""

from __future__ import annotations

import pytest

from cru.files.yaml_text import BadYaml, parse_yaml

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
