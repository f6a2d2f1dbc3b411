"""Entries as lines of JSON, in the shape that chibi reads and writes; and what counts as an anchor."""

import os
import time
from collections.abc import Collection
from typing import Final

import msgspec
from msgspec import Struct, field

from cru.core.base.values.messages import ANCHOR, MESSAGE, Entry

_CREATED, _COMPACTION, _ARCHIVAL = "context_created", "compaction", "archival"


class LogProblem(Struct, frozen=True):
    """Something wrong in a file, for a face to show.

    file: its name
    line: counts from 1; 0: the whole file
    message: what is wrong, for people
    key: of a line that stays as it is: what it is known by, so that it is told once (see reported.py)
    """

    file: str
    line: int
    message: str
    key: str = ""

    def text(self, folder: os.PathLike[str] | str = "") -> str:
        """For people; folder: where the file is."""
        line = f":{self.line}" if self.line else ""
        return f"{os.path.join(folder, self.file)}{line}: {self.message}"


def line_key(line: bytes) -> str:
    """What a line that cannot be read is known by."""
    from hashlib import sha256

    return sha256(line).hexdigest()[:16]


class _EntryLine(Struct, frozen=True, omit_defaults=True):
    """An entry on disk. chibi requires the first six fields, so they are always written."""

    id: str
    timestamp: int
    from_: str = field(name="from")
    to: str
    content: str
    entry_type: str
    role: str = ""
    tool_call_id: str = ""
    metadata: dict[str, object] = {}
    flow_control: bool = False


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Entry)
LOG, ARCHIVE, INBOX = "context.jsonl", "transcript_archive.jsonl", "inbox.jsonl"
TORN = "the last line is incomplete (a run was killed while writing?); it is skipped and left in place"
BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def new_id() -> str:
    """A random UUIDv4 as text."""
    digits = os.urandom(16).hex()
    return format_uuid(digits, "89ab"[int(digits[16], 16) & 3])


def format_uuid(digits: str, variant: str) -> str:
    """A UUIDv4 as text, out of at least 32 hexadecimal digits and its variant digit."""
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def now() -> int:
    """Unix seconds."""
    return int(time.time())


def format_time(seconds: int | None) -> str:
    """Unix seconds as local time."""
    if seconds is None:
        return "an unknown time"
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OverflowError, ValueError, OSError):
        return f"second {seconds}"


def encode(entry: Entry) -> bytes:
    """One line with its newline. Raises UnicodeEncodeError for text that no JSON file can hold; see `replace_surrogates`."""
    e = entry
    line = _EntryLine(
        e.id, e.timestamp, e.from_, e.to, e.content, e.entry_type, e.role, e.tool_call_id, e.metadata, e.flow_control
    )
    return _encoder.encode(line) + b"\n"


def replace_surrogates(entry: Entry) -> Entry:
    """The entry with lone surrogates (undecodable bytes from outside) replaced, since no JSON file can hold them."""
    mended: Entry = msgspec.convert(_without_surrogates(msgspec.to_builtins(entry)), Entry)
    return mended


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(v) for v in value]
    return value


def decode(line: bytes) -> Entry:
    """One entry. Raises one of BROKEN. Unknown keys are ignored; null stands for a missing value."""
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError:
        raw = msgspec.json.decode(line)
        if not isinstance(raw, dict):
            raise
        return msgspec.convert({k: v for k, v in raw.items() if v is not None}, Entry, strict=False)


def decode_lines(data: bytes, first_line: int, file: str = LOG) -> tuple[list[Entry], list[LogProblem]]:
    """Every entry of `data`, whose first line has the number `first_line`, and a problem for each line that is none."""
    try:
        whole = _decoder.decode_lines(data)  # five times as fast; right if every line is one entry
        if len(whole) == data.count(b"\n"):
            return whole, []
    except BROKEN:
        pass
    entries: list[Entry] = []
    problems: list[LogProblem] = []
    for number, line in enumerate(data.split(b"\n"), first_line):
        if not line or line.isspace():
            continue
        try:
            entries.append(decode(line))
        except BROKEN as error:
            text = f"not an entry, skipped: {short_error(error)}"
            problems.append(LogProblem(file, number, text, line_key(line)))
    return entries, problems


def lost_lines(problems: list[LogProblem], archive: bytes, log: bytes) -> list[LogProblem]:
    """The problems of an archive without those of lines that a kill left half-written and that stand whole elsewhere: nothing is lost."""
    if not problems:
        return []
    from bisect import bisect_right

    lines = archive.split(b"\n")
    whole = sorted({*lines, *log.split(b"\n")})

    def stands_elsewhere(torn: bytes) -> bool:
        at = bisect_right(whole, torn)  # what begins with it stands right behind it
        return at < len(whole) and whole[at].startswith(torn)

    return [p for p in problems if not stands_elsewhere(lines[p.line - 1])]


def short_error(error: BaseException) -> str:
    """A decoder's complaint, short."""
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def role_of(entry: Entry) -> str:
    """user, assistant or system. chibi 0.4 writes no role: there, what goes to "user" is the assistant's."""
    if entry.role:
        return "assistant" if entry.role == "agent" else entry.role
    return "assistant" if entry.to == "user" else "user"


ANCHORS = frozenset({ANCHOR, _CREATED, _ARCHIVAL, _COMPACTION})
"""Types of entries that `anchor_keeps` may find to be anchors."""


def anchor_keeps(entry: Entry) -> Collection[str] | None:
    """The ids that an anchor keeps; None if the entry is no anchor.

    chibi's later anchors keep nothing. Its 0.4 wrote a bare `compaction` marker into a file that it had already cut down:
    that one, without a summary, is no anchor.
    """
    kind = entry.entry_type
    if kind == MESSAGE:
        return None
    if kind == ANCHOR:
        keep = entry.metadata.get("keep")
        return {i for i in keep if isinstance(i, str)} if isinstance(keep, list | tuple) else ()
    if kind in (_CREATED, _ARCHIVAL) or (kind == _COMPACTION and "summary" in entry.metadata):
        return ()
    return None


UNDO: Final = "undo"
REDO: Final = "redo"
"""Kinds of anchors that take turns back and bring them again."""
REDOES = "redoes"
"""What a redo anchor has: the undo anchor that it takes back."""


def apply_anchor(
    anchor: Entry, keep: Collection[str], visible: list[Entry], undone: dict[str, list[Entry]]
) -> list[Entry]:
    """What is visible behind an anchor. `undone` has what was visible before each undo that may still be redone; it is brought up to
    date. A redo of what is not there any more keeps what it can."""
    kind = anchor.metadata.get("kind")
    if kind == UNDO:
        undone[anchor.id] = visible
    elif kind == REDO:
        visible = undone.pop(str(anchor.metadata.get(REDOES)), visible)
    else:
        undone.clear()
    return [entry for entry in visible if entry.id in keep]


def summary_of(anchor: Entry) -> str | None:
    """The summary that an anchor holds; None if it says nothing about one."""
    if anchor.entry_type == ANCHOR:
        return anchor.content
    summary = anchor.metadata.get("summary")
    if isinstance(summary, str):
        return summary
    return None if anchor.entry_type == _CREATED else ""
