"""Conversations on disk: log, lock, inbox, home folder.

What can go wrong with conversations on disk.

ContextError
├── BadName           a name that no context may have (exit 2)
├── NoSuchContext     there is no context of that name (any more)
├── NameTaken         a rename onto an existing context
├── ContextHeld       another process works on it (exit 4)
├── StoreUnwritable   the disk is full, read-only, or not ours
├── StoreUnreadable   a file that is needed cannot be read
├── LogLost           somebody deleted or changed the log in the middle of a turn; what was in it is put into a file beside it
├── MigrationFailed   an old context.json cannot be understood; it is left alone
└── TooLong           a text over its limit; the file is left alone
"""

import errno
from math import inf
from os import path as os_path
from os import strerror
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from cru.core.base.files.regular import open_regular, read_regular
from cru.core.base.values.errors import CruError


class ContextSettings(Struct, frozen=True):
    """Names and defaults follow chibi's config.toml."""

    RANGES: ClassVar[dict[str, tuple[float, float]]] = {
        "lock_heartbeat_seconds": (1, 3600),
        "reflection_character_limit": (0, inf),
        "record_file_mb": (0.001, inf),
        "record_files": (1, 999),
        "record_max_age_days": (0, inf),
    }

    username: str = "user"
    lock_heartbeat_seconds: int = 30
    reflection_enabled: bool = True
    reflection_character_limit: int = 10000
    record_file_mb: float = 8.0
    record_files: int = 5
    record_max_age_days: int = 90
    transcript: bool = False


DOCS: dict[str, str] = {
    "username": "how you are called in the log and in the system prompt",
    "lock_heartbeat_seconds": "how often the lock of a context in use is refreshed; it counts as stale after 1.5 times this",
    "reflection_enabled": "whether the reflection (notes that the agent keeps across contexts) is part of the system prompt",
    "reflection_character_limit": "the most bytes of UTF-8 that the reflection may have",
    "record_file_mb": "the most MiB of one file of records (trace.jsonl, journal.jsonl, hooks.jsonl); a full one is put aside",
    "record_files": "how many files of each kind of records are kept, the one that is written to included",
    "record_max_age_days": "the most days that records are kept; 0 = any number, the other two limits count",
    "transcript": "whether each finished turn is appended to transcript.md in the context's folder",
}


class ContextError(CruError):
    """Root of this room's errors."""


class BadName(ContextError):
    code = 2


class NoSuchContext(ContextError):
    pass


class NameTaken(ContextError):
    pass


class ContextHeld(ContextError):
    code = 4


class StoreUnwritable(ContextError):
    pass


class StoreUnreadable(ContextError):
    pass


class LogLost(ContextError):
    pass


class MigrationFailed(ContextError):
    pass


class TooLong(ContextError):
    pass


_ELSEWHERE = "make it writable for this user, or choose another home with --home"
_NO_LINK = "put the file itself in place of the link, or remove the link; then run the same command again"
_HINTS = {
    errno.ENOSPC: "free some space, then run the same command again",
    errno.EDQUOT: "free some space (the quota is used up), then run the same command again",
    errno.EROFS: _ELSEWHERE,
    errno.EACCES: _ELSEWHERE,
    errno.EPERM: _ELSEWHERE,
    errno.EISDIR: "a folder stands where a file must be; move it away",
    errno.ENOTDIR: "a file stands where a folder must be; move it away",
    errno.EEXIST: "a file stands where a folder must be; move it away",
    errno.ENOENT: "the folder was deleted or renamed meanwhile; list the contexts with -L",
}


def os_error_text(error: OSError) -> str:
    """The operating system's own words."""
    return strerror(error.errno) if error.errno else str(error)


def write_error(path: Path | str, error: OSError) -> StoreUnwritable:
    """The error for a failed write, with the next step that its errno suggests."""
    if error.errno == errno.ELOOP:
        return StoreUnwritable(
            f"cannot write {path}: it is a link, and what cru keeps stays in its own folder", _NO_LINK
        )
    hint = _HINTS.get(error.errno or 0, "look at the disk, then run the same command again")
    if error.errno == errno.ENOENT and not os_path.exists(Path(path).parent.parent):  # a home that cannot be made
        hint = _ELSEWHERE
    return StoreUnwritable(f"cannot write {path}: {os_error_text(error)}", hint)


def read_error(path: Path | str, error: OSError) -> StoreUnreadable:
    """The error for a failed read."""
    return StoreUnreadable(
        f"cannot read {path}: {os_error_text(error)}", "make it readable for this user, or move it away"
    )


def open_if_exists(path: Path) -> int | None:
    """A file descriptor for reading; None if there is no such file. Raises StoreUnreadable."""
    try:
        return open_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise read_error(path, error) from error


def has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def read_if_exists(path: Path) -> bytes | None:
    """The content of a file, None if there is none. Raises StoreUnreadable."""
    try:
        return read_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise read_error(path, error) from error


class write_errors:
    """Turns an OSError of the block into StoreUnwritable naming `path`."""

    __slots__ = ("_path",)

    def __init__(self, path: Path | str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise write_error(self._path, error) from error
