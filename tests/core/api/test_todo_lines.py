"""Which lines of a list or a reply are todos."""

from __future__ import annotations

import pytest

from cru.core.api.session_view import TODO, _lines_outside_code


@pytest.mark.parametrize(
    ("text", "todos"),
    [
        ("- [ ] a\n* [x] b", [1, 2]),
        ("```\n- [ ] a\n```\n- [ ] b", [4]),
        ("~~~md\n- [ ] a\n~~~\n- [ ] b", [4]),
        ("````\n```\n- [ ] a\n```\n````\n- [ ] b", [6]),
        ("```\n- [ ] a\n~~~\n- [ ] b\n```", []),
        ("- [ ] a\n```\n- [ ] b", [1, 3]),  # nothing closes it: a fence does not make a list disappear
        ("```\nx\n```\n```\n- [ ] a", [5]),
        ("- [ ] a ``` b\n- [ ] c", [1, 2]),
        ("```text```\n- [ ] a\n``` not the end\n- [ ] b", [2, 4]),
        ("", []),
    ],
)
def test_todos_are_lines_outside_of_fenced_code(text: str, todos: list[int]) -> None:
    assert [number for number, line in sorted(_lines_outside_code(text)) if TODO.match(line)] == todos
