"""What was changed, as a unified diff for people."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator

from msgspec import Struct

from cru.core.base.files.regular import read_regular
from cru.core.base.values.visible import visible
from cru.core.revisions import NotKept
from cru.core.revisions.records import ANY_MODE, FileKind, PathState
from cru.core.revisions.restore import FileSummary
from cru.core.revisions.store import RevisionStore

MOST_LINES = 20_000
"""Of one file that is compared line by line."""


class Version(Struct, frozen=True):
    """One side of a diff. data: None: nobody has it"""

    state: PathState
    data: bytes | None


def version_of(store: RevisionStore, file: str, state: PathState) -> Version:
    """The content of a state, from what is kept or from the file itself if that is still as it was. Raises StoreFailed."""
    if state.kind is FileKind.MISSING:
        return Version(state, b"")
    if store.has(state):
        return Version(state, store.content(state))
    if store.look(file).is_same(state):
        try:
            return Version(state, os.fsencode(os.readlink(file)) if state.kind is FileKind.LINK else read_regular(file))
        except OSError:
            return Version(state, None)
    return Version(state, None)


def diff_summary(store: RevisionStore, summary: FileSummary, name: str) -> str:
    """What changes made of a file. Raises StoreFailed."""
    try:
        old = version_of(store, summary.file, summary.start)
        new = version_of(store, summary.file, summary.end)
    except NotKept as error:
        return f"{visible(name)}: {error.message}"
    return render_diff(name, old, new)


def render_diff(name: str, old: Version, new: Version) -> str:
    """ "" if nothing differs."""
    if old.state.is_same(new.state):
        return ""
    return "\n".join(visible(line) for line in _lines(name, old, new))


def _lines(name: str, old: Version, new: Version) -> Iterator[str]:
    yield f"--- {'/dev/null' if old.state.kind is FileKind.MISSING else f'a/{name}'}"
    yield f"+++ {'/dev/null' if new.state.kind is FileKind.MISSING else f'b/{name}'}"
    modes = (old.state.mode, new.state.mode)
    if ANY_MODE not in modes and modes[0] != modes[1]:
        yield f"mode {modes[0]:o} → {modes[1]:o}"
    if old.data is None or new.data is None:
        yield f"({_about(old)} → {_about(new)}; not kept, so not compared)"
        return
    if b"\0" in old.data[:8192] or b"\0" in new.data[:8192]:
        yield f"(binary: {len(old.data):,} → {len(new.data):,} bytes)"
        return
    before, after = _text_lines(old.data), _text_lines(new.data)
    if len(before) + len(after) > MOST_LINES:
        yield f"(too long to compare: {len(before):,} → {len(after):,} lines)"
        return
    yield from list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]


def _text_lines(data: bytes) -> list[str]:
    lines = data.decode("utf-8", "replace").split("\n")
    return lines[:-1] if not lines[-1] else [*lines[:-1], f"{lines[-1]}  (no newline at the end)"]


def _about(version: Version) -> str:
    return f"{version.state.kind.value} of {version.state.size:,} bytes"
