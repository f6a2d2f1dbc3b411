"""A hook's fingerprint: its definition and the content of every file that it names, so that a person's trust ends when either changes."""

from __future__ import annotations

import os
from hashlib import sha256

import msgspec
from msgspec import Struct

from cru.core.hooks.model.entry import HookEntry, too_long
from cru.core.hooks.model.facts import SessionFacts
from cru.core.hooks.trust.files import LookupBudget, ReferencedFile, stat
from cru.core.hooks.trust.references import References, find_references, is_inside

OVER = "all of it: it names more files than cru looks at, so it cannot be accepted"


class Fingerprint(Struct, frozen=True):
    """A hook and the files that it names, as they are now.

    key: of its definition alone
    fingerprint: of its definition and its files
    unseen: what a person cannot be shown
    stats: what tells that one of the files, or of those that are not there, has changed
    over: it names more than is looked at, so nobody can accept it
    data: files that may change
    """

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


def take_fingerprint(entry: HookEntry, facts: SessionFacts, budget: LookupBudget | None = None) -> Fingerprint:
    """Read everything that the entry names. What is shown, noted and compared comes from these same bytes."""
    budget = budget or LookupBudget()
    over = too_long(entry) != ""
    references = References() if budget.over or over else find_references(entry, facts, budget)
    paths = dict.fromkeys(references.paths) if budget.spend(len(references.paths)) else {}
    stats = tuple((path, stat(path)) for path in paths)
    data = tuple(references.data)
    watched = [(path, status) for path, status in stats if path not in data]
    files = tuple(budget.read_file(path, status) for path, status in watched if status and not os.path.isdir(path))
    unseen = [*references.unseen, *(text for file in files if (text := file.unseen()))]
    over = over or budget.over
    if over:
        unseen.append(OVER)
        files, stats, data = (), (), ()
    contents = [(relative(file.path, facts), file.digest) for file in files]
    whole = (definition(entry), os.path.realpath(entry.source.path), contents)
    fingerprint = sha256(msgspec.json.encode(whole)).hexdigest()
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


def relative(path: str, facts: SessionFacts) -> str:
    """As the same file is called wherever in the project the user stands."""
    return os.path.relpath(path, facts.root) if is_inside(path, facts) else path
