"""Every page's tested blocks run as written, and generated parts are up to date."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from tests.kit import HomeDir, docs_block
from tests.kit.docs import check_page, main, pages

ROOT = Path(__file__).parent.parent


SHORT = {"README.md", "getting-started.md", "turn.md", "events.md", "configuration.md", "scripted-model.md"}
"""Pages that a short run has, too."""


def _param(page: Path) -> ParameterSet:
    return pytest.param(page, marks=() if page.name in SHORT else pytest.mark.slow)


@pytest.mark.parametrize(
    "page", [_param(page) for page in pages(ROOT)], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_the_page_does_what_it_says(page: Path, home: HomeDir) -> None:
    ran, not_run = check_page(page, home)
    for did in [True] * ran + [False] * not_run:
        docs_block(did)


@pytest.mark.slow
def test_the_first_steps_can_be_followed_in_one_home(home: HomeDir) -> None:
    """What one page configures does not stay for the next."""
    for page in ("README.md", "docs/getting-started.md"):
        ran, _ = check_page(ROOT / page, home, configure=page == "README.md")
        assert ran > 0


def test_generated_parts_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"], ROOT) == 0, capsys.readouterr().out
