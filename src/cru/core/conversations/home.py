"""The home folder: all contexts, which one is current, and what they share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from cru.core.base.files.regular import make_private_folder
from cru.core.conversations import (
    BadName,
    ContextSettings,
    NameTaken,
    NoSuchContext,
    TooLong,
    os_error_text,
    read_error,
    read_if_exists,
    write_error,
    write_errors,
)
from cru.core.conversations.entries import LogProblem
from cru.core.conversations.identity import FORKING, check_name, ensure_session_id, is_name, known_origin, make_folder
from cru.core.conversations.lock import ContextLock, LockState, clamp_heartbeat, is_stale, is_suspended, read_lock
from cru.core.conversations.state import (
    CONTEXTS,
    HomeState,
    add_context,
    begin_rename,
    bind_mark,
    drop_context,
    end_rename,
    load_state,
    save_state,
)
from cru.core.conversations.store import FileContext

if TYPE_CHECKING:
    from cru.core.conversations.inbox import InboxMessage

REFLECTION, DELETED = "prompts/reflection.md", ".deleted-"
MEMORY_DISKS = ("/dev/shm", "/tmp")
MOST_NAMED = 8


def private_parents(env: Mapping[str, str]) -> list[str]:
    """Where runs that keep nothing have their folders (see private.py), the first choice first. A TMPDIR that somebody else has taken away
    is none."""
    chosen = env.get("TMPDIR", "")
    bases = (chosen,) if chosen.startswith("/") and os.path.isdir(chosen) else MEMORY_DISKS
    return [os.path.join(base, f"cru-{os.getuid()}") for base in bases]


class Home:
    """A home folder (`~/.cru`, or chibi's `~/.chibi` as it is). Nothing is read or made before a method needs it.

    Whatever writes raises StoreUnwritable; whatever takes a name raises BadName.
    """

    def __init__(self, path: Path, settings: ContextSettings | None = None, project: str = "") -> None:
        """project: the root of the project whose current context counts, "" = the one of all that is in no project"""
        self.path = path
        self.project = project
        self._contexts = path / CONTEXTS
        self._settings = settings or ContextSettings()
        self._heartbeat = clamp_heartbeat(self._settings.lock_heartbeat_seconds)
        self._known: HomeState | None = None
        self.failed_removals: list[str] = []
        """What a removal could not clear away: sentences for people."""

    def prepare(self) -> tuple[LogProblem, ...]:
        """Read which context is current; what is wrong with state.json or session.json. Changes and makes nothing."""
        self._known = load_state(self.path, self.project)
        return self._known.problems

    @property
    def _state(self) -> HomeState:
        if self._known is None:
            self._known = load_state(self.path, self.project)
        return self._known

    @property
    def current(self) -> str:
        """The name of the current context, to begin with "default", in a project after its folder; there may be no folder for it yet."""
        return self._state.current

    @property
    def is_new(self) -> bool:
        """Whether this project has no context of its own yet; `current` is then what it would be called."""
        return self._state.is_new

    def foreign_origin(self, name: str) -> str:
        """The project that a conversation began in, if that is another one than this; "" if it is not, or nobody knows."""
        origin = known_origin(self._contexts / name)
        return origin if origin != self.project else ""

    def claim(self) -> str:
        """Give this project a context of its own if it has none. Returns what a person is to know of that, "" = nothing."""
        if not self.is_new:
            return ""
        from cru.core.conversations.claim import claim_context

        sentence = claim_context(self.path, self.project)
        self._known = load_state(self.path, self.project)
        return sentence

    @property
    def previous(self) -> str | None:
        """The name of the context that was current before."""
        return self._state.previous

    @property
    def expiring(self) -> tuple[str, ...]:
        """The contexts that destroy themselves (see expiry.py)."""
        return self._state.expiring

    def names(self) -> list[str]:
        """Every context that is listed or has a folder, sorted."""
        try:
            folders = [e.name for e in os.scandir(self._contexts) if e.is_dir()]
        except FileNotFoundError:
            folders = []
        except OSError as error:
            raise read_error(self._contexts, error) from error
        return sorted({*filter(is_name, folders), *load_state(self.path).names})

    def resolve(self, name: str) -> str:
        """The name that is meant by `-` (the previous context), `new` or `new:PREFIX` (a new name from the local time, claimed
        at once by making its folder), or a name itself."""
        if name == "-":
            if self.previous is None:
                raise BadName("there is no previous context", "name one; cru -L lists them")
            return self.previous
        if name == "new":
            return self._claim_new_name("")
        if name.startswith("new:"):
            if name == "new:":
                raise BadName("'new:' needs a prefix", "write new:PREFIX, or just new")
            return self._claim_new_name(f"{name[4:]}_")
        return check_name(name)

    def resolve_existing(self, name: str) -> str:
        """The name of a context that should be there: `-` is the previous one, and nothing is made."""
        return self.resolve(name) if name == "-" else check_name(name)

    def open(self, name: str) -> FileContext:
        """The context of that name, made if it is missing. Raises StoreUnreadable, MigrationFailed."""
        folder = self.folder_of(name)
        make_folder(folder)
        return FileContext(folder, self._settings, self.project)

    def find(self, name: str) -> FileContext:
        """The context of that name, which must be there. Raises NoSuchContext, and what `open` raises."""
        self._require_exists(name)
        return self.open(name)

    def switch(self, name: str) -> None:
        """Make a context current, for later runs too; the one before becomes the previous one."""
        check_name(name)
        state = load_state(self.path, self.project)
        if name != state.current or name not in state.names:
            save_state(self.path, name, state.previous if name == state.current else state.current, self.project)
        self._known = load_state(self.path, self.project)

    def enlist(self, name: str) -> None:
        """See that state.json lists a context. One that cannot be read stays as it is: who opens it is told."""
        state = self._state
        if name not in state.names and not state.problems:
            add_context(self.path, name, state.outside)
            self._known = load_state(self.path, self.project)

    def exists(self, name: str) -> bool:
        return self.folder_of(name).is_dir()

    def status(self, name: str) -> str:
        """Return none, active or stale. A holder that is suspended counts as active."""
        lock = self._read_lock(name)
        if lock is None:
            return "none"
        is_free = is_stale(lock, self._heartbeat) and not is_suspended(self.folder_of(name), lock)
        return "stale" if is_free else "active"

    def holder(self, name: str) -> dict[str, object] | None:
        """Who holds it: {pid, host, command, since}; {since} if another program does; None if nobody does."""
        lock = self._read_lock(name)
        if lock is None:
            return None
        return asdict(lock.owner) if lock.owner is not None else {"since": lock.last_beat}

    def rename(self, old: str, new: str) -> None:
        """Raises NoSuchContext, NameTaken, ContextHeld, BadName."""
        if new == "new":
            raise BadName("a context cannot be renamed to 'new', which means a new name", "choose another one")
        folder, target = self.folder_of(old), self.folder_of(new)
        self._require_exists(old)
        with ContextLock(folder, f"rename to {new}", self._heartbeat):
            if target.exists():
                raise NameTaken(f"there is a context '{new}' already", "choose another name, or delete that one first")
            bind_mark(self.path, folder)
            begin_rename(self.path, old, new, ensure_session_id(folder)[0])
            with write_errors(folder):
                folder.rename(target)
            end_rename(self.path, old, new)
        self._known = load_state(self.path, self.project)

    def delete(self, name: str, *, only_if: Callable[[], bool] = lambda: True) -> bool:
        """Remove a context with all its files; False if there was none, or `only_if`, asked while nobody else can work on it, says
        no. Where it was the current one, the previous one becomes current, or "default" (in a project: one that is yet to be made). What
        could not be cleared away is then in `failed_removals`. Raises ContextHeld, also if somebody has it open."""
        from cru.core.conversations.presence import refuse_if_attended

        folder = self.folder_of(name)
        exists = folder.is_dir()
        if exists:
            with ContextLock(folder, "delete", self._heartbeat, to_remove=True), write_errors(folder):
                if not only_if():
                    return False
                refuse_if_attended(folder)
                bind_mark(self.path, folder)
                self._remove(folder)
            self._sweep()
        state = load_state(self.path, self.project)
        if exists or name in (*state.names, *state.expiring, state.current, state.previous):
            drop_context(self.path, name, self.exists)
        self._known = load_state(self.path, self.project)
        return exists or name in state.names

    @property
    def reflection(self) -> str:
        """What the agent noted across contexts; "" if nothing."""
        return (read_if_exists(self.path / REFLECTION) or b"").decode("utf-8", "replace")

    def write_reflection(self, text: str, limit_bytes: int | None = None) -> None:
        """Replace it. Raises TooLong over the limit (the setting's, unless given) and leaves the file alone."""
        from cru.core.base.files.atomic import replace_file

        limit = self._settings.reflection_character_limit if limit_bytes is None else limit_bytes
        data = text.encode("utf-8", "replace")
        if len(data) > limit:
            raise TooLong(
                f"the reflection has {len(data)} bytes, the limit is {limit}", "shorten it; nothing was changed"
            )
        path = self.path / REFLECTION
        with write_errors(path):
            make_private_folder(path.parent)
            replace_file(path, data, keep_mode=False)

    def send(self, message: InboxMessage) -> None:
        """Put a message into the inbox of the context `message.to`, whose folder is made if it is missing."""
        from cru.core.conversations.inbox import deliver

        deliver(self.folder_of(message.to), message)

    def folder_of(self, name: str) -> Path:
        """Return the folder of a context, which may be missing. Raises BadName."""
        return self._contexts / check_name(name)

    def _read_lock(self, name: str) -> LockState | None:
        return read_lock(self.folder_of(name), self._heartbeat)

    def _require_exists(self, name: str) -> None:
        if self.exists(name):
            return
        from cru.core.base.config.closest import did_you_mean

        names = [known for known in self.names() if known != name]  # it may be listed without a folder
        shown = ", ".join([*names[:MOST_NAMED], *(["…"] if len(names) > MOST_NAMED else [])])
        raise NoSuchContext(
            f"there is no context '{name}'", did_you_mean(name, names) or f"there are: {shown or 'none'}"
        )

    def _claim_new_name(self, prefix: str) -> str:
        stem = check_name(prefix + time.strftime("%Y%m%d_%H%M%S"))
        name, number = stem, 2
        make_folder(self._contexts)
        while True:
            try:
                (self._contexts / name).mkdir(mode=0o700)
                return name
            except FileExistsError:
                name, number = f"{stem}_{number}", number + 1
            except OSError as error:
                raise write_error(self._contexts / name, error) from error

    def _remove(self, folder: Path) -> None:
        """Take it away with one step: its name is free at once."""
        if folder.is_symlink():
            folder.unlink()
        else:
            folder.rename(self._contexts / f"{DELETED}{os.urandom(4).hex()}")

    def clear_remains(self) -> None:
        """Delete what a kill left of a removal or a fork; what could not be cleared away is then in `failed_removals`."""
        try:
            names = os.listdir(self._contexts)
        except OSError:
            return  # there is none yet; what cannot be listed is told by who needs it
        if any(name.startswith(DELETED) for name in names):
            self._sweep()
        if any(name.startswith(FORKING) for name in names):
            from cru.core.conversations.forks import sweep_forks

            sweep_forks(self.path)

    def _sweep(self) -> None:
        """Delete what `_remove` took away, and what a kill left of an earlier removal."""
        import shutil

        self.failed_removals = []
        for path in self._contexts.glob(f"{DELETED}*"):
            try:
                if path.is_symlink():
                    path.unlink()
                elif path.is_dir():
                    shutil.rmtree(path)
            except FileNotFoundError:
                pass  # another process is at the same
            except OSError as error:
                self.failed_removals.append(f"{path} could not be removed: {os_error_text(error)}")
