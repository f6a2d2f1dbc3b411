"""What is written down of a change of a file, as lines of JSON."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

VERSION = 1
R = TypeVar("R")
ANY_MODE = -1


class FileKind(Enum):
    """What lies at a path. UNKNOWN: nobody has looked yet, since what changes it still runs, or was killed."""

    MISSING = "missing"
    FILE = "file"
    LINK = "link"
    OTHER = "other"
    UNKNOWN = "unknown"


class ChangedBy(Enum):
    TOOL = "tool"
    COMMAND = "command"
    UNDO = "undo"
    REDO = "redo"
    RESTORE = "restore"


class PathState(Struct, frozen=True, omit_defaults=True):
    """What lies at a path.

    sha: of the content of a file, in hex, or of where a link leads; "": it was too large to look at
    size: bytes
    mode: permission bits; ANY_MODE: nobody knows
    folders: of a missing file: how many folders above it are missing, too
    """

    kind: FileKind
    sha: str = ""
    size: int = 0
    mode: int = ANY_MODE
    folders: int = 0

    def is_same(self, other: PathState) -> bool:
        """Whether both are the same, as far as both are known; what nobody has looked at is the same as nothing."""
        if self.kind is not other.kind or self.kind in (FileKind.UNKNOWN, FileKind.OTHER):
            return False
        if self.kind is FileKind.MISSING:
            return True
        modes = {self.mode, other.mode} - {ANY_MODE} if self.kind is FileKind.FILE else set[int]()
        return bool(self.sha) and self.sha == other.sha and len(modes) < 2

    def connects(self, following: PathState) -> bool:
        """Return whether nothing shows that someone changed the file between this state and the start of the following change."""
        return self == following or self.is_same(following)


MISSING = PathState(FileKind.MISSING)
UNKNOWN = PathState(FileKind.UNKNOWN)


class ChangeOrigin(Struct, frozen=True, omit_defaults=True):
    """What changed a file.

    session: the id of the context
    context: its name at that time
    prompt: the log entry of the prompt that was being answered
    tool, call: the name of the tool, and the call's id
    agent: the sub-agent, "" for the main one
    """

    by: ChangedBy
    session: str = ""
    context: str = ""
    prompt: str = ""
    tool: str = ""
    call: str = ""
    agent: str = ""


class FileChange(Struct, frozen=True, omit_defaults=True):
    """One change of one file. A later line with the same id takes the place of an earlier one.

    name: the bytes of a path that is no UTF-8, in hex
    time: unix seconds
    """

    id: str
    path: str
    before: PathState
    after: PathState
    origin: ChangeOrigin
    time: float = 0.0
    name: str = ""
    version: int = field(default=VERSION, name="v")

    @property
    def file(self) -> str:
        """The path as the system knows it."""
        return os.fsdecode(bytes.fromhex(self.name)) if self.name else self.path


class CommandLook(Struct, frozen=True, omit_defaults=True):
    """That a command was looked behind.

    command: its beginning
    why: why not all that it changed is known; "": it is
    moved_head: the branch or its commit is another one
    ignored: paths of files that git ignores and that were removed or changed
    """

    origin: ChangeOrigin
    command: str = ""
    why: str = ""
    moved_head: bool = False
    ignored: tuple[str, ...] = ()
    time: float = 0.0
    version: int = field(default=VERSION, name="v")


def make_change(file: str, before: PathState, after: PathState, origin: ChangeOrigin) -> FileChange:
    raw = os.fsencode(file)
    try:
        path, name = raw.decode(), ""
    except UnicodeDecodeError:
        path, name = raw.decode("utf-8", "replace"), raw.hex()
    return FileChange(os.urandom(8).hex(), path, before, after, origin, round(time.time(), 3), name)


_encode = msgspec.json.Encoder().encode
_decode_change = msgspec.json.Decoder(FileChange).decode
_decode_look = msgspec.json.Decoder(CommandLook).decode


def encode_records(records: Iterable[FileChange | CommandLook]) -> bytes:
    """As lines."""
    return b"".join([_encode(replace(record, origin=_as_text(record.origin))) + b"\n" for record in records])


def _as_text(origin: ChangeOrigin) -> ChangeOrigin:
    """Without lone surrogates, which no JSON file can hold: a model may name a call as it likes."""
    texts = {name: value for name in origin.__struct_fields__ if isinstance(value := getattr(origin, name), str)}
    clean = {name: text.encode("utf-8", "replace").decode() for name, text in texts.items()}
    return origin if clean == texts else replace(origin, **clean)


def decode_changes(data: bytes) -> tuple[list[FileChange], int]:
    """The changes in their order, and how many lines are none (of a newer version, or torn by a kill)."""
    lines, broken = _decode_lines(data, _decode_change)
    return list({change.id: change for change in lines}.values()), broken


def decode_looks(data: bytes) -> list[CommandLook]:
    return _decode_lines(data, _decode_look)[0]


def _decode_lines(data: bytes, decode: Callable[[bytes], R]) -> tuple[list[R], int]:
    records: list[R] = []
    broken = 0
    for line in data.split(b"\n"):
        try:
            if line:
                records.append(decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            broken += 1
    return records, broken
