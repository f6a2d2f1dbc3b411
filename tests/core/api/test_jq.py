"""Filters as jq 1.7.1 answers them. `tests/data/oq/jq-1.7.1.jsonl` has what libjq 1.7.1 (from the package jq 1.8.0 on PyPI) made of each
filter; `differs` names the row of docs/oq.md that explains another answer of ours."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import jaq
import pytest
from tests.kit.growth import assert_linear

from cru.core.api.host import BadArgument
from cru.core.api.jq import compile_filter

ROOT = Path(__file__).parents[3]
CASES = [json.loads(line) for line in (ROOT / "tests/data/oq/jq-1.7.1.jsonl").read_text().splitlines()]
PAGE = (ROOT / "docs/oq.md").read_text()


def answer(filter: str, text: str) -> str | None:
    """Return the results, each as JSON on a line of its own; None for an error."""
    try:
        return compile_filter("oq", filter).text(text.encode(), text=True, vars={"ENV": {}})
    except (BadArgument, jaq.JaqError):
        return None


def in_order(value: Any) -> Any:
    """Return a value that is equal to another one only if the keys of objects have the same order."""
    if isinstance(value, dict):
        return {"keys": [(key, in_order(inner)) for key, inner in value.items()]}
    return [in_order(item) for item in value] if isinstance(value, list) else (type(value) is bool, value)


def is_as_recorded(case: dict[str, Any]) -> bool:
    results = answer(case["filter"], case["input"])
    if results is None or "error" in case:
        return results is None and "error" in case
    try:
        values = [json.loads(line, parse_constant=str) for line in results.split("\n") if line]
    except ValueError:
        return False
    return [in_order(value) for value in values] == [in_order(value) for value in case["results"]]


def test_filters_answer_as_jq_does_unless_the_page_says_otherwise() -> None:
    assert len(CASES) > 500
    wrong = [case for case in CASES if is_as_recorded(case) == ("differs" in case)]
    assert wrong == []


def test_the_page_has_a_row_for_each_difference() -> None:
    rows = set(re.findall(r"<!-- (\w+) -->", PAGE))
    assert rows == {case["differs"] for case in CASES if "differs" in case}


@pytest.mark.sample(1)
@pytest.mark.parametrize("filter", ["del(.[].a)", "del(.[0])", "del(.[] | select(.a > 5))", "map(del(.a))"])
def test_deleting_costs_no_more_than_the_document_is_long(filter: str) -> None:
    def prepare(size: int) -> Any:
        text = json.dumps([{"a": number, "b": 1} for number in range(size)]).encode()
        return partial(compile_filter("oq", filter).text, text, text=True, vars={"ENV": {}})

    assert_linear(prepare, 8_000)
