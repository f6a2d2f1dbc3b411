"""The index follows the folder, and nothing in the folder breaks it."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import pytest
from tests.features.vault.support import describe, open_vault, write_notes

from cru.features.vault import IndexUnusable, NoVault
from cru.features.vault.index.changes import ChangedPart, ChangeKind
from cru.features.vault.index.index import NoteIndex, Update
from cru.features.vault.index.scan import selection_of
from cru.features.vault.index.schema import index_file


def kinds(update: Update) -> list[tuple[str, str]]:
    return [(str(change.kind), change.path) for change in update.changes]


def paths(index: NoteIndex) -> list[str]:
    return [path for (path,) in index.connection.execute("SELECT path FROM notes ORDER BY path")]


def test_changes_are_told(tmp_path: Path) -> None:
    with open_vault(tmp_path, {"a.md": "[[b]]", "b.md": "text", "c.md": "third"}) as index:
        assert index.update().changes == ()
        write_notes(index.root, {"a.md": "[[b]] more", "d/new.md": "# N"})
        (index.root / "b.md").unlink()
        (index.root / "c.md").rename(index.root / "moved.md")
        update = index.update()
        assert kinds(update) == [
            ("deleted", "b.md"), ("deleted", "c.md"), ("modified", "a.md"), ("created", "d/new.md"), ("created", "moved.md"),
            ("renamed", "moved.md"),
        ]  # fmt: skip
        renamed = update.changes[-1]
        assert (renamed.old_path, renamed.title) == ("c.md", "moved")


@pytest.mark.parametrize(
    ("after", "part"),
    [
        ("---\na: 2\n---\n#t [[x]] text", ChangedPart.FRONT_MATTER),
        ("---\na: 1\n---\n#u [[x]] text", ChangedPart.TAGS),
        ("---\na: 1\n---\n#t [[y]] text", ChangedPart.LINKS),
        ("---\na: 1\n---\n#t [[x]] other", ChangedPart.CONTENT),
    ],
)
def test_what_changed_is_told(tmp_path: Path, after: str, part: ChangedPart) -> None:
    with open_vault(tmp_path, {"a.md": "---\na: 1\n---\n#t [[x]] text"}) as index:
        write_notes(index.root, {"a.md": after})
        [change] = index.update_note("a.md").changes
        assert (change.kind, change.part) == (ChangeKind.MODIFIED, part)


def test_of_equal_notes_none_is_renamed(tmp_path: Path) -> None:
    with open_vault(tmp_path, {"a.md": "same", "b.md": "same"}) as index:
        for name in ("a", "b"):
            (index.root / f"{name}.md").rename(index.root / f"{name}2.md")
        assert {str(change.kind) for change in index.update().changes} == {"deleted", "created"}


def test_only_what_changed_is_read(tmp_path: Path) -> None:
    with open_vault(tmp_path, {f"{n}.md": "x" for n in range(20)}) as index:
        for path in index.root.iterdir():
            os.utime(path, (1, 1))
        assert index.update().changes == ()
        (index.root / "3.md").write_text("y")
        update = index.update()
        assert (kinds(update), update.unchanged) == ([("modified", "3.md")], 19)


def test_a_change_within_the_same_tick_of_the_clock_is_seen(tmp_path: Path) -> None:
    with open_vault(tmp_path, {"a.md": "one"}) as index:
        before = os.stat(index.root / "a.md")
        (index.root / "a.md").write_text("two")
        os.utime(index.root / "a.md", ns=(before.st_atime_ns, before.st_mtime_ns))
        assert kinds(index.update()) == [("modified", "a.md")]


def test_links_follow_notes_that_come_and_go(tmp_path: Path) -> None:
    with open_vault(tmp_path, {"a.md": "[[x]] ![[p.png]]", "deep/x.md": "1"}) as index:

        def leads_to() -> list[tuple[str | None, str | None]]:
            sql = "SELECT n.path, t.file FROM targets AS t LEFT JOIN notes AS n ON n.id = t.note ORDER BY t.text DESC"
            return index.connection.execute(sql).fetchall()

        assert leads_to() == [("deep/x.md", None), (None, None)]
        write_notes(index.root, {"x.md": "2", "deep/p.png": ""})
        index.update()
        assert leads_to() == [("x.md", None), (None, "deep/p.png")]
        write_notes(index.root, {"z.md": "---\ntitle: x\n---\n"})
        (index.root / "x.md").unlink()
        (index.root / "deep/p.png").unlink()
        index.update()
        assert leads_to() == [("deep/x.md", None), (None, None)], (
            "of two notes with that title the end of a path decides"
        )
        (index.root / "deep/x.md").unlink()
        index.update()
        assert leads_to() == [("z.md", None), (None, None)]


@pytest.mark.parametrize(
    ("link", "to"),
    [
        ("x", "x.md"), ("X.md", "x.md"), ("b/x", "a/b/x.md"), ("Titled", "t.md"), ("two", "a/two.md"), ("a/two", "a/two.md"),
        ("nothing", None), ("/a/two", "a/two.md"), ("../x", None), ("Same", "s1.md"), ("CAFÉ", "Cafe\u0301.md"), ("t", "t.md"),
    ],
)  # fmt: skip
def test_resolution(tmp_path: Path, link: str, to: str | None) -> None:
    notes = {
        "x.md": "", "a/b/x.md": "", "t.md": "---\ntitle: Titled\n---\n", "a/two.md": "", "bb/two.md": "",
        "s1.md": "---\ntitle: Same\n---\n", "s22.md": "---\ntitle: Same\n---\n", "Cafe\u0301.md": "", "from.md": f"[[{link}]]",
    }  # fmt: skip
    with open_vault(tmp_path, notes) as index:
        sql = "SELECT n.path FROM targets AS t LEFT JOIN notes AS n ON n.id = t.note"
        assert index.connection.execute(sql).fetchall() == [(to,)]


def test_names_that_differ_in_case_only_are_two_notes(tmp_path: Path) -> None:
    with open_vault(
        tmp_path, {"note.md": "1", "Note.md": "2", "a.md": "[[Note]]", "b.md": "[[note]]", "c.md": "[[NOTE]]"}
    ) as index:
        sql = "SELECT t.text, n.path, t.is_ambiguous FROM targets AS t JOIN notes AS n ON n.id = t.note ORDER BY t.text"
        assert index.connection.execute(sql).fetchall() == [
            ("NOTE", "Note.md", 1), ("Note", "Note.md", 0), ("note", "note.md", 0),
        ]  # fmt: skip


def test_what_is_no_note_is_told_and_left_out(tmp_path: Path) -> None:
    with open_vault(tmp_path, {"ok.md": "fine", "sub/ok.md": "fine"}) as index:
        root = index.root
        (root / "binary.md").write_bytes(b"a\0b [[x]]")
        (root / "large.md").write_bytes(b"[[x]] " * 1_000_000)
        (root / "folder.md").mkdir()
        os.mkfifo(root / "pipe.md")
        (root / "link.md").symlink_to("/etc/hostname")
        (root / "gone.md").symlink_to(root / "nothing")
        (root / "loop").symlink_to(root)
        (root / b"bad\xff.md".decode(errors="surrogateescape")).write_text("x")
        update = index.update()
        assert paths(index) == ["binary.md", "large.md", "ok.md", "sub/ok.md"]
        assert update.problems == (
            "binary.md: it is no text (a zero byte) and is not indexed",
            "large.md: it has 6,000,000 bytes and is not indexed (max_note_kb)",
        )
        assert index.connection.execute("SELECT count(*) FROM links").fetchone() == (0,)
        assert index.update().changes == ()


def test_a_note_of_50_mb_is_not_read(tmp_path: Path) -> None:
    with open_vault(tmp_path, {}) as index:
        with open(index.root / "huge.md", "wb") as file:
            file.truncate(50 << 20)
        assert [change.path for change in index.update().changes] == ["huge.md"]
        assert index.connection.execute("SELECT size FROM notes").fetchone() == (50 << 20,)


def test_excluded_paths_are_not_looked_at(tmp_path: Path) -> None:
    write_notes(
        tmp_path / "n",
        {"a.md": "", "b.draft.md": "", "private/x.md": "", "sub/private/y.md": "", "keep/z.md": "", ".h/q.md": ""},
    )
    index = NoteIndex(tmp_path / "n", index_file(tmp_path / "i"), selection_of(["private/", "*.draft.md", "keep/z.md"]))
    index.update()
    assert paths(index) == ["a.md"]
    index.close()


def test_a_damaged_index_is_made_anew(tmp_path: Path) -> None:
    with open_vault(tmp_path) as index:
        known = describe(index)
        index.close()
        for content in (b"this is no database" * 1000, b""):
            index.file.write_bytes(content)
            index.update()
            assert describe(index) == known
            index.close()
        other = sqlite3.connect(index.file)
        other.execute("PRAGMA user_version = 77")
        other.close()
        index.update()
        assert describe(index) == known


def test_an_index_that_cannot_be_written_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write_notes(tmp_path / "n", {"a.md": ""})
    with pytest.raises(IndexUnusable, match="file/i"):
        NoteIndex(tmp_path / "n", tmp_path / "file" / "i").update()
    with pytest.raises(NoVault, match="cannot be read"):
        NoteIndex(tmp_path / "nowhere", tmp_path / "i").update()


def test_files_that_go_while_they_are_indexed_are_left_out(tmp_path: Path) -> None:
    write_notes(tmp_path / "n", {f"{n}.md": f"[[{n + 1}]]" for n in range(50)})
    index = NoteIndex(tmp_path / "n", index_file(tmp_path / "i"))

    def take_away(done: int, of: int) -> None:
        for n in range(10):
            (tmp_path / "n" / f"{n}.md").unlink(missing_ok=True)

    update = index.update(take_away)
    assert len(update.changes) == 40 and paths(index) == sorted(f"{n}.md" for n in range(10, 50))
    index.close()


def test_two_at_once_make_one_index(tmp_path: Path) -> None:
    write_notes(tmp_path / "n", {f"{n}.md": f"[[{n + 1}]] #t{n}" for n in range(300)})
    indexes = [NoteIndex(tmp_path / "n", index_file(tmp_path / "i")) for _ in range(4)]
    errors: list[Exception] = []

    def run(index: NoteIndex) -> None:
        try:
            index.update()
        except Exception as error:  # noqa: BLE001  what a thread raises is told below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in indexes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert indexes[0].connection.execute("SELECT count(*), (SELECT count(*) FROM links) FROM notes").fetchone() == (
        300,
        300,
    )
    for index in indexes:
        index.close()
