"""A vault with all syntax, and what is known of it, line by line."""

from __future__ import annotations

from pathlib import Path

from tests.features.vault.support import NOTES, describe, open_vault

GOLDEN = NOTES.with_name("vault.golden.txt")


def test_everything_in_a_note_is_known(tmp_path: Path) -> None:
    with open_vault(tmp_path) as index:
        assert describe(index) == GOLDEN.read_text()


def test_an_index_that_was_brought_up_to_date_is_the_same_as_a_new_one(tmp_path: Path) -> None:
    with open_vault(tmp_path) as index:
        for path in sorted(index.root.rglob("*.md")):
            text = path.read_bytes()
            path.unlink()
            index.update()
            path.write_bytes(text)
            index.update()
        assert describe(index) == GOLDEN.read_text()
