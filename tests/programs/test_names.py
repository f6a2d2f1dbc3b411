"""A name of `cru` counts only with a program that needs it: every one is called by a theme's plugin, in a real turn."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.programs.stage import play, themes, wanted, written

pytest.register_assert_rewrite(
    *{f"tests.programs.{theme}.play" for theme, _ in themes()}
)  # what a play says counts as if it stood here

# name → why no program can need it
NOT_NEEDED: dict[str, str] = {}
# What Lua has of its own, beside the table of names: only what comes out shows that it was used.
OF_LUA = {"json.array", "json.null", "oq.null"}


def called_by(theme: str, language: str) -> set[str]:
    """The names that a theme's plugin must have called in the end."""
    return written(theme, language) - (OF_LUA if language == "lua" else set())


@pytest.mark.sample(1)
@pytest.mark.parametrize(("theme", "language"), themes())
def test_a_plugin_does_its_work_and_calls_every_name_in_its_text(tmp_path: Path, theme: str, language: str) -> None:
    called = play(tmp_path, theme, language)
    assert called_by(theme, language) - called == set()


def test_every_name_stands_in_a_program() -> None:
    used = {name for theme, language in themes() for name in written(theme, language)}
    assert sorted(wanted() - used) == sorted(NOT_NEEDED)


@pytest.mark.long
@pytest.mark.parametrize(
    ("theme", "language", "name"), [(*one, name) for one in themes() for name in sorted(called_by(*one))]
)
def test_a_program_without_one_of_its_names_fails(tmp_path: Path, theme: str, language: str, name: str) -> None:
    with pytest.raises((AssertionError, OSError, LookupError, ValueError)):
        play(tmp_path, theme, language, without=name)
