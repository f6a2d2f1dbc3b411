"""A vault as others use it: notes by name, read and written below its folder only, and the index beside it. Everything here blocks;
call it in a thread."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from cru.core.base.config.closest import closest
from cru.core.base.files.atomic import replace_file
from cru.core.base.files.regular import read_regular
from cru.features.vault import (
    BadNotePath,
    NoEmbeddings,
    NoSuchNote,
    NoteExists,
    NoVault,
    SearchSetting,
    VaultError,
    VaultSettings,
)
from cru.features.vault.graph import links
from cru.features.vault.graph.parse import parse_graph_query
from cru.features.vault.graph.run import run_graph_query
from cru.features.vault.index.changes import NoteChange
from cru.features.vault.index.index import NoteIndex, Update
from cru.features.vault.index.records import NoteCounts, NoteRecord, count_notes, list_notes, note_by_id, note_names
from cru.features.vault.index.resolve import resolve
from cru.features.vault.index.scan import selection_of
from cru.features.vault.index.schema import index_file
from cru.features.vault.note_path import check_new_name, note_path
from cru.features.vault.notes import Note
from cru.features.vault.parse import parse_note
from cru.features.vault.rename import RenameRecord, UndoneRename, rename_note, undo_rename
from cru.features.vault.search.full_text import Hit, search
from cru.features.vault.search.modes import SearchMode, SearchResult, fuse
from cru.features.vault.search.query import SearchQuery, loosened, parse_search
from cru.features.vault.semantic.index import SemanticIndex
from cru.features.vault.semantic.model import Embedder, is_installed, load_embedder
from cru.features.vault.semantic.store import Coverage, FoundPassage, embedded_notes


def find_vault(settings: VaultSettings, home: Path) -> Vault:
    """The vault of the settings. Raises NoVault, BadGlob.

    home: cru's home, where the index is kept
    """
    if not settings.path:
        raise NoVault("no vault is configured", "cru vault init FOLDER")
    root = Path(settings.path).expanduser()
    if not root.is_dir():
        raise NoVault(f"the vault {root} is not there", "see [vault] path, or: cru vault init FOLDER")
    return Vault(root, home, settings)


FUSED = 100
"""Notes of either search that are looked at for one of both."""
CONSIDERED = 1000
"""Notes that are looked at where some of them are left out after they were found."""


class Vault:
    """name: what scripts call it. Threads take turns.

    load: what makes vectors of texts, loaded when somebody searches by meaning
    """

    def __init__(
        self, root: Path, home: Path, settings: VaultSettings, load: Callable[[], Embedder] = load_embedder
    ) -> None:
        self.root = root.resolve()
        self.name = settings.name or self.root.name
        self.folder = home / "vaults" / _folder_name(self.root)
        self._lock = threading.RLock()
        self._index = NoteIndex(
            self.root, index_file(self.folder), selection_of(settings.exclude), settings.max_note_kb * 1024
        )
        self._setting = settings.search_mode
        self._semantic = SemanticIndex(self._index, self._lock, load)

    def close(self) -> None:
        with self._lock:
            self._index.close()

    def update(self, progress: Callable[[int, int], object] = lambda done, of: None) -> Update:
        """Bring the index up to date. Raises NoVault, IndexUnusable.

        progress: told (notes read, notes to read)
        """
        with self._lock:
            return self._index.update(progress)

    def update_note(self, path: str) -> Update:
        return self.update_notes((path,))

    def update_notes(self, paths: Iterable[str]) -> Update:
        """Read these notes again, or forget those that are gone."""
        with self._lock:
            return self._index.update_notes(paths)

    def rebuild(self, progress: Callable[[int, int], object] = lambda done, of: None) -> Update:
        with self._lock:
            self._semantic.reset()
            return self._index.rebuild(progress)

    def take_changes(self) -> list[NoteChange]:
        """What has happened to notes since the last call, as far as the index has been brought up to date."""
        with self._lock:
            return self._index.take_changes()

    def is_covered(self, path: str) -> bool:
        """Whether a file of that path below the vault is one that the settings leave."""
        return self._index.covers(path)

    # notes

    def note_path(self, name: str) -> str:
        """The path below the vault that a name means for a new note. Raises BadNotePath."""
        return note_path(self.root, name)

    def find(self, name: str) -> NoteRecord:
        """The note of that path, title or end of a path. Raises NoSuchNote, with those that are close."""
        with self._lock:
            note = resolve(self._index.connection, name.strip()).note
            if note is not None:
                return note_by_id(self._index.connection, note)
            near = closest(name.strip(), note_names(self._index.connection, name.strip()))
        hint = f"did you mean `{near}`?" if near else "cru vault search finds notes by their text"
        raise NoSuchNote(f"there is no note {name!r}", hint)

    def get(self, path: str) -> NoteRecord | None:
        with self._lock:
            row = self._index.connection.execute("SELECT id FROM notes WHERE path = ?", (path,)).fetchone()
            return note_by_id(self._index.connection, row[0]) if row else None

    def notes(self, limit: int | None = None) -> list[NoteRecord]:
        with self._lock:
            return list_notes(self._index.connection, limit)

    def by_id(self, ids: Iterable[int]) -> list[NoteRecord]:
        with self._lock:
            return self._records(set(ids))

    def read(self, path: str) -> str:
        """The text of a note. Raises BadNotePath, NoSuchNote, VaultError."""
        return self._read(self.note_path(path)).decode(errors="replace")

    def parse(self, path: str) -> Note:
        name = self.note_path(path)
        return parse_note(name, self._read(name))

    def _read(self, path: str) -> bytes:
        try:
            if not (self.root / path).resolve().is_relative_to(self.root):
                raise BadNotePath(f"{path} leads out of the vault", "a link in it points elsewhere")
            return read_regular(self.root / path)
        except FileNotFoundError as error:
            raise NoSuchNote(f"there is no note {path}", "cru vault search finds notes by their text") from error
        except OSError as error:
            raise VaultError(f"{path} cannot be read: {error.strerror or error}") from error

    def write(self, path: str, text: str, *, overwrite: bool = False) -> str:
        """Make or replace a note; its path. Raises BadNotePath, NoteExists, VaultError."""
        name = self.note_path(path)
        file = self.root / name
        with self._lock:
            if not os.path.lexists(file):
                check_new_name(name)
            elif not overwrite:
                raise NoteExists(f"{name} is there already", "overwrite = true replaces it")
            folder = file.parent.resolve()
            if not folder.is_relative_to(self.root):
                raise BadNotePath(f"{path} leads out of the vault", "a link in it points elsewhere")
            try:
                data, target = text.encode(), folder / file.name  # what becomes a link from now on is not followed
                replace_file(
                    target, data, new_mode=0o644, follow=False, make_folders=True, in_place=True, no_links=True
                )
            except (OSError, UnicodeEncodeError) as error:
                raise VaultError(f"{name} cannot be written: {error}") from error
            self._index.update_notes((name,))
        return name

    def rename(self, old: str, new: str) -> RenameRecord:
        """Raises BadNotePath, NoSuchNote, NoteExists, VaultError."""
        new_path = self.note_path(new)
        check_new_name(new_path)
        with self._lock:
            return rename_note(self._index, self.note_path(old), new_path, self.folder / "renames")

    def undo_rename(self) -> UndoneRename | None:
        with self._lock:
            return undo_rename(self._index, self.folder / "renames")

    def counts(self) -> NoteCounts:
        with self._lock:
            return count_notes(self._index.connection)

    def is_first_time(self, name: str) -> bool:
        """Whether this was never asked of this index before, under that name; no where that cannot be kept, as on a full disk."""
        with self._lock:
            sql = "INSERT OR IGNORE INTO facts VALUES (?, '')"
            try:
                return self._index.connection.execute(sql, (name,)).rowcount > 0
            except sqlite3.OperationalError:
                return False

    # search and graph

    def search(self, text: str, limit: int = 20) -> list[Hit]:
        """By words. Raises BadQuery."""
        return self._search_text(parse_search(text, self._has_property), limit)

    def search_notes(
        self, text: str, limit: int = 20, mode: SearchMode | None = None, may_show: Callable[[str], bool] | None = None
    ) -> SearchResult:
        """By words, by meaning, or both, of the notes that are embedded by now. Raises BadQuery, and NoEmbeddings if a search by meaning
        was asked for and cannot be had.

        mode: None for that of the settings, or by words if it cannot be had
        may_show: whether a note of that path counts; None if all do
        """
        query = parse_search(text, self._has_property)
        chosen = mode or self.default_mode()
        if chosen is SearchMode.TEXT or not query.match:
            return self._search_words(query, limit, may_show)
        try:
            return self._search_meaning(query, limit, chosen, may_show)
        except NoEmbeddings as error:
            if mode is not None:
                raise
            result = self._search_words(query, limit, may_show)
            notices = f"by words only: {error.message}", result.notice
            return SearchResult(result.hits, result.mode, "; ".join(filter(None, notices)))

    def similar(self, text: str, by_words: Sequence[Hit], limit: int, least: float) -> list[Hit]:
        """Notes for a text, whatever signs are in it: those that its words found, but for those that mean something else, and those that
        mean nearly the same. Raises NoEmbeddings.

        least: the cosine (at most 1) of a note that no word found
        """
        passages = self._semantic.search(SearchQuery(text, text), CONSIDERED)
        if self.coverage().is_complete:
            paths = {each.note.path for each in passages}
            by_words = [hit for hit in by_words if hit.path in paths]
        near = [each for each in passages if each.cosine >= least]
        return self._with_snippets(fuse(by_words, _hits(near), limit), near)

    def default_mode(self) -> SearchMode:
        """Of a search that does not say its own."""
        if self._setting is SearchSetting.AUTO:
            return SearchMode.HYBRID if is_installed() else SearchMode.TEXT
        return SearchMode(self._setting)

    def embed(
        self,
        seconds: float | None = None,
        progress: Callable[[int, int], object] = lambda done, of: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Coverage:
        """Embed what is not embedded yet, for about so long. Others may ask in between. Raises NoEmbeddings."""
        return self._semantic.embed(seconds, progress, stop)

    def coverage(self) -> Coverage:
        return self._semantic.coverage()

    def embedded(self, ids: Iterable[int]) -> set[int]:
        """Those of these notes that a search by meaning finds."""
        with self._lock:
            return embedded_notes(self._index.connection, ids)

    def _has_property(self, key: str) -> bool:
        with self._lock:
            sql = "SELECT EXISTS (SELECT 1 FROM properties WHERE key = ?)"
            return bool(self._index.connection.execute(sql, (key,)).fetchone()[0])

    def _search_text(self, query: SearchQuery, limit: int) -> list[Hit]:
        with self._lock:
            return search(self._index.connection, query, limit)

    def _text_hits(self, query: SearchQuery, limit: int, may_show: Callable[[str], bool] | None) -> list[Hit]:
        if may_show is None:
            return self._search_text(query, limit)
        return [hit for hit in self._search_text(query, CONSIDERED) if may_show(hit.path)][:limit]

    def _search_words(self, query: SearchQuery, limit: int, may_show: Callable[[str], bool] | None) -> SearchResult:
        """The notes with all of the words, else those with some."""
        hits, notice = self._text_hits(query, limit, may_show), ""
        if not hits and (loose := loosened(query)) and (hits := self._text_hits(loose, limit, may_show)):
            notice = "no note has all of these words; these have some"
        return SearchResult(hits, SearchMode.TEXT, notice)

    def _search_meaning(
        self, query: SearchQuery, limit: int, mode: SearchMode, may_show: Callable[[str], bool] | None
    ) -> SearchResult:
        """The text of a note that does not count is not read."""
        most = max(limit, FUSED)
        passages = self._semantic.search(query, most if may_show is None else CONSIDERED)
        if may_show is not None:
            passages = [each for each in passages if may_show(each.note.path)]
        hits = _hits(passages)
        if mode is SearchMode.HYBRID:
            hits = fuse(self._text_hits(query, most, may_show), hits[:most], limit)
        hits = self._with_snippets(hits[:limit], passages)
        state = self.coverage()
        notice = (
            ""
            if state.is_complete
            else f"{state.embedded:,} of {state.notes:,} notes are known by their meaning so far"
        )
        return SearchResult(hits, mode, notice)

    def _with_snippets(self, hits: list[Hit], passages: list[FoundPassage]) -> list[Hit]:
        """Those that were found by their meaning only show the passage that was meant."""
        places = {place.note.path: place for place in passages}
        return [
            Hit(hit.path, hit.title, hit.score, self._semantic.snippet(places[hit.path]))
            if not hit.snippet and hit.path in places
            else hit
            for hit in hits
        ]

    def outlinks(self, id: int) -> list[NoteRecord]:
        return self._linked(links.outlinks, id)

    def backlinks(self, id: int) -> list[NoteRecord]:
        return self._linked(links.backlinks, id)

    def neighbors(self, id: int, depth: int = 1) -> list[NoteRecord]:
        with self._lock:
            return self._records(links.neighbors(self._index.connection, id, depth))

    def shortest_path(self, start: int, end: int) -> list[NoteRecord]:
        with self._lock:
            return [
                note_by_id(self._index.connection, each)
                for each in links.shortest_path(self._index.connection, start, end)
            ]

    def orphans(self) -> list[NoteRecord]:
        with self._lock:
            return [note_by_id(self._index.connection, each) for each in links.orphans(self._index.connection)]

    def dangling(self) -> list[links.DanglingLink]:
        with self._lock:
            return links.dangling(self._index.connection)

    def linked(self, ids: Iterable[int]) -> dict[int, set[int]]:
        """Of each of these notes the notes that it links to."""
        with self._lock:
            return links.outlinks(self._index.connection, ids)

    def tags(self) -> dict[str, list[int]]:
        """Each tag as it is first written, and the notes that have it."""
        with self._lock:
            return links.tags(self._index.connection)

    def query(self, text: str, parameters: Mapping[str, Any] | None = None) -> tuple[list[Any], str]:
        """Notes or rows, and the jq filters that are still to be run over them. Raises BadQuery."""
        query = parse_graph_query(text, parameters)
        with self._lock:
            return list(run_graph_query(self._index.connection, query)), query.jq

    def _linked(self, follow: Any, id: int) -> list[NoteRecord]:
        with self._lock:
            return self._records(follow(self._index.connection, [id])[id])

    def _records(self, ids: set[int]) -> list[NoteRecord]:
        return sorted((note_by_id(self._index.connection, each) for each in ids), key=lambda note: note.path)


def _hits(passages: Iterable[FoundPassage]) -> list[Hit]:
    return [Hit(each.note.path, each.note.title, each.cosine, "") for each in passages]


def _folder_name(root: Path) -> str:
    return blake2b(os.fsencode(root), digest_size=10).hexdigest()
