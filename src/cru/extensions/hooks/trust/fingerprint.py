"""A hook as a person is shown it: its definition, the files that it names, what cannot be seen, and a fingerprint of it all."""

from __future__ import annotations

import os
from hashlib import sha256

import msgspec
from msgspec import Struct

from cru.extensions.hooks.model.entry import HookEntry, too_long
from cru.extensions.hooks.model.facts import SessionFacts
from cru.extensions.hooks.trust.budget import LookupBudget
from cru.extensions.hooks.trust.references import References, find_references, is_inside
from cru.files.regular import open_regular

KEPT = 1 << 20
"""Bytes of a file that are kept to be shown."""
LARGEST = 64 << 20
"""Bytes of a file that is read; of a larger one its size and times count."""


OVER = "all of it: it names more files than cru looks at, so it cannot be accepted"


class ReferencedFile(Struct, frozen=True):
    """A file that a hook names. digest: SHA-256, "" if it cannot be read · content: its beginning."""

    path: str
    digest: str
    size: int
    content: bytes = b""


class Fingerprint(Struct, frozen=True):
    """A hook and the files that it names, as they are now. key: of its definition alone · unseen: what a person cannot be shown · stats:
    what tells that one of the files, or of those that are not there, has changed · over: it names more than is looked at, so nobody can
    accept it · data: files that may change."""

    key: str
    fingerprint: str
    files: tuple[ReferencedFile, ...]
    unseen: tuple[str, ...]
    stats: tuple[tuple[str, tuple[int, ...]], ...]
    over: bool = False
    data: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """What a person writes behind an id to say which content they have seen."""
        return self.fingerprint[:16]


def take_fingerprint(entry: HookEntry, about: SessionFacts, budget: LookupBudget | None = None) -> Fingerprint:
    """Read everything that the entry names. What is shown, noted and compared comes from these same bytes."""
    budget = budget or LookupBudget()
    over = too_long(entry) != ""
    found = References() if budget.over or over else find_references(entry, about, budget)
    paths = dict.fromkeys(found.paths) if budget.spend(len(found.paths)) else {}
    stats = tuple((path, stat(path)) for path in paths)
    data = tuple(found.data)
    watched = [(path, seen) for path, seen in stats if path not in data]
    files = tuple(_read(path, seen, budget) for path, seen in watched if seen and not os.path.isdir(path))
    unseen = found.unseen + [text for file in files for text in _unseen(file)]
    over = over or budget.over
    if over:
        unseen.append(OVER)
        files, stats, data = (), (), ()
    inner = [(relative(file.path, about), file.digest) for file in files]
    said = (definition(entry), os.path.realpath(entry.source.path), inner)
    fingerprint = sha256(msgspec.json.encode(said)).hexdigest()
    return Fingerprint(key_of(entry), fingerprint, files, tuple(dict.fromkeys(unseen)), stats, over, data)


def key_of(entry: HookEntry) -> str:
    """The entry by its definition alone: what is known of it before anything is looked at."""
    return sha256(definition(entry)).hexdigest()[:32]


def definition(entry: HookEntry) -> bytes:
    """All that decides what the entry does, and where it stands: two that share an id are still two."""
    fields = msgspec.structs.asdict(entry)
    for name in ("id", "line", "problem", "source", "off_by_user"):
        del fields[name]
    source = entry.source
    return msgspec.json.encode((str(source.path), source.layer, source.own, fields), order="sorted")


def stat(path: str) -> tuple[int, ...]:
    """What tells that a file or folder has changed; () if there is none."""
    from stat import S_ISDIR, S_ISREG

    try:
        about = os.stat(path)
    except (OSError, ValueError):
        return ()
    if not (S_ISREG(about.st_mode) or S_ISDIR(about.st_mode)):
        return ()
    return (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


def _read(path: str, seen: tuple[int, ...], budget: LookupBudget) -> ReferencedFile:
    if seen[2] > LARGEST:
        return ReferencedFile(path, sha256(repr(seen).encode()).hexdigest(), seen[2])
    if (path, seen) not in budget.read:
        budget.read[path, seen] = _fresh(path, budget)
    return budget.read[path, seen]


def _fresh(path: str, budget: LookupBudget) -> ReferencedFile:
    digest, size, beginning = sha256(), 0, b""
    try:
        with open(open_regular(path), "rb", buffering=0) as file:
            while not budget.over and (piece := file.read(1 << 20)):
                beginning = beginning or piece[:KEPT]
                size += len(piece)
                budget.size -= len(piece)
                digest.update(piece)
    except OSError:
        return ReferencedFile(path, "", 0)
    return ReferencedFile(path, digest.hexdigest(), size, beginning)


def _unseen(file: ReferencedFile) -> list[str]:
    if not file.digest:
        return [f"{file.path} cannot be read"]
    if b"\0" in file.content:
        return [f"{file.path} is not a text"]
    return [f"{file.path} is shown up to byte {len(file.content)} only"] if file.size > len(file.content) else []


def relative(path: str, about: SessionFacts) -> str:
    """As the same file is called wherever in the project the user stands."""
    return os.path.relpath(path, about.root) if is_inside(path, about) else path
