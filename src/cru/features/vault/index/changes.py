"""What happened to notes: the words between the index and those who are told."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct


class ChangeKind(StrEnum):
    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"
    RENAMED = "renamed"


class ChangedPart(StrEnum):
    """What of a note differs; the first that applies."""

    FRONT_MATTER = "frontmatter"
    TAGS = "tags"
    LINKS = "links"
    CONTENT = "content"


class NoteChange(Struct, frozen=True):
    """What happened to a note since the index last looked.

    title, blocks: of what is there now
    part: only of MODIFIED
    old_path: where it was before; only of RENAMED, which follows a DELETED and a CREATED
    digest: of the content
    """

    kind: ChangeKind
    path: str
    title: str = ""
    blocks: int = 0
    part: ChangedPart | None = None
    old_path: str = ""
    digest: bytes = b""


def with_renames(changes: Iterable[NoteChange]) -> tuple[NoteChange, ...]:
    """The changes, by path, and a RENAMED behind each note that was created with the content of one that was deleted. Where several
    have the same content nobody knows which became which, so none is renamed."""
    ordered = sorted(changes, key=lambda change: (change.kind is not ChangeKind.DELETED, change.path))
    gone: dict[bytes, list[str]] = {}
    came: dict[bytes, int] = {}
    for change in ordered:
        if change.kind is ChangeKind.DELETED:
            gone.setdefault(change.digest, []).append(change.path)
        elif change.kind is ChangeKind.CREATED:
            came[change.digest] = came.get(change.digest, 0) + 1
    result = []
    for change in ordered:
        result.append(change)
        old = gone.get(change.digest, ())
        if change.kind is ChangeKind.CREATED and len(old) == came[change.digest] == 1:
            result.append(
                NoteChange(ChangeKind.RENAMED, change.path, change.title, change.blocks, None, old[0], change.digest)
            )
    return tuple(result)
