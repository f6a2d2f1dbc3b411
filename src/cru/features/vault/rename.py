"""A note gets another path, and the links to it with it. What was there before is kept first, so that it can be taken back, also after
a crash in the middle."""

from __future__ import annotations

import os
import sqlite3
import time
from hashlib import blake2b
from pathlib import Path
from posixpath import relpath
from urllib.parse import quote

import msgspec
from msgspec import Struct

from cru.core.base.files import read_json
from cru.core.base.files.atomic import replace_file
from cru.core.base.files.regular import read_regular
from cru.features.vault import NoSuchNote, NoteExists, VaultError
from cru.features.vault.index.index import NoteIndex
from cru.features.vault.index.resolve import resolve
from cru.features.vault.keys import fold, full_target, name_key, path_key, relative_path, without_suffix
from cru.features.vault.notes import Link, LinkKind, Note
from cru.features.vault.parse import parse_note

KEPT = 20
"""Renames that can be taken back."""


class RewrittenNote(Struct, frozen=True):
    """path: where it is after the rename; links: how many were rewritten; before: its content, in `folder/NUMBER`; after: its digest"""

    path: str
    links: int
    number: int
    after: str


class RenameRecord(Struct, frozen=True):
    """`rename.json`. notes: whose links were rewritten, the renamed one among them if its own were; at: Unix seconds"""

    old: str
    new: str
    at: float
    notes: tuple[RewrittenNote, ...]
    version: int = 1


class UndoneRename(Struct, frozen=True):
    """left: paths of notes that somebody changed since; they stay as they are"""

    record: RenameRecord
    left: tuple[str, ...]


def rename_note(index: NoteIndex, old: str, new: str, journal: Path) -> RenameRecord:
    """Move a note (both paths below the vault) and rewrite the links to it, and those of its own that start at its folder.
    Raises NoSuchNote, NoteExists, VaultError, IndexUnusable.

    journal: a folder for what is needed to take it back
    """
    root = index.root
    index.update()
    id = _id_of(index.connection, old)
    if id is None:
        raise NoSuchNote(f"there is no note {old}")
    if os.path.lexists(root / new) and not _is_same_file(root / old, root / new):
        raise NoteExists(f"{new} is there already", "choose another name")
    rewriter = _Rewriter(index, id, old, new)
    texts = rewriter.rewritten()
    folder = journal / f"{time.time_ns()}"
    notes = tuple(
        RewrittenNote(path, count, number, _digest(after))
        for number, (path, (count, _, after)) in enumerate(sorted(texts.items()))
    )
    record = RenameRecord(old, new, time.time(), notes)
    try:
        for note in notes:
            replace_file(folder / str(note.number), texts[note.path][1], make_folders=True)
        replace_file(folder / "rename.json", msgspec.json.encode(record), make_folders=True)
        (root / new).parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(root / new) and not _is_same_file(root / old, root / new):
            _remove(folder)  # nothing was done
            raise NoteExists(f"{new} is there by now", "choose another name")
        os.rename(root / old, root / new)
        for path, (_, before, after) in texts.items():
            if read_regular(root / path) != before:
                raise VaultError(
                    f"{path} was changed in the middle of the rename, and stays as it is",
                    "`cru vault undo` takes back what was done; then try again",
                )
            replace_file(root / path, after, in_place=True)
    except OSError as error:
        raise VaultError(f"{old} cannot be renamed: {error}", "`cru vault undo` takes back what was done") from error
    finally:
        index.update()
    _forget_old(journal)
    return record


def undo_rename(index: NoteIndex, journal: Path) -> UndoneRename | None:
    """Take the last rename back; None if there is none. What somebody changed since stays. Raises VaultError."""
    folder = next(iter(_folders(journal)), None)
    if folder is None:
        return None
    root = index.root
    left = []
    try:
        record = read_json(folder / "rename.json", RenameRecord)
        for note in record.notes:
            path = root / note.path
            if path.exists() and _digest(read_regular(path)) == note.after:
                replace_file(path, (folder / str(note.number)).read_bytes(), in_place=True)
            elif path.exists() and read_regular(path) != (folder / str(note.number)).read_bytes():
                left.append(note.path)
        if os.path.lexists(root / record.new):
            if os.path.lexists(root / record.old) and not _is_same_file(root / record.old, root / record.new):
                raise NoteExists(f"{record.old} is there again", "move it away, then try again")
            (root / record.old).parent.mkdir(parents=True, exist_ok=True)
            os.rename(root / record.new, root / record.old)
        _remove(folder)
    except (OSError, msgspec.DecodeError) as error:
        raise VaultError(f"the rename cannot be taken back: {error}") from error
    finally:
        index.update()
    return UndoneRename(record, tuple(left))


