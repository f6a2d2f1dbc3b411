"""A vault in a folder of its own, and its index as text that a person can read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cru.features.vault.index.index import NoteIndex
from cru.features.vault.index.schema import index_file
from cru.features.vault.parse import parse_note

NOTES = Path(__file__).parents[2] / "data" / "vault"
"""A vault with all syntax; `vault.golden.txt` beside it is what is known of it."""


@contextmanager
def open_vault(folder: Path, notes: dict[str, str] | None = None) -> Iterator[NoteIndex]:
    """An index that is up to date; of these notes, or of a copy of NOTES."""
    root = folder / "notes"
    if notes is None:
        shutil.copytree(NOTES, root)
    else:
        write_notes(root, notes)
    index = NoteIndex(root, index_file(folder / "index"))
    try:
        index.update()
        yield index
    finally:
        index.close()


def write_notes(root: Path, notes: dict[str, str]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for path, text in notes.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def describe(index: NoteIndex) -> str:
    """Everything that is known of every note."""
    lines: list[str] = []
    for id, path, title, properties, tags, problems in index.connection.execute(
        "SELECT id, path, title, properties, tags, problems FROM notes ORDER BY path"
    ):
        lines += ["", f"{path} — {title}", f"  properties {properties}", f"  tags {tags}"]
        lines += [f"  problem {problem}" for problem in problems.splitlines()]
        lines += [f"  {line}" for line in _links(index, id)]
        lines += [f"  {line}" for line in _parts(index.root, path)]
    return "\n".join(lines).strip() + "\n"


def _links(index: NoteIndex, note: int) -> Iterator[str]:
    sql = """
        SELECT l.line, l.kind, t.text, l.heading, l.block, l.alias, n.path, t.file, t.is_ambiguous FROM links AS l
        LEFT JOIN targets AS t ON t.id = l.target LEFT JOIN notes AS n ON n.id = t.note WHERE l.note = ? ORDER BY l.at"""
    for line, kind, text, heading, block, alias, to, file, is_ambiguous in index.connection.execute(sql, (note,)):
        place = f"#{heading}" if heading else f"#^{block}" if block else ""
        end = "itself" if text is None else to or file or "NOTHING"
        yield f"{line}: {kind} {text or ''}{place}{f' as {alias!r}' if alias else ''} → {end}{' (of several)' if is_ambiguous else ''}"


def _parts(root: Path, path: str) -> Iterator[str]:
    data = (root / path).read_bytes()
    note = parse_note(path, data)
    for heading in note.headings:
        yield f"{heading.line}: heading {heading.level} {heading.text!r}"
    for block in note.blocks:
        text = data[block.start : block.end].decode(errors="replace").strip().splitlines()
        names = "".join([f" [{block.name}]" if block.name else "", f" ^{block.id}" if block.id else ""])
        yield f"{block.line}: {block.kind}{names} {(text or [''])[0][:40]!r}"
    for field in note.fields:
        yield f"{field.line}: field {field.key} = {field.value!r}"
    for task in note.tasks:
        yield f"{task.line}: task {task.status} {task.text!r} {' '.join(f'{f.key}={f.value}' for f in task.fields)}".rstrip()
