"""What commands change: the work tree is taken in before the first command of a turn, and looked at behind the commands, while the
model answers."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.values.cancellation import Scope, begin
from cru.core.revisions import StoreFailed
from cru.core.revisions.git_repository import find_git, read_head
from cru.core.revisions.records import (
    ANY_MODE,
    ChangeOrigin,
    CommandLook,
    FileChange,
    FileKind,
    PathState,
    make_change,
)
from cru.core.revisions.store import RevisionStore
from cru.core.revisions.work_tree import IndexedFile, LookFailed, PrivateIndex

MOST_FILES = 1000
"""New or newly changed files that a look keeps; a command that changes more is named by `/undo`."""
LONG_LIST = 200
"""Changed files from which on the work tree is taken in again: checking so many takes about as long as a run of git."""
PAUSE = 0.05
"""Seconds between the end of a command and the look behind it. A command that begins earlier shares its look: only a model that
answers faster than people can read does that, and the runs of git would cost more than such commands."""
LONGEST = 1.0
"""Seconds after which a look begins even if commands follow each other without a pause: a kill loses no more."""
RACY = 2.0
"""Seconds that a file must have been unchanged before its status proves that it is the same: file systems count time in ticks,
FAT in steps of two seconds."""
SHOWN = 200
MOST_IGNORED = 2000
"""Files and folders that git ignores whose disappearance is noticed. More would slow down the first command of each turn."""
LINK = 0o120000

Stamp = tuple[int, ...]


class SeenFile(Struct, frozen=True):
    """A file as the last look found it.

    stamp: its status then; None: it proves nothing
    """

    state: PathState
    stamp: Stamp | None


class CommandWatcher:
    """Finds out what the commands of one session change. It records what it cannot find out with the reason, and `/undo` names it."""

    def __init__(self, store: RevisionStore, index: PrivateIndex, warn: Callable[[StoreFailed], object]) -> None:
        self._store = store
        self._index = index
        self._warn = warn
        self._prompt: str | None = None
        self._why = ""
        self._head = ""
        self._since = 0.0
        self._running = 0
        self._is_stale = False
        self._seen: dict[str, SeenFile] = {}
        self._ignored: dict[str, Stamp] = {}
        self._entering = asyncio.Lock()
        self._pending: list[CommandLook] = []
        self._oldest = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._look: asyncio.Task[None] | None = None

    @property
    def is_looking(self) -> bool:
        """Whether a look is pending or under way."""
        return bool(self._pending) or (self._look is not None and not self._look.done())

    async def before(self, origin: ChangeOrigin) -> None:
        """Prepare for a command that is about to run: it is compared with what exists now."""
        async with self._entering:  # commands that begin together all wait for the work tree to be taken in
            if self._pending and _turn(self._pending[-1].origin) == _turn(origin) and not self._is_first(origin):
                self._start_timer(LONGEST)
            else:
                self.begin_look()
            await self._wait()
            if self._is_first(origin):
                await self.settle()  # what ended meanwhile is compared with what was taken in before it
                if not self._is_given_up:
                    await self._take_in()
                self._prompt = origin.prompt
            self._running += 1

    def _is_first(self, origin: ChangeOrigin) -> bool:
        """Return whether the work tree is taken in before this command: the first one of its prompt, while no other runs."""
        return self._prompt != origin.prompt and not self._running

    def after(self, origin: ChangeOrigin, command: str, why: str = "") -> None:
        """Note that a command has ended, and look behind it soon. why: it may still change files, or its effects cannot be known."""
        self._running -= 1
        if self._pending and _turn(self._pending[-1].origin) != _turn(origin):
            self.begin_look()
        if not self._pending:
            self._oldest = asyncio.get_running_loop().time()
        self._pending.append(CommandLook(origin, command[:SHOWN], why))
        self._start_timer(PAUSE)

    def _start_timer(self, seconds: float) -> None:
        """Look behind the pending commands in so many seconds, and no later than LONGEST after the first of them ended."""
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(min(loop.time() + seconds, self._oldest + LONGEST), self.begin_look)

    def begin_look(self) -> None:
        """Look behind the pending commands now, if there are any."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pending:
            pending, self._pending = self._pending, []
            # in a scope of its own: what a finished command changed is recorded, whoever interrupts the turn meanwhile
            self._look = begin(self._look_behind(self._look, pending), Scope())

    async def settle(self) -> None:
        """Look behind all commands that have ended, and wait for it, including those that end meanwhile."""
        while self.is_looking:
            self.begin_look()
            await self._wait()

    async def _wait(self) -> None:
        """Wait for the look that is under way."""
        while (look := self._look) is not None and not look.done():
            await asyncio.wait([look])
            if not look.cancelled():
                look.result()  # what raises there is a defect, and must not be lost

    async def close(self) -> None:
        await self.settle()
        self._index.remove()

    @property
    def _is_given_up(self) -> bool:
        """What took too long once is not tried again: each first command of a turn would wait for it."""
        return bool(self._why)

    async def _take_in(self) -> None:
        try:
            self._head = read_head(self._index.places)
            self._since = time.time()
            self._seen = {}
            self._is_stale = False
            await self._index.take_in()
            self._ignored = await asyncio.to_thread(_stamp_ignored, await self._index.ignored())
        except LookFailed as error:
            self._why = error.message
            self._index.remove()

    async def _look_behind(self, earlier: asyncio.Task[None] | None, pending: Sequence[CommandLook]) -> None:
        """Record what commands of one turn have changed. The changes count as those of the last of them."""
        if earlier is not None and not earlier.done():
            await asyncio.wait([earlier])
        head = read_head(self._index.places)
        has_moved = bool(self._head) and self._head != head
        try:
            changes, seen, why = await self._try_to_find(pending[-1].origin)
            now = round(time.time(), 3)
            looks = [replace(look, why=look.why or why, moved_head=has_moved, time=now) for look in pending]
            looks[-1] = replace(looks[-1], ignored=await asyncio.to_thread(lambda: tuple(self._find_ignored())))
            with self._store.writing():
                self._store.record(*changes)
                self._store.record_looks(*looks)
            self._store.changed += bool(why)  # not all changes are known: there may be one
            self._seen |= seen  # only now: what could not be recorded is found again by the next look
            self._head = head
        except StoreFailed as error:
            self._warn(error)
        if self._is_stale and not self._running and not self._pending and not self._is_given_up:
            await self._take_in()

    async def _try_to_find(self, origin: ChangeOrigin) -> tuple[list[FileChange], dict[str, SeenFile], str]:
        """Return the changes, the files as they are now, and why not all changes are known."""
        if self._is_given_up:
            return [], {}, self._why
        try:
            return *await self._find_changes(origin), ""
        except LookFailed as error:
            self._is_stale = True  # else each later look would find the same again
            return [], {}, error.message

    async def _find_changes(self, origin: ChangeOrigin) -> tuple[list[FileChange], dict[str, SeenFile]]:
        """Compare files with how they were taken in, or recorded since. Raises LookFailed, StoreFailed."""
        tracked, new = await self._index.changed()
        known = await asyncio.to_thread(self._known)
        if (count := sum(name not in known for name in (*tracked, *new))) > MOST_FILES:
            raise LookFailed(f"{count:,} files were changed")
        files = await self._index.describe(
            [name for name in tracked if name not in known], [name for name in new if name not in known]
        )
        contents = await self._index.contents(files, self._store.settings.max_total_mb << 19)
        self._is_stale = len(tracked) + len(new) > LONG_LIST
        return await asyncio.to_thread(self._compare, known, files, contents, origin)

    def _find_ignored(self) -> Iterator[str]:
        """Find the files that git ignores and that were removed or changed, each once; of a removed folder only the folder."""
        gone: set[str] = set()
        for name, before in list(self._ignored.items()):
            now = _stamp_of_ignored(name, before)
            if now == before:
                continue
            if now is None:
                del self._ignored[name]
                gone.add(name)
            else:
                self._ignored[name] = now
            if os.path.dirname(name) not in gone:
                yield os.fsencode(name).decode("utf-8", "replace")

    def _known(self) -> dict[str, PathState]:
        """Return the state of each file that was seen or recorded since the work tree was taken in. Raises StoreFailed."""
        recorded = {c.file: c.after for c in self._store.changes() if c.time >= self._since}
        return {name: file.state for name, file in self._seen.items()} | recorded

    def _compare(
        self,
        known: Mapping[str, PathState],
        files: Sequence[IndexedFile],
        contents: Mapping[str, bytes],
        origin: ChangeOrigin,
    ) -> tuple[list[FileChange], dict[str, SeenFile]]:
        """Runs in a thread, beside the model's answer: there may be many files. Raises StoreFailed."""
        by_name = {file.file: file for file in files}
        changes: list[FileChange] = []
        seen: dict[str, SeenFile] = {}
        with self._store.writing():
            for name in (*by_name, *known):
                stamp = _stamp(name)
                if stamp is not None and name in self._seen and self._seen[name].stamp == stamp:
                    continue
                after = self._store.keep(name)
                before = known[name] if name in known else self._before(by_name[name], contents, after)
                if not before.is_same(after) and not (name in known and before == after):
                    changes.append(make_change(name, before, after, origin))
                seen[name] = SeenFile(after, stamp)
        return changes, seen

    def _before(self, file: IndexedFile, contents: Mapping[str, bytes], after: PathState) -> PathState:
        if not file.object:
            return PathState(FileKind.MISSING, folders=file.folders)
        data = contents.get(file.object)
        if data is None:  # git has it in another form, or it is gone
            return PathState(FileKind.FILE)
        if file.mode == LINK:
            return replace(self._store.keep_data(data, ANY_MODE), kind=FileKind.LINK)
        return self._store.keep_data(data, _mode_before(file.mode, after))