class _Rewriter:
    """What notes say after the rename. Resolves links by the index as it is before, and by a copy of its tables as it will be."""

    def __init__(self, index: NoteIndex, id: int, old: str, new: str) -> None:
        self._index = index
        self._id = id
        self._old = old
        self._new = new
        self._after = _copy_of_names(index.connection, id, new)

    def rewritten(self) -> dict[str, tuple[int, bytes, bytes]]:
        """By path after the rename: how many links, the content before and after; notes that stay as they are left out."""
        sql = """
            SELECT DISTINCT n.path FROM targets AS t JOIN links AS l ON l.target = t.id JOIN notes AS n ON n.id = l.note
            WHERE t.note = ?"""
        paths = {path for (path,) in self._index.connection.execute(sql, (self._id,))} | {self._old}
        result = {}
        for path in sorted(paths):
            data = read_regular(self._index.root / path)
            note = parse_note(path, data)
            if any("UTF-8" in problem for problem in note.problems):
                continue  # its positions are not those of the file
            count, after = self._rewrite(path, note, data)
            if count:
                result[self._new if path == self._old else path] = (count, data, after)
        return result

    def _rewrite(self, path: str, note: Note, data: bytes) -> tuple[int, bytes]:
        folder_before = path.rpartition("/")[0]
        folder_after = (self._new if path == self._old else path).rpartition("/")[0]
        parts, at, count = [], 0, 0
        for link in note.links:
            if not link.target:
                continue
            target_before = full_target(link.target, folder_before, is_markdown=link.kind is LinkKind.MARKDOWN)
            target_after = full_target(link.target, folder_after, is_markdown=link.kind is LinkKind.MARKDOWN)
            before = resolve(self._index.connection, target_before).note
            if before is None or self._still_leads(before, target_before, target_after):
                continue
            source = data[link.start : link.end].decode()
            parts += [data[at : link.start], self._renamed(link, source, before, folder_after).encode()]
            at = link.end
            count += 1
        return count, b"".join([*parts, data[at:]])

    def _still_leads(self, note: int, before: str, after: str) -> bool:
        """Whether the link leads there as it did: one that was right as a path from its folder still is."""
        if resolve(self._after, after).note != note:
            return False
        was_path = _id_of(self._index.connection, relative_path(before) or "") == note
        return not was_path or _id_of(self._after, relative_path(after) or "") == note

    def _renamed(self, link: Link, source: str, note: int, folder: str) -> str:
        path = self._after.execute("SELECT path FROM notes WHERE id = ?", (note,)).fetchone()[0]
        if link.kind is LinkKind.MARKDOWN:
            begin, end = source.rindex("("), len(source)
            place = source[begin + 1 : end - 1].partition("#")
            return f"{source[:begin]}({quote(relpath(path, folder or '.'))}{place[1]}{place[2]})"
        begin = source.index("[[") + 2
        end = min(
            (at for at in (source.find(mark, begin) for mark in ("#", "\\|", "|", "]]")) if at >= 0),
            default=len(source),
        )
        has_suffix = without_suffix(link.target) != link.target
        return source[:begin] + self._shortest(path, note, has_suffix, "/" in link.target) + source[end:]

    def _shortest(self, path: str, note: int, has_suffix: bool, has_folder: bool) -> str:
        written = path if has_suffix else without_suffix(path)
        name = written.rpartition("/")[2]
        is_clear = not has_folder and resolve(self._after, name) == resolve(self._after, written)
        return name if is_clear and resolve(self._after, name).note == note else written


def _copy_of_names(connection: sqlite3.Connection, id: int, new: str) -> sqlite3.Connection:
    """The tables that links are resolved by, in memory, with the note renamed."""
    copy = sqlite3.connect(":memory:")
    copy.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, path TEXT, key TEXT, name_key TEXT, title_key TEXT)")
    copy.execute("CREATE TABLE files (path TEXT, name_key TEXT)")
    copy.executemany(
        "INSERT INTO notes VALUES (?, ?, ?, ?, ?)",
        connection.execute("SELECT id, path, key, name_key, title_key FROM notes"),
    )
    copy.execute("CREATE TABLE aliases (key TEXT, note INTEGER)")
    copy.executemany("INSERT INTO aliases VALUES (?, ?)", connection.execute("SELECT key, note FROM aliases"))
    copy.executemany("INSERT INTO files VALUES (?, ?)", connection.execute("SELECT path, name_key FROM files"))
    for column in ("key", "name_key", "title_key"):
        copy.execute(f"CREATE INDEX notes_{column} ON notes ({column})")
    key = path_key(new)
    copy.execute("UPDATE notes SET path = ?, key = ?, name_key = ? WHERE id = ?", (new, key, name_key(key), id))
    [properties] = connection.execute("SELECT properties FROM notes WHERE id = ?", (id,)).fetchone()
    if not msgspec.json.decode(properties).get("title"):  # its title is its name
        copy.execute("UPDATE notes SET title_key = ? WHERE id = ?", (fold(without_suffix(new).rpartition("/")[2]), id))
    return copy


def _id_of(connection: sqlite3.Connection, path: str) -> int | None:
    row = connection.execute("SELECT id FROM notes WHERE path = ?", (path,)).fetchone()
    return row[0] if row else None


def _is_same_file(path: Path, other: Path) -> bool:
    """On a file system where case makes no difference."""
    try:
        return path.samefile(other)
    except OSError:
        return False


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _folders(journal: Path) -> list[Path]:
    """The newest first."""
    if not journal.is_dir():
        return []
    return sorted(
        (path for path in journal.iterdir() if (path / "rename.json").is_file()), key=lambda path: -int(path.name)
    )


def _forget_old(journal: Path) -> None:
    for folder in _folders(journal)[KEPT:]:
        _remove(folder)


def _remove(folder: Path) -> None:
    """First what makes it a rename: a kill in the middle must not leave one that cannot be taken back."""
    (folder / "rename.json").unlink()
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
