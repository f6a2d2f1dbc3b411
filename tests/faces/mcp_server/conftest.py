"""What is served."""

from __future__ import annotations

import pytest
from tests.kit import HomeDir


@pytest.fixture
def here(home: HomeDir) -> HomeDir:
    """A project with a file, and a model that says `fine`."""
    (home.project / ".git").mkdir()
    (home.project / "a.txt").write_text("hello\n")
    (home.path / "model.txt").write_text("loop: yes\ntext: fine\n")
    home.configure(f'model = "scripted:{home.path / "model.txt"}"\n')
    return home
