"""Selections of files: the same as matching each whole path, and right about whole folders."""

from __future__ import annotations

import itertools
import random

import pytest

from cru.core.base.files.glob import matches_search, parse_search_glob
from cru.core.base.files.selection import EVERYTHING, FileSelection, both, select_by_glob, without

NAMES = ("a", "b", "ab.py", ".c")
PIECES = (*NAMES, "*", "**", "*.py", "?", "[ab]", "a*")
PATHS = [path for length in (1, 2, 3, 4) for path in itertools.product(NAMES, repeat=length)]


def _inside(selection: FileSelection, path: tuple[str, ...]) -> bool:
    """Whether the file belongs to it; also checks what is said of the folders that lead there."""
    above = [selection]
    for folder in path[:-1]:
        above.append(above[-1].below(folder))
    is_in = above[-1].holds(path[-1])
    assert not is_in or not any(folder.is_empty for folder in above)
    assert is_in or not any(folder.is_whole for folder in above)
    return is_in


@pytest.mark.parametrize("seed", range(30))
def test_a_selection_holds_what_the_patterns_match(seed: int) -> None:
    draw = random.Random(seed)
    texts = ["/".join(draw.choices(PIECES, k=draw.randint(1, 5))) for _ in range(4)]
    globs = [parse_search_glob(text.split("/")) for text in texts]
    first = {path for path in PATHS if any(matches_search(glob, path) for glob in globs[:2])}
    second = {path for path in PATHS if any(matches_search(glob, path) for glob in globs[2:])}
    one_half, other_half = select_by_glob(texts[:2]), select_by_glob(texts[2:])
    assert {path for path in PATHS if _inside(one_half, path)} == first, texts
    assert {path for path in PATHS if _inside(both(one_half, other_half), path)} == first & second, texts
    assert {path for path in PATHS if _inside(without(one_half, other_half), path)} == first - second, texts
    assert {path for path in PATHS if _inside(both(EVERYTHING, one_half), path)} == first


def test_a_folder_that_no_pattern_leads_into_is_empty() -> None:
    selection = select_by_glob(["src/*/a.py", "docs/**"])
    assert not selection.is_empty
    assert selection.below("tests").is_empty
    assert selection.below("src").below("x").below("y").is_empty
    assert not selection.below("docs").below("x").is_empty
    assert select_by_glob(["a"]).below("a").is_empty


def test_folders_with_the_same_left_to_match_share_one_selection() -> None:
    selection = select_by_glob(["**/*.py"])
    assert selection.below("a") is selection.below("b") is selection.below("a").below("c")
