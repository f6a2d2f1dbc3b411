"""The projects of a home: which context is current in each, and which was before (docs/decisions/conversations.md).

They stand in session.json, and so are read and replaced together with what else is said of contexts:
`{"projects": {ROOT: {"current": NAME, "previous": NAME, "folder": "DEVICE:INODE"}}}`. `folder` tells a project that was moved.
"""

import os
import re
from collections.abc import Callable, Iterator
from itertools import count

import msgspec
from msgspec import Struct

from cru.core.conversations.identity import DEFAULT, is_name

PROJECTS = "projects"
NAMELESS = "project"
_LONGEST = 60
_OTHER_MEANING = ("new", DEFAULT)
"""Names that mean something else: with `-c`, and outside of projects."""


class ProjectRecord(Struct, frozen=True, omit_defaults=True):
    """The context that is current in a project, the one before, and which folder its root was."""

    current: str
    previous: str | None = None
    folder: str = ""

    def bears(self, name: str) -> bool:
        return name in (self.current, self.previous)


def read_records(session: dict[str, object]) -> dict[str, ProjectRecord]:
    """What session.json says of projects; what is no record of one is left out."""
    raw = session.get(PROJECTS)
    records = {}
    for root, item in raw.items() if isinstance(raw, dict) else ():
        try:
            record = msgspec.convert(item, ProjectRecord)
        except msgspec.ValidationError:
            continue
        if is_name(record.current) and (record.previous is None or is_name(record.previous)):
            records[root] = record
    return records


def set_current(session: dict[str, object], root: str, current: str, previous: str | None) -> None:
    """Write down a project's current and previous context."""
    before = previous if previous != current else None
    _projects(session)[root] = msgspec.to_builtins(ProjectRecord(current, before, folder_mark(root)))


def forget_context(session: dict[str, object], name: str, exists: Callable[[str], bool]) -> None:
    """A context is gone: where it was current, the previous one is, or none yet."""
    for root, record in read_records(session).items():
        if record.current == name:
            previous = record.previous
            if previous is not None and previous != name and exists(previous):
                set_current(session, root, previous, None)
            else:
                del _projects(session)[root]
        elif record.previous == name:
            set_current(session, root, record.current, None)


def rename_context(session: dict[str, object], old: str, new: str) -> None:
    for root, record in read_records(session).items():
        if record.bears(old):
            current, previous = (new if name == old else name for name in (record.current, record.previous))
            assert current is not None
            set_current(session, root, current, previous)


def _projects(session: dict[str, object]) -> dict[str, object]:
    raw = session.get(PROJECTS)
    if not isinstance(raw, dict):
        raw = session[PROJECTS] = {}
    return raw


def first_name(root: str, is_taken: Callable[[str], bool]) -> str:
    """The name of a project's first context: that of its folder as far as a context may have it, with a number if it is taken."""
    return next(name for name in _names(stem_of(root)) if not is_taken(name))


def stem_of(root: str) -> str:
    """The folder's name in characters that a context may have."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", os.path.basename(root)).strip("-")[:_LONGEST]
    return stem if is_name(stem) else f"{NAMELESS}-{stem}".rstrip("-")


def _names(stem: str) -> Iterator[str]:
    if stem.lower() not in _OTHER_MEANING:
        yield stem
    yield from (f"{stem}-{number}" for number in count(2))


def folder_mark(root: str) -> str:
    """What a folder keeps when it is moved within its file system; "" if it is not there."""
    try:
        status = os.stat(root)
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}"


def earlier_context(records: dict[str, ProjectRecord], root: str) -> tuple[str, str]:
    """The root and the current context of a project that is no more where it was and probably is this one now; ("", "") if there is
    none. No more than a guess: another folder may have got the same mark."""
    mark, name = folder_mark(root), os.path.basename(root)
    gone = [(old, record) for old, record in records.items() if old != root and not os.path.isdir(old)]
    likely = [pair for pair in gone if pair[1].folder == mark] or [
        pair for pair in gone if os.path.basename(pair[0]) == name
    ]
    return (likely[0][0], likely[0][1].current) if likely else ("", "")
