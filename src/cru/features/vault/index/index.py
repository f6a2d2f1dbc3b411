"""The index of a vault: brought up to date with the folder, then asked by search.py and graph.py."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path, PurePosixPath

from msgspec import Struct

from cru.core.base.files.regular import read_regular
from cru.core.base.files.selection import EVERYTHING, FileSelection
from cru.features.vault import IndexUnusable
from cru.features.vault.index.changes import ChangeKind, NoteChange, with_renames
from cru.features.vault.index.resolve import affected_targets, resolve_targets
from cru.features.vault.index.rows import NoteRow, NoteWriter
from cru.features.vault.index.scan import LEFT_OUT, Listing, NoteFile, list_vault, stat_note
from cru.features.vault.index.schema import open_index, remove_index, transaction
from cru.features.vault.keys import fold, name_key, path_key
from cru.features.vault.notes import Note
from cru.features.vault.parse import parse_note

_TICK_NS = 2_000_000_000
"""A file that changed so shortly before it was read may change again within the same tick of its clock: it is read once more."""
_UNRESOLVED = "unresolved"
"""The name of the fact that links were written and not resolved yet."""
_BYTES_AT_ONCE = 4 << 20
_AT_ONCE = 1000
"""Notes that one transaction writes: others do not wait longer, and a stop loses no more."""


class Update(Struct, frozen=True):
    """changes: in the order of paths; problems: what cannot be read, a sentence each; unchanged: notes that were not read."""

    changes: tuple[NoteChange, ...]
    problems: tuple[str, ...]
    unchanged: int


class _Touched:
    """What links may lead elsewhere after a write: names and titles of notes."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.titles: set[str] = set()

    def add(self, path: str, *titles: str) -> None:
        self.names.add(name_key(path_key(path)))
        self.titles.update(map(fold, titles))


