"""The revisions of one project: contents by their SHA-256, and a line for each change. Private, bounded, and shared by all runs of cru."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from cru.core.base.files import unsynced
from cru.core.base.files.atomic import replace_file
from cru.core.base.files.regular import (
    PRIVATE,
    append_lines,
    make_private_folder,
    open_regular,
    read_range,
    read_regular,
)
from cru.core.revisions import FOLDER, NotKept, StoreFailed, UndoSettings
from cru.core.revisions.records import (
    CommandLook,
    FileChange,
    FileKind,
    PathState,
    decode_changes,
    decode_looks,
    encode_records,
)
from cru.core.revisions.retention import contents_of, select_kept

CHANGES, LOOKS, BLOBS, LOCK = "changes.jsonl", "commands.jsonl", "blobs", ".lock"
MOST_LOOKS = 2_000
MOST_BYTES = 512 << 20
"""Of the file of changes that is read at all."""
OVERFULL = 32 << 20
"""Bytes of changes that only runs leave which were killed before they could clean up."""


def project_folder(home: Path, root: Path) -> Path:
    """Where the revisions of a project are."""
    real = os.path.realpath(root)
    plain = "".join(char if char.isascii() and char.isalnum() else "_" for char in os.path.basename(real))[:40]
    return home / FOLDER / f"{plain}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:16]}"


class RevisionStore:
    """One folder. What cannot be read or written raises StoreFailed."""

    def __init__(self, folder: Path, settings: UndoSettings | None = None) -> None:
        self.folder = folder
        self.settings = settings or UndoSettings()
        self._is_ready = False
        self._reading = Lock()
        self._known: dict[str, FileChange] = {}
        self._known_file = (0, 0, 0)  # device, inode, and how much of it was read
        self._states: set[tuple[str, FileKind, str]] = set()
        self.new_states = self.changed = 0

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Contents and changes that are written inside stay: nobody cleans up meanwhile."""
        with self._locked(exclusive=False):
            yield

    def keep(self, path: str) -> PathState:
        """What lies there, with its content kept, unless it is too large. Inside of `writing`."""
        state, data = read_state(path, self.settings.max_file_mb << 20)
        if data is not None:
            self.put(state.sha, data)
        return state

    def keep_data(self, data: bytes, mode: int) -> PathState:
        """What a file with that content will be. Inside of `writing`."""
        sha = hashlib.sha256(data).hexdigest()
        if len(data) > self.settings.max_file_mb << 20:
            return PathState(FileKind.FILE, "", len(data), mode)
        self.put(sha, data)
        return PathState(FileKind.FILE, sha, len(data), mode)

    def look(self, path: str) -> PathState:
        """What lies there; nothing is kept. Raises StoreFailed if that cannot be read."""
        return read_state(path, self.settings.max_file_mb << 20)[0]

    def put(self, sha: str, data: bytes) -> None:
        """Keep a content. Inside of `writing`."""
        blob = self._blob(sha)
        if self._is_whole(blob, len(data)):
            return
        with _failures(blob):
            for folder in (blob.parent.parent, blob.parent):  # each private: `parents` would not make them so
                folder.mkdir(mode=0o700, exist_ok=True)
            replace_file(blob, data, new_mode=PRIVATE, keep_mode=False, follow=False, sync=False)
        unsynced.add(os.fspath(blob))

    def has(self, state: PathState) -> bool:
        """Whether it can be brought back."""
        if state.kind is FileKind.MISSING:
            return True
        if state.kind not in (FileKind.FILE, FileKind.LINK) or not state.sha:
            return False
        return self._is_whole(self._blob(state.sha), state.size)

    @staticmethod
    def _is_whole(blob: Path, size: int) -> bool:
        """Whether a content is kept. A power cut before the next sync may leave an empty file under its name."""
        try:
            return os.stat(blob).st_size == size
        except OSError:
            return False

    def content(self, state: PathState) -> bytes:
        """Raises NotKept, StoreFailed."""
        if not state.sha:
            raise NotKept(
                f"a file of {state.size:,} bytes is not kept", "`[undo] max_file_mb` says how large one may be"
            )
        blob = self._blob(state.sha)
        try:
            with _failures(blob):
                data = read_regular(blob)
        except StoreFailed as error:
            if blob.exists():
                raise
            raise NotKept("this revision is kept no more") from error
        if hashlib.sha256(data).hexdigest() != state.sha:
            raise NotKept(f"{blob} is damaged")
        return data

    def record(self, *changes: FileChange) -> None:
        """Write changes down. Inside of `writing`. A kill leaves them whole or not at all."""
        if changes:
            self._append(CHANGES, encode_records(changes))
            unsynced.add(os.fspath(self.folder / CHANGES))
            self._count_states(changes)

    def _count_states(self, changes: Sequence[FileChange]) -> None:
        """Count changes, and the states of files that were not there before in this session: what a model writes twice is no progress."""
        for change in changes:
            self.changed += change.after.kind is not FileKind.UNKNOWN and not change.before.is_same(change.after)
            state = change.after
            self._states.add((change.path, change.before.kind, change.before.sha))
            if state.kind is not FileKind.UNKNOWN and (change.path, state.kind, state.sha) not in self._states:
                self._states.add((change.path, state.kind, state.sha))
                self.new_states += 1

    def record_looks(self, *looks: CommandLook) -> None:
        """Inside of `writing`."""
        self._append(LOOKS, encode_records(looks))

    def _append(self, name: str, data: bytes) -> None:
        self._make_folder()
        with _failures(self.folder / name):
            append_lines(self.folder / name, data)

    def changes(self) -> list[FileChange]:
        """All of them, the oldest first."""
        with self._reading:
            return self._read_changes()

    def _read_changes(self) -> list[FileChange]:
        """Only what was added since the last time is read: the chat asks behind each call."""
        try:
            handle = open_regular(self.folder / CHANGES)
        except (FileNotFoundError, NotADirectoryError):
            self._known, self._known_file = {}, (0, 0, 0)
            return []
        except OSError as error:
            raise StoreFailed(f"{self.folder / CHANGES}: {error.strerror or error}") from error
        try:
            with _failures(self.folder / CHANGES):
                status = os.fstat(handle)
                device, inode, offset = self._known_file
                if (status.st_dev, status.st_ino) != (device, inode) or status.st_size < offset:
                    self._known, offset = {}, 0
                data = read_range(handle, offset, min(status.st_size, MOST_BYTES))
        finally:
            os.close(handle)
        whole = data[: data.rfind(b"\n") + 1]
        self._known |= {change.id: change for change in decode_changes(whole)[0]}
        self._known_file = (status.st_dev, status.st_ino, offset + len(whole))
        return list(self._known.values())

    def looks(self) -> list[CommandLook]:
        """Behind commands, the oldest first."""
        return decode_looks(self._read(LOOKS))

    def _read(self, name: str) -> bytes:
        try:
            with _failures(self.folder / name):
                return read_regular(self.folder / name, MOST_BYTES)
        except StoreFailed:
            if (self.folder / name).exists():
                raise
            return b""

    def is_overfull(self) -> bool:
        """Whether the changes should be cleaned before anything is added."""
        try:
            return os.stat(self.folder / CHANGES).st_size > OVERFULL
        except OSError:  # there are none; what is wrong is told by who reads or writes them
            return False

    def clean(self, now: float) -> int:
        """Forget what is too old or too much; how many changes went."""
        if not self.folder.exists():
            return 0
        with self._locked(exclusive=True):
            changes = self.changes()
            kept = select_kept(changes, self.settings, now)
            with _failures(self.folder):
                if len(kept) < len(changes):
                    replace_file(self.folder / CHANGES, encode_records(kept), follow=False, keep_mode=False)
                self._remove_contents(contents_of(kept))
                if len(looks := self.looks()) > MOST_LOOKS:
                    newest = encode_records(looks[-MOST_LOOKS // 2 :])
                    replace_file(self.folder / LOOKS, newest, follow=False, keep_mode=False)
        return len(changes) - len(kept)

    def _remove_contents(self, needed: set[str]) -> None:
        """Those that no change names, and what a kill left of one that was being written."""
        for part in list(_entries(self.folder / BLOBS)):
            for blob in list(_entries(part)):
                if part.name + blob.name not in needed:
                    blob.unlink(missing_ok=True)

    def _blob(self, sha: str) -> Path:
        return self.folder / BLOBS / sha[:2] / sha[2:]

    def _make_folder(self) -> None:
        if self._is_ready:
            return
        with _failures(self.folder):
            make_private_folder(self.folder.parent)
            self.folder.mkdir(mode=0o700, exist_ok=True)
        self._is_ready = True

    @contextmanager
    def _locked(self, *, exclusive: bool) -> Iterator[None]:
        from fcntl import LOCK_EX, LOCK_SH, flock

        self._make_folder()
        with _failures(self.folder / LOCK):
            handle = open_regular(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            with _failures(self.folder / LOCK):
                flock(handle, LOCK_EX if exclusive else LOCK_SH)
            yield
        finally:
            os.close(handle)


def _entries(folder: Path) -> Iterable[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


@contextmanager
def _failures(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreFailed(f"{error.filename or path}: {error.strerror or error}") from error


def read_state(path: str, most: int) -> tuple[PathState, bytes | None]:
    """Return what lies at an absolute path and its content (of a link: where it leads) if it has at most `most` bytes.

    No link is followed, also not in a folder above: what lies behind one has another path. A folder counts as a missing file, because its
    files have states of their own. Raises StoreFailed.
    """
    with _failures(Path(path)):
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return PathState(FileKind.MISSING, folders=_missing_folders(path)), None
        folder = os.path.dirname(path)
        if stat.S_ISDIR(status.st_mode) or os.path.realpath(folder) != folder:
            return PathState(FileKind.MISSING), None
        if stat.S_ISLNK(status.st_mode):
            data = os.fsencode(os.readlink(path))
            return PathState(FileKind.LINK, hashlib.sha256(data).hexdigest(), len(data)), data
        if not stat.S_ISREG(status.st_mode):
            return PathState(FileKind.OTHER), None
        mode = stat.S_IMODE(status.st_mode)
        if status.st_size > most:
            return PathState(FileKind.FILE, "", status.st_size, mode), None
        data = read_regular(path)
        return PathState(FileKind.FILE, hashlib.sha256(data).hexdigest(), len(data), mode), data


def _missing_folders(path: str) -> int:
    folder, count = os.path.dirname(path), 0
    while folder and not os.path.lexists(folder):
        folder, count = os.path.dirname(folder), count + 1
    return count


def find_stores(home: Path) -> list[RevisionStore]:
    """Those of all projects."""
    return [RevisionStore(folder) for folder in sorted(_entries(home / FOLDER)) if (folder / CHANGES).exists()]
