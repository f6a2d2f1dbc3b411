"""What must not appear is on disk while something confined runs: what nobody was left to put aside is put aside at the next start."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

import msgspec
from msgspec import Struct

from cru.core.base.files import is_inside, read_json
from cru.core.base.files.atomic import replace_file
from cru.core.base.process.marks import process_identity
from cru.core.conversations.private import is_nobodys
from cru.core.guard.sandbox.planted import put_aside, quarantine_risks
from cru.core.guard.sandbox.repositories import Risks, find_risks, new_risks, overfull_roots

FOLDER = "sandbox"
"""In cru's home."""
IDLE = ".idle"
"""Ends the name of a record whose program has ended: it says that nothing runs, and waits for the next program."""
_NUMBERS = count(1)


class GuardState(Struct, frozen=True):
    """What a confined program must not change, as it was when that began.

    places: what was at the places where nothing must appear (cru.core.guard.sandbox.planted.look)
    trees, git_folders: where repositories are looked at (cru.core.guard.sandbox.repositories); risks: what was dangerous in them
    """

    places: dict[str, str]
    trees: tuple[str, ...] = ()
    git_folders: tuple[str, ...] = ()
    risks: Risks = {}

    def without_new(self, risks: Risks) -> Risks:
        """Return these risks but for those that have come since then where this program is looked after."""
        folders = (*self.trees, *self.git_folders)
        own = {path: texts for path, texts in risks.items() if any(is_inside(path, folder) for folder in folders)}
        fresh = new_risks(self.risks, own)
        return new_risks(fresh, risks)

    def settle(self, accepted: Mapping[str, bytes]) -> list[str]:
        """Quarantine what has appeared since then, and return the new names."""
        moved = put_aside(self.places, (*self.trees, *self.git_folders), accepted)
        risks = new_risks(self.risks, find_risks(self.trees, self.git_folders))
        moved += quarantine_risks(risks, self.trees, accepted)
        moved += (
            f"{root} (whose many folders cru has not all searched for repositories)"
            for root in overfull_roots(self.trees)
        )
        return moved


class GuardRecord(Struct):
    """Of one confined program.

    session: the folder that its session holds as long as it lives
    before: what it must not change
    accepted: files that stay, with the digests of their contents
    pid: its process, if it may go on when the session has ended, 0 if it ends with that
    identity: what only that process has
    """

    session: str
    before: GuardState
    accepted: dict[str, bytes]
    pid: int = 0
    identity: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the program has ended. Raises OSError if nobody knows."""
        if self.pid:
            return process_identity(self.pid) != self.identity
        return not os.path.lexists(self.session) or is_nobodys(self.session)


class RecordedGuards:
    """The record of one confined program, until `remove`. Raises OSError if it cannot be written."""

    def __init__(self, home: str, session: str, before: GuardState, accepted: Mapping[str, bytes]) -> None:
        self._path = Path(home, FOLDER, f"{os.path.basename(session)}-{os.getpid()}-{next(_NUMBERS)}.json")
        self._record = GuardRecord(session, before, {})
        self._record.accepted = {path: digest for path, digest in accepted.items() if self._concerns(path)}
        self._accepted = dict(accepted)
        self._write()

    def accept(self, path: str, digest: bytes) -> None:
        """A file with this content stays. Raises OSError."""
        self._accepted[path] = digest
        if self._concerns(path):
            self._record.accepted[path] = digest
            self._write()

    def outlive(self, pid: int) -> None:
        """The program may go on when the session has ended. Raises OSError."""
        self._record.pid, self._record.identity = pid, process_identity(pid)
        self._write()

    def rest(self) -> bool:
        """Record that the program has ended, and return whether the record can serve another one. Raises OSError."""
        if self._record.pid:
            self.remove()
            return False
        return _rename(self._path, self._idle_path)

    def resume(self, home: str, before: GuardState, accepted: Mapping[str, bytes]) -> bool:
        """Record that another program runs, if this would be its record. Raises OSError."""
        if (home, before) != (str(self._path.parents[1]), self._record.before):
            return False
        if accepted != self._accepted:
            return False
        return _rename(self._idle_path, self._path)

    def remove(self) -> None:
        """Somebody has looked."""
        self._path.unlink(missing_ok=True)
        self._idle_path.unlink(missing_ok=True)
        with suppress(OSError):  # others have theirs in it
            self._path.parent.rmdir()

    @property
    def _idle_path(self) -> Path:
        return self._path.with_suffix(IDLE)

    def _concerns(self, path: str) -> bool:
        before = self._record.before
        return any(is_inside(path, place) for place in (*before.places, *before.trees, *before.git_folders))

    def _write(self) -> None:
        try:
            data = msgspec.json.encode(self._record)
        except UnicodeEncodeError as error:
            raise OSError("a name that is not UTF-8 cannot be recorded") from error
        replace_file(self._path, data, make_folders=True, sync=False)


def _rename(path: Path, name: Path) -> bool:
    """Return whether the record still existed: whoever has removed it has looked."""
    try:
        os.rename(path, name)
    except FileNotFoundError:
        return False
    return True


def runs_elsewhere(home: str, roots: Sequence[str], session: str) -> bool:
    """Whether a confined program of another session, or one that goes on without its session, could change guards below these folders.
    session: the folder of one's own."""
    folder = os.path.join(home, FOLDER)
    try:
        names = os.listdir(folder)
    except OSError:  # none runs anywhere
        return False
    return any(_runs_elsewhere(os.path.join(folder, name), roots, session) for name in names if not name.endswith(IDLE))


def _runs_elsewhere(path: str, roots: Sequence[str], session: str) -> bool:
    try:
        record = read_json(path, GuardRecord)
        if (record.session == session and not record.pid) or record.is_over:
            return False
    except FileNotFoundError:  # it has just ended
        return False
    except (OSError, msgspec.DecodeError):  # nobody knows
        return True
    return any(is_inside(guard, root) for guard in record.before.places for root in roots)


def settle_records(home: str | Path) -> list[str]:
    """Put aside what programs have made at whose end nobody was there; the new names."""
    moved: list[str] = []
    folder = os.path.join(home, FOLDER)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    for name in names:
        path = os.path.join(folder, name)
        try:
            record = read_json(path, GuardRecord)
            if not record.is_over:
                continue
            if not name.endswith(IDLE):
                moved += record.before.settle(record.accepted)
        except msgspec.DecodeError:
            pass  # a machine without power has torn it
        except OSError:
            continue  # another start has just settled it, or nobody knows
        with suppress(OSError):
            os.unlink(path)
    with suppress(OSError):
        os.rmdir(folder)
    return moved
