"""A note gets another name: every link still leads to it, and all of it can be taken back."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from tests.features.vault.support import write_notes

from cru.core.base.files.atomic import replace_file
from cru.features.vault import BadNotePath, NoSuchNote, NoteExists, VaultError, VaultSettings
from cru.features.vault.vault import Vault

NOTES = {
    "Old.md": "I am [[Old]], [[#here]]; [side](./side.md) [up](deep/low.md)\n",
    "side.md": "[[Old]] [[old|alias]] ![[Old#Part]] [[Old#^id|x]] [[Old.md]] `[[Old]]` [md](Old.md#p) [[Other]]\n",
    "deep/low.md": "| a |\n|---|\n| [[Old\\|in a table]] |\n\n[md](../Old.md) [[../Old]] [[Other]] Größe [[Old]]\n",
    "Other.md": "nothing",
}


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    write_notes(tmp_path / "notes", NOTES)
    vault = Vault(tmp_path / "notes", tmp_path / "home", VaultSettings())
    vault.update()
    return vault


def texts(vault: Vault) -> dict[str, str]:
    return {path.relative_to(vault.root).as_posix(): path.read_text() for path in vault.root.rglob("*.md")}


def leads(vault: Vault) -> set[tuple[str, str]]:
    return {(note.path, to.path) for note in vault.notes() for to in vault.outlinks(note.id)}


def test_links_follow(vault: Vault) -> None:
    record = vault.rename("Old.md", "New name.md")
    assert texts(vault) == {
        "New name.md": "I am [[New name]], [[#here]]; [side](./side.md) [up](deep/low.md)\n",
        "side.md": "[[New name]] [[New name|alias]] ![[New name#Part]] [[New name#^id|x]] [[New name.md]] `[[Old]]` "
        "[md](New%20name.md#p) [[Other]]\n",
        "deep/low.md": "| a |\n|---|\n| [[New name\\|in a table]] |\n\n[md](../New%20name.md) [[New name]] [[Other]] Größe [[New name]]\n",
        "Other.md": "nothing",
    }
    assert [(note.path, note.links) for note in record.notes] == [
        ("New name.md", 1),
        ("deep/low.md", 4),
        ("side.md", 6),
    ]
    assert vault.dangling() == []
    vault.close()


def test_into_a_folder_links_of_its_own_follow_too(vault: Vault) -> None:
    before = {(a.replace("Old.md", "x/y/Old.md"), b.replace("Old.md", "x/y/Old.md")) for a, b in leads(vault)}
    vault.rename("Old.md", "x/y/Old")
    assert leads(vault) == before and vault.dangling() == []
    assert texts(vault)["x/y/Old.md"] == "I am [[Old]], [[#here]]; [side](../../side.md) [up](../../deep/low.md)\n"
    assert "[[Old]] [[old|alias]]" in texts(vault)["side.md"], "they still lead there"
    vault.close()


def test_a_name_that_another_note_has_is_written_with_its_folder(vault: Vault) -> None:
    vault.rename("Old.md", "deep/Other.md")
    assert "[[deep/Other]]" in texts(vault)["side.md"] and texts(vault)["side.md"].endswith("[[Other]]\n")
    assert ("side.md", "Other.md") in leads(vault) and ("side.md", "deep/Other.md") in leads(vault)
    vault.close()


def test_links_by_title_stay(vault: Vault) -> None:
    write_notes(vault.root, {"t.md": "---\ntitle: A title\n---\n", "u.md": "[[A title]] [[t]]"})
    vault.rename("t.md", "v.md")
    assert texts(vault)["u.md"] == "[[A title]] [[v]]"
    vault.close()


def test_it_can_be_taken_back(vault: Vault) -> None:
    vault.rename("Old.md", "deep/New.md")
    undone = vault.undo_rename()
    assert undone is not None and undone.left == () and texts(vault) == NOTES
    assert vault.undo_rename() is None
    vault.close()


def test_what_was_changed_since_stays(vault: Vault) -> None:
    vault.rename("Old.md", "New.md")
    (vault.root / "side.md").write_text("mine now [[New]]")
    undone = vault.undo_rename()
    assert undone is not None and undone.left == ("side.md",)
    assert texts(vault) == {**NOTES, "side.md": "mine now [[New]]"}
    vault.close()


def test_after_a_crash_in_the_middle_it_can_be_taken_back(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, *args: object, **options: object) -> None:
        if path.name == "side.md":
            raise KeyboardInterrupt
        replace_file(path, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(import_module("cru.features.vault.rename"), "replace_file", fail)
    with pytest.raises(KeyboardInterrupt):
        vault.rename("Old.md", "New.md")
    monkeypatch.undo()
    assert texts(vault) != NOTES
    undone = vault.undo_rename()
    assert undone is not None and undone.left == () and texts(vault) == NOTES
    vault.close()


@pytest.mark.parametrize("changed", ["side.md", "Old.md", "New.md"])
def test_what_is_written_in_the_middle_of_a_rename_is_not_lost(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    def write_meanwhile(path: Path, *args: object, **options: object) -> None:
        replace_file(path, *args, **options)  # type: ignore[arg-type]
        if path.name == "rename.json":
            (vault.root / changed).write_text("mine, and new")

    monkeypatch.setattr(import_module("cru.features.vault.rename"), "replace_file", write_meanwhile)
    with pytest.raises(VaultError):
        vault.rename("Old.md", "New.md")
    monkeypatch.undo()
    assert "mine, and new" in texts(vault).values()
    assert (vault.undo_rename() is None) == (changed == "New.md")
    assert texts(vault) == {**NOTES, changed: "mine, and new"}
    vault.close()


def test_after_a_crash_while_a_rename_is_forgotten_others_can_be_taken_back(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.rename("Other.md", "Another.md")
    vault.rename("Old.md", "New.md")
    unlink = Path.unlink

    def fail(path: Path, *args: bool) -> None:
        if removed:
            raise KeyboardInterrupt
        removed.append(path)
        unlink(path, *args)

    removed: list[Path] = []
    monkeypatch.setattr(Path, "unlink", fail)
    with pytest.raises(KeyboardInterrupt):
        vault.undo_rename()
    monkeypatch.undo()
    undone = vault.undo_rename()
    assert undone is not None and undone.record.old == "Other.md" and texts(vault) == NOTES
    vault.close()


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("nothing.md", "x.md", NoSuchNote),
        ("Old.md", "Other.md", NoteExists),
        ("Old.md", "../x.md", BadNotePath),
        ("Old.md", "/x.md", BadNotePath),
        ("Old.md", ".hidden/x.md", BadNotePath),
        ("Old.md", "a//b.md", BadNotePath),
        ("Old.md", "", BadNotePath),
    ],
)
def test_a_rename_that_cannot_be(vault: Vault, old: str, new: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        vault.rename(old, new)
    assert texts(vault) == NOTES
    vault.close()


def test_notes_are_written_below_the_vault_only(vault: Vault, tmp_path: Path) -> None:
    (vault.root / "out").symlink_to(tmp_path)
    (vault.root / "link.md").symlink_to(tmp_path / "target")
    for path in ("out/x.md", "../x.md"):
        with pytest.raises(BadNotePath):
            vault.write(path, "x")
    with pytest.raises(NoteExists):
        vault.write("Old", "x")
    with pytest.raises(Exception, match="cannot be written"):
        vault.write("link.md", "x", overwrite=True)
    assert vault.write("sub/new", "# N [[Old]]") == "sub/new.md" and ("sub/new.md", "Old.md") in leads(vault)
    assert vault.read("sub/new.md") == "# N [[Old]]" and vault.find("new").title == "new"
    assert not (tmp_path / "x.md").exists() and not (tmp_path / "target").exists()
    vault.close()
