"""How names of notes are compared: case and Unicode normalisation make no difference."""

from __future__ import annotations

import unicodedata
from posixpath import normpath

from cru.features.vault.notes import NOTE_SUFFIXES

RELATIVE = "//"
"""In a link's target: between the folder of the note that has the link and what is written there."""


def fold(text: str) -> str:
    """The key of a title or a heading."""
    return (
        text.lower() if text.isascii() else unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    )


def path_key(path: str) -> str:
    """The key of a path below the vault, or of what a link names: without the suffix of notes."""
    return fold(without_suffix(path))


def name_key(key: str) -> str:
    """The last name of a path's key: whatever is named by a link has it in common with the link."""
    return key.rpartition("/")[2]


def without_suffix(path: str) -> str:
    lower = path.lower()
    return next((path[: -len(suffix)] for suffix in NOTE_SUFFIXES if lower.endswith(suffix)), path)


def full_target(target: str, folder: str, *, is_markdown: bool) -> str:
    """What a link of a note in that folder names, so that two links with the same text lead to the same note: links in Markdown's own
    form, and those that begin with `./` or `../`, start at the note's folder."""
    if is_markdown or target.startswith(("./", "../")):
        return f"{folder}{RELATIVE}{target}"
    return target


def written_target(target: str) -> str:
    """The opposite of full_target."""
    return target.partition(RELATIVE)[2] if RELATIVE in target else target


def relative_path(target: str) -> str | None:
    """The path below the vault that a target with a folder leads to; None if it has none, or leads out of the vault."""
    folder, mark, written = target.partition(RELATIVE)
    if not mark:
        return None
    path = normpath(f"{folder}/{written}" if folder and not written.startswith("/") else written.lstrip("/"))
    return None if path.startswith("..") or path == "." else path