def _turn(origin: ChangeOrigin) -> tuple[str, str, str]:
    """Return whose command it is: only commands of the same agent in the same turn share a look."""
    return origin.session, origin.prompt, origin.agent


def _stamp(file: str) -> Stamp | None:
    """Return what changes with a file; None if that proves nothing: no file exists, or it was changed just now."""
    try:
        status = os.lstat(file)
    except OSError:
        return None
    if status.st_ctime + RACY > time.time():
        return None
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev, status.st_mode


def _stamp_ignored(names: Iterable[str]) -> dict[str, Stamp]:
    """Return the stamps of ignored files, and of the folders among them what lies directly in there."""
    stamps: dict[str, Stamp] = {}
    for name in names:
        path = name.rstrip("/")
        stamps[path] = () if name.endswith("/") else (_stamp_of_ignored(path, (0,)) or ())
        if name.endswith("/"):
            stamps |= dict.fromkeys((os.path.join(path, entry) for entry in _list(path)), ())
        if len(stamps) > MOST_IGNORED:
            break
    return dict(islice(stamps.items(), MOST_IGNORED))


def _list(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # it went just now, or is not ours
        return []


def _stamp_of_ignored(path: str, before: Stamp) -> Stamp | None:
    """Return what tells whether an ignored file was changed; None if it is gone. Programs build folders anew all the time, so of folders
    and of what lies in them only whether it exists counts: () before, () now."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode) if before else ()


def _mode_before(indexed: int, after: PathState) -> int:
    """Guess the permission bits from those behind the command: git knows only whether a file can be executed.

    No permission is given that the umask withholds from new files.
    """
    is_program = bool(indexed & 0o111)
    if after.kind is not FileKind.FILE:
        return 0o755 & ~withheld() if is_program else ANY_MODE
    bits = after.mode | (after.mode & 0o444) >> 2 if is_program else after.mode & ~0o111
    return after.mode if is_program == bool(after.mode & 0o111) else bits & ~withheld()


@cache
def withheld() -> int:
    """Return the permissions that the umask withholds from the group and from others, but for that to write."""
    umask = os.umask(
        0o077
    )  # it can only be read by setting it; another thread makes a private file meanwhile, at worst
    os.umask(umask)
    return umask & 0o055


def make_watcher(
    store: RevisionStore, root: os.PathLike[str], path: str, warn: Callable[[StoreFailed], object]
) -> CommandWatcher | None:
    """None if commands are not to be looked at, or the project is in no git work tree."""
    places = find_git(Path(root)) if store.settings.commands else None
    if places is None:
        return None
    return CommandWatcher(
        store, PrivateIndex(places, Path(root), store.folder, path, store.settings.command_seconds), warn
    )
