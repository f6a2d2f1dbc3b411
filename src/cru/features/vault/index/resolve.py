"""Which note a link leads to: the exact path, else the one note of that title, else the notes whose path ends so, else the notes with that
alias; of several the shortest path, then the first by the alphabet. Case makes no difference, unless two notes differ in nothing else."""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from cru.features.vault.keys import fold, name_key, path_key, relative_path, without_suffix, written_target


class Resolution(NamedTuple):
    """note: its id in the index; file: the path of what is no note; both None: the link leads to nothing."""

    note: int | None = None
    file: str | None = None
    is_ambiguous: bool = False


class _Candidate(NamedTuple):
    id: int
    path: str
    key: str


def resolve(connection: sqlite3.Connection, target: str) -> Resolution:
    """What a target (keys.full_target) leads to by what is in the index."""
    path = relative_path(target)
    if path is not None and (exact := _exact(connection, path)):
        return exact
    written = written_target(target)
    if written != target and written.startswith(("./", "../")):
        return Resolution()
    plain = written.strip("/")
    return _exact(connection, plain) or _by_title_or_end(connection, plain) or _file(connection, plain)


def _exact(connection: sqlite3.Connection, path: str) -> Resolution | None:
    rows = [
        _Candidate(*row)
        for row in connection.execute("SELECT id, path, key FROM notes WHERE key = ?", (path_key(path),))
    ]
    same = [row for row in rows if _normal(without_suffix(row.path)) == _normal(without_suffix(path))]
    if rows:
        return _choose(same or rows)
    file = connection.execute("SELECT path FROM files WHERE path = ?", (path,)).fetchone()
    return Resolution(file=file[0]) if file else None


def _by_title_or_end(connection: sqlite3.Connection, target: str) -> Resolution | None:
    key = path_key(target)
    titled = [
        _Candidate(*row)
        for row in connection.execute("SELECT id, path, key FROM notes WHERE title_key = ?", (fold(target),))
    ]
    if len(titled) == 1:
        return _choose(titled)
    named = connection.execute("SELECT id, path, key FROM notes WHERE name_key = ?", (name_key(key),))
    ending = [row for row in map(_Candidate._make, named) if row.key == key or row.key.endswith(f"/{key}")]
    if ending or titled:
        return _choose(ending or titled)
    sql = "SELECT n.id, n.path, n.key FROM aliases AS a JOIN notes AS n ON n.id = a.note WHERE a.key = ?"
    aliased = [_Candidate(*row) for row in connection.execute(sql, (fold(target),))]
    return _choose(aliased) if aliased else None


def _file(connection: sqlite3.Connection, target: str) -> Resolution:
    key = fold(target)
    rows = connection.execute("SELECT path FROM files WHERE name_key = ?", (name_key(key),))
    paths = sorted((path for (path,) in rows if fold(path) == key or fold(path).endswith(f"/{key}")), key=_by_length)
    return Resolution(file=paths[0], is_ambiguous=len(paths) > 1) if paths else Resolution()


def _choose(candidates: list[_Candidate]) -> Resolution:
    first = min(candidates, key=lambda row: _by_length(row.path))
    return Resolution(note=first.id, is_ambiguous=len(candidates) > 1)


def _by_length(path: str) -> tuple[int, str]:
    return len(path), path


def _normal(path: str) -> str:
    return unicodedata.normalize("NFC", path)


def resolve_targets(connection: sqlite3.Connection, targets: Iterable[tuple[int, str]]) -> None:
    """Look up where these targets (id, text) lead to and keep it. Within a transaction."""
    rows = []
    for id, text in targets:
        note, file, is_ambiguous = resolve(connection, text)
        rows.append((note, file, is_ambiguous, id))
    connection.executemany("UPDATE targets SET note = ?, file = ?, is_ambiguous = ? WHERE id = ?", rows)


def affected_targets(
    connection: sqlite3.Connection, names: Iterable[str], titles: Iterable[str]
) -> set[tuple[int, str]]:
    """The targets (id, text) that may lead elsewhere since notes or files of these names (keys.name_key) and notes of these titles
    or aliases (keys.fold) came, went or changed."""
    affected: set[tuple[int, str]] = set()
    for name in set(names):
        affected.update(connection.execute("SELECT id, text FROM targets WHERE name_key = ?", (name,)))
    for title in set(titles):
        affected.update(connection.execute("SELECT id, text FROM targets WHERE key = ?", (title,)))
    return affected