class NoteIndex:
    """One connection; may be used by several threads, one after another.

    root: the folder of the notes; file: the index; limit_bytes: of a note that is read
    """

    def __init__(
        self, root: Path, file: Path, selection: FileSelection = EVERYTHING, limit_bytes: int = 4 << 20
    ) -> None:
        self.root = root
        self.file = file
        self._selection = selection
        self._limit = limit_bytes
        self._connection: sqlite3.Connection | None = None
        self._untaken: list[NoteChange] = []

    @property
    def connection(self) -> sqlite3.Connection:
        """Raises IndexUnusable."""
        if self._connection is None:
            self._connection = open_index(self.file)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def take_changes(self) -> list[NoteChange]:
        """What the updates since the last call have found."""
        changes, self._untaken = self._untaken, []
        return changes

    def rebuild(self, progress: Callable[[int, int], object] = lambda done, of: None) -> Update:
        """Throw it away and make it anew. Raises NoVault, IndexUnusable."""
        self.close()
        remove_index(self.file)
        return self.update(progress)

    def covers(self, path: str) -> bool:
        """Whether a file of that path below the vault is one that counts: none that is hidden or left out."""
        *folders, name = path.split("/")
        if any(part.startswith(".") for part in (*folders, name)) or LEFT_OUT.intersection(folders):
            return False
        selection = self._selection
        for folder in folders:
            selection = selection.below(folder)
        return selection.holds(name)

    def update(self, progress: Callable[[int, int], object] = lambda done, of: None) -> Update:
        """Read what changed in the folder. Raises NoVault, IndexUnusable.

        progress: told (notes read, notes to read)
        """
        listing = list_vault(self.root, self._selection)
        with index_errors(self.file):
            rows = self.connection.execute("SELECT path, size, mtime_ns, is_settled FROM notes")
            known = {path: (size, mtime_ns) if is_settled else None for path, size, mtime_ns, is_settled in rows}
            gone = [path for path in known if path not in listing.notes]
            new = [
                file for path, file in sorted(listing.notes.items()) if known.get(path) != (file.size, file.mtime_ns)
            ]
            resolves = len(new) <= max(len(known), _AT_ONCE)
            changes = [change for part in _parts(new, progress) for change in self._write(part, (), resolves=resolves)]
            changes += self._write((), gone)
            self._write_files(listing)
            self._resolve_left()
            problems = [f"{path}: {problem}" for path, problem in self._problems()]
        return self._report(
            Update(with_renames(changes), (*listing.problems, *problems), len(listing.notes) - len(new))
        )

    def update_note(self, path: str) -> Update:
        """Read one note again, or forget it if it is gone. Raises IndexUnusable."""
        return self.update_notes((path,))

    def update_notes(self, paths: Iterable[str]) -> Update:
        """The same of several. Raises IndexUnusable."""
        with index_errors(self.file):
            files = {path: stat_note(self.root, path) for path in paths}
            gone = [path for path, file in files.items() if file is None]
            changes = self._write((), gone) if gone else []
            changes += self._write([file for file in files.values() if file], ())
        return self._report(Update(with_renames(changes), (), 0))

    def _report(self, update: Update) -> Update:
        self._untaken += update.changes
        return update

    def _problems(self) -> Iterator[tuple[str, str]]:
        for path, problems in self.connection.execute(
            "SELECT path, problems FROM notes WHERE problems != '' ORDER BY path"
        ):
            yield from ((path, problem) for problem in problems.split("\n"))

    def _write(self, files: Iterable[NoteFile], gone: Iterable[str], *, resolves: bool = True) -> list[NoteChange]:
        """resolves: False leaves the links to _resolve_left, of this process or of one that comes after its end"""
        read = [row for file in files if (row := self._read(file)) is not None]
        changes: list[NoteChange] = []
        touched = _Touched()
        with transaction(self.connection) as connection:
            writer = NoteWriter(connection)
            for path in gone:
                if before := writer.remove(path):
                    touched.add(path, *before.titles)
                    changes.append(NoteChange(ChangeKind.DELETED, path, digest=before.digest))
            for row in read:
                written = writer.add(row)
                titles = (row.note.title, *row.note.aliases)
                if written.before is None:
                    touched.add(row.path, *titles)
                elif written.part is not None and written.before.titles != titles:
                    touched.add(row.path, *written.before.titles, *titles)
                if written.before is None or written.part is not None:
                    kind = ChangeKind.MODIFIED if written.before else ChangeKind.CREATED
                    changes.append(
                        NoteChange(kind, row.path, row.note.title, len(row.note.blocks), written.part, "", row.digest)
                    )
            writer.flush()
            if resolves:
                affected = affected_targets(connection, touched.names, touched.titles)
                resolve_targets(connection, affected.union(writer.new_targets))
            elif files:
                connection.execute("INSERT OR IGNORE INTO facts VALUES (?, '')", (_UNRESOLVED,))
        return changes

    def _resolve_left(self) -> None:
        """The links of notes that were written with `resolves=False`: while most notes are not there yet, most would be looked up twice."""
        of = "SELECT 1 FROM facts WHERE name = ?"
        if self.connection.execute(of, (_UNRESOLVED,)).fetchone():
            with transaction(self.connection) as connection:
                resolve_targets(connection, connection.execute("SELECT id, text FROM targets").fetchall())
                connection.execute("DELETE FROM facts WHERE name = ?", (_UNRESOLVED,))

    def _read(self, file: NoteFile) -> NoteRow | None:
        """None if it is gone meanwhile."""
        if file.size > self._limit:
            return _unread(
                file, f"it has {file.size:,} bytes and is not indexed (max_note_kb)", str(file.size).encode()
            )
        try:
            data = read_regular(os.path.join(self.root, file.path), self._limit)
        except FileNotFoundError:
            return None
        except OSError as error:
            return _unread(file, f"it cannot be read: {error.strerror or error}", b"")
        if b"\0" in data[:8192]:
            return _unread(file, "it is no text (a zero byte) and is not indexed", data)
        is_settled = time.time_ns() - file.mtime_ns >= _TICK_NS
        return NoteRow(
            file.path, parse_note(file.path, data), data, _digest(data), file.size, file.mtime_ns, is_settled
        )

    def read_row(self, path: str) -> NoteRow | None:
        """A note as it is in the folder now, None if it is gone. Nothing is written; any thread may ask."""
        file = stat_note(self.root, path)
        return self._read(file) if file else None

    def _write_files(self, listing: Listing) -> None:
        known = {path for (path,) in self.connection.execute("SELECT path FROM files")}
        if known == listing.files:
            return
        with transaction(self.connection) as connection:
            connection.executemany("DELETE FROM files WHERE path = ?", [(path,) for path in known - listing.files])
            rows = [(path, name_key(fold(path))) for path in listing.files - known]
            connection.executemany("INSERT OR IGNORE INTO files VALUES (?, ?)", rows)
            names = {name_key(fold(path)) for path in known ^ listing.files}
            resolve_targets(connection, affected_targets(connection, names, ()))


@contextmanager
def index_errors(file: Path) -> Iterator[None]:
    """Errors of SQLite as IndexUnusable."""
    try:
        yield
    except sqlite3.Error as error:
        raise IndexUnusable(
            f"the index of the notes cannot be written: {file}: {error}", "`cru vault index --rebuild` makes it anew"
        ) from error


def _unread(file: NoteFile, problem: str, content: bytes) -> NoteRow:
    """A note of which only the name counts."""
    note = Note(PurePosixPath(file.path).stem, {}, (), 0, problems=(problem,))
    return NoteRow(
        file.path, note, b"", _digest(problem.encode() + content), file.size, file.mtime_ns, is_settled=bool(content)
    )


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _parts(files: list[NoteFile], progress: Callable[[int, int], object]) -> Iterator[list[NoteFile]]:
    start = 0
    while start < len(files):
        progress(start, len(files))
        end, size = start, 0
        while end < len(files) and end - start < _AT_ONCE and size < _BYTES_AT_ONCE:
            size += files[end].size
            end += 1
        yield files[start:end]
        start = end
    if files:
        progress(len(files), len(files))
