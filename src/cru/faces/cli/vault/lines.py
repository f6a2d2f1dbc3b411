"""What `cru vault` shows to a person. Notes are a stranger's text: nothing in them reaches a terminal as a control sequence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from cru.faces.cli.console import StandardOutput, one_line, show, takes_styles
from cru.features.vault.graph.links import DanglingLink
from cru.features.vault.index.changes import ChangeKind
from cru.features.vault.index.index import Update
from cru.features.vault.index.records import NoteCounts, NoteRecord
from cru.features.vault.rename import RenameRecord, UndoneRename
from cru.features.vault.search.full_text import BEGIN, END, Hit
from cru.features.vault.vault import Vault

SHOWN_PROBLEMS = 10
_STRIP = str.maketrans("", "", BEGIN + END)


def show_status(vault: Vault, counts: NoteCounts, orphans: int) -> None:
    show(f"{one_line(vault.name)}  {one_line(str(vault.root))}")
    show(f"{counts.notes:8,} notes, {orphans:,} of them without links")
    show(f"{counts.files:8,} other files")
    show(f"{counts.links:8,} links, and {counts.dangling:,} to nothing")
    show(f"{counts.tags:8,} tags")
    show(f"{counts.tasks:8,} tasks")
    for path, problem in counts.problems[:SHOWN_PROBLEMS]:
        show(f"problem: {one_line(path)}: {one_line(problem)}")
    if len(counts.problems) > SHOWN_PROBLEMS:
        show(f"… and {len(counts.problems) - SHOWN_PROBLEMS:,} more; --json has all")


def show_hits(hits: list[Hit]) -> None:
    """The words that were found stand out on a terminal."""
    is_styled = takes_styles(1)
    for hit in hits:
        show_note(hit.path, hit.title)
        if hit.snippet and is_styled:
            _write_marked(hit.snippet)
        elif hit.snippet:
            show(f"    {one_line(hit.snippet.translate(_STRIP))}")


def _write_marked(snippet: str) -> None:
    stream = StandardOutput.text()
    parts = snippet.replace(END, BEGIN).split(BEGIN)
    marked = [one_line(part) if at % 2 == 0 else f"\x1b[1m{one_line(part)}\x1b[0m" for at, part in enumerate(parts)]
    stream.write(f"    {''.join(marked)}\n")


def show_note(path: str, title: str) -> None:
    name = path.rpartition("/")[2].rpartition(".")[0]
    show(one_line(path) if name == title else f"{one_line(path)}  ({one_line(title, 100)})")


def show_notes(notes: list[NoteRecord]) -> None:
    for note in notes:
        show_note(note.path, note.title)


def show_lines(texts: Iterable[str]) -> None:
    for text in texts:
        show(one_line(text))


def show_links(note: NoteRecord, out: list[NoteRecord], back: list[NoteRecord], dangling: list[DanglingLink]) -> None:
    show(one_line(note.path))
    for mark, others in (("->", out), ("<-", back)):
        for other in others:
            show(f"  {mark} {one_line(other.path)}")
    for link in dangling:
        show(f"  -> {one_line(link.target)}  (line {link.line}: there is no such note)")
    if not (out or back or dangling):
        show("  no links")


def show_rows(rows: list[object]) -> None:
    """Notes as their paths, a text as it is, anything else as JSON."""
    for row in rows:
        if isinstance(row, dict) and "content_hash" in row:
            show_note(str(row["path"]), str(row["title"]))
        else:
            show(row if isinstance(row, str) else msgspec.json.encode(_short(row)).decode())


def _short(row: object) -> object:
    """Columns with notes as their paths."""
    if not isinstance(row, dict):
        return row
    return {
        key: value["path"] if isinstance(value, dict) and "content_hash" in value else value
        for key, value in row.items()
    }


def show_rename(record: RenameRecord) -> None:
    show(f"{one_line(record.old)} is {one_line(record.new)} now")
    for note in record.notes:
        show(f"  {one_line(note.path)}: {note.links} {'link' if note.links == 1 else 'links'}")
    show("`cru vault undo` takes it back")


def show_undone(undone: UndoneRename | None) -> None:
    if undone is None:
        return
    show(f"{one_line(undone.record.new)} is {one_line(undone.record.old)} again")
    for path in undone.left:
        show(f"  {one_line(path)} was changed since and stays as it is")


def count_changes(update: Update) -> dict[str, object]:
    kinds = Counter(change.kind for change in update.changes)
    return {
        **{kind.value: kinds[kind] for kind in ChangeKind},
        "unchanged": update.unchanged,
        "problems": list(update.problems),
    }


def show_update(counts: dict[str, object]) -> None:
    show(", ".join(f"{count:,} {name}" for name, count in counts.items() if isinstance(count, int)))
    problems = counts["problems"]
    for problem in problems if isinstance(problems, list) else ():
        show(f"problem: {one_line(problem)}")


def show_graph(file: Path, drawn: dict[str, int]) -> None:
    left = f", {drawn['left_out']:,} notes with fewer links left out" if drawn["left_out"] else ""
    show(f"{file}  ({drawn['notes']:,} notes, {drawn['links']:,} links{left})")
