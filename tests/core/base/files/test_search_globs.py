"""Globs of file searches."""

from __future__ import annotations

import pytest
from tests.kit.growth import assert_linear

from cru.core.base.files.glob import BadGlob, expand_braces
from cru.core.base.files.selection import FileSelection, select_by_glob


def fits(pattern: str, names: list[str]) -> bool:
    selection: FileSelection = select_by_glob([pattern])
    for folder in names[:-1]:
        selection = selection.below(folder)
    return selection.holds(names[-1])


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "src/deep/a.py", True),
        ("src/**", "src/a/b", True),
        ("src/**", "src", False),
        ("src/**/test_*.py", "src/test_a.py", True),
        ("**/a/**/b/**/c", "a/x/b/y/z/c", True),
        ("**/a/**/b/**/c", "a/x/y/z/c", False),
        ("./a/./b", "a/b", True),
        ("*.{py,ts}", "a.ts", True),
        ("{src,tests}/**/*.{py,ts{,x}}", "tests/a.tsx", True),
        ("{src,tests}/*", "docs/a", False),
        ("{a", "{a", True),
        ("{a}", "{a}", True),
        ("a{}b", "a{}b", True),
        ("[!.]*", ".env", False),
        ("*", ".env", True),
        ("*.PY", "a.py", False),
    ],
)
def test_a_glob_fits_or_not(pattern: str, path: str, expected: bool) -> None:
    assert fits(pattern, path.split("/")) is expected


@pytest.mark.parametrize("pattern", ["/etc/*", "../x", "a/../../x"])
def test_a_glob_may_not_lead_out_of_its_folder(pattern: str) -> None:
    with pytest.raises(BadGlob, match="must stay inside `path`"):
        select_by_glob([pattern])


def test_braces_are_limited() -> None:
    assert len(expand_braces("{a,b}" * 6)) == 64
    with pytest.raises(BadGlob, match="more than 64"):
        expand_braces("{a,b}" * 40)


@pytest.mark.slow
def test_a_hostile_pattern_takes_no_time() -> None:
    assert_linear(lambda size: lambda: fits("*a" * 60 + "b", ["a" * size]), 20_000)
    assert_linear(lambda size: lambda: fits("**/a/" * 40 + "b", ["a"] * size), 400)
