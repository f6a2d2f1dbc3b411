"""What may be the path of a note."""

from __future__ import annotations

from pathlib import Path

from cru.features.vault import BadNotePath
from cru.features.vault.notes import NOTE_SUFFIXES

UNLINKABLE = "#|^[]"
"""Characters that end the name of a note in `[[name#heading|shown]]`. Obsidian refuses them, too."""


def note_path(root: Path, name: str) -> str:
    """The path below the vault that a name means for a note, with a suffix. Raises BadNotePath.

    root: the vault, without links
    """
    text = name.strip().replace("\\", "/").removeprefix("./")
    path = text if text.lower().endswith(NOTE_SUFFIXES) else f"{text}.md"
    parts = path.split("/")
    if (
        not text
        or text.startswith("/")
        or "\0" in path
        or any(part in ("", "..") or part.startswith(".") for part in parts)
    ):
        raise BadNotePath(f"not a note of this vault: {name!r}", "a path below it, like folder/note.md")
    if not (root / path).parent.resolve().is_relative_to(root):
        raise BadNotePath(f"{name!r} leads out of the vault", "a link in it points elsewhere")
    return path


def check_new_name(path: str) -> None:
    """Raises BadNotePath if links cannot name a new note of this path."""
    used = [char for char in UNLINKABLE if char in path]
    if used:
        raise BadNotePath(
            f"no link can lead to a note with {' '.join(used)} in its name: {path!r}",
            f"choose a name without any of {' '.join(UNLINKABLE)}",
        )
