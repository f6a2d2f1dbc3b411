"""A hook as `cru hooks review` shows it: everything that decides, in a fixed order, in lines that no content can imitate."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import Any, NamedTuple

import msgspec

from cru.core.base.values.visible import visible
from cru.core.hooks.model.entry import HookEntry
from cru.core.hooks.model.status import MissingHook
from cru.core.hooks.trust.files import ReferencedFile
from cru.core.hooks.trust.fingerprint import Fingerprint
from cru.core.hooks.trust.references import is_code

SHOWN = 60
"""Lines of a file that are shown before a person asks for more."""
NOT_COVERED = "what these files start or read themselves is not looked at"
CODE_NOT_COVERED = "what this code starts or reads itself is not looked at"
DIFFERING = 600
"""Lines of a change that are compared one by one."""
AROUND = 3
# Field of an entry → what people call it. What is as it always is, is left out; the timeout is always there.
FIELDS: dict[str, str] = {
    "event": "event", "matcher": "matcher", "condition": "if", "name": "name", "kind": "type", "command": "runs", "args": "args",
    "shell": "shell", "cwd": "in", "env": "env", "timeout": "timeout", "asynchronous": "async", "rewake": "rewake", "once": "once",
    "sequential": "sequential", "include_sub_agents": "sub-agents", "on_error": "on_error", "priority": "priority", "enabled": "enabled",
}  # fmt: skip
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(HookEntry)} | {"env": {}, "timeout": None}


class AcceptedVersion(NamedTuple):
    """What is known of a hook as it was accepted.

    differs: how it differs now, for a person
    contents: of its files by path; None: not kept
    """

    differs: str
    contents: dict[str, bytes | None]


def render_hook(
    entry: HookEntry,
    seen: Fingerprint,
    before: AcceptedVersion | None = None,
    broken: Sequence[str] = (),
    *,
    whole: bool,
) -> Iterator[str]:
    """Its lines. Those of a value or file begin with its line numbers, all others at the left or with two blanks and a word of ours.
    broken: why it does not work as it stands"""
    yield f"{entry.id}@{seen.digest}  {entry.dialect}"
    yield f"  {'at':<10} {plain(entry.where)}"
    if before is not None and before.differs:
        yield f"  {'changed':<10} {plain(before.differs)}"
        yield from _changes(seen, before, whole)
    for name, word in FIELDS.items():
        value = getattr(entry, name)
        if value == _DEFAULTS[name]:
            continue
        if name == "command" and "\n" in value:
            yield f"  {word:<10} (its lines, numbered)"
            yield from _numbered(value.encode("utf-8", "surrogatepass"), whole=True)
            continue
        yield f"  {word:<10} {plain(value)}"
    yield f"  {'as written':<10} {plain(entry.definition)}"
    for file in seen.files:
        yield f"  {'file':<10} {plain(file.path)} ({file.size} bytes)"
        yield from _content(file, whole)
    yield from (f"  {'not watched':<10} {plain(path)} (data)" for path in seen.data)
    yield from (f"  DOES NOT WORK as it stands: {plain(text)}" for text in broken)
    for text in seen.unseen:
        yield f"  CANNOT SEE what this runs: {plain(text)}"
    if seen.files:
        yield f"  {NOT_COVERED}"
    if is_code(entry):
        yield f"  {CODE_NOT_COVERED}"


def render_missing(lost: MissingHook, word: str) -> Iterator[str]:
    """A hook that was accepted and is not there as it was."""
    yield word
    yield f"  {'at':<10} {plain(lost.file)}"
    yield f"  {'was':<10} {plain(lost.label)}"
    became = (
        "it is switched off in a file of the project" if lost.off else "it is gone, or its entry is another one now"
    )
    yield f"  {'changed':<10} {became}"
    yield "  to accept it is to do without this hook"


def _changes(seen: Fingerprint, before: AcceptedVersion, whole: bool) -> Iterator[str]:
    """What is different in each file whose content was kept; the contents as a whole follow."""
    for file in seen.files:
        if file.path not in before.contents:
            continue
        old = before.contents[file.path]
        yield f"  {'change in':<10} {plain(file.path)}"
        if old is None or b"\0" in file.content or file.size > len(file.content):
            yield "    (what it was is not kept, so only all of it can be shown)"
            continue
        lines = list(_difference(_lines(old), _lines(file.content)))
        left = 0 if whole else len(lines) - SHOWN
        yield from (f"       {line[:1] or ' '} │ {_line(line[1:])}" for line in (lines[:SHOWN] if left > 0 else lines))
        if left > 0:
            yield f"    ({left} more lines: m shows them)"


def _difference(old: list[str], new: list[str]) -> Iterator[str]:
    """Lines with `-`, `+`, `@` or a blank before them."""
    start = next(
        (n for n, (before, after) in enumerate(zip(old, new, strict=False)) if before != after), min(len(old), len(new))
    )
    most = min(len(old), len(new)) - start
    backwards = zip(reversed(old), reversed(new), strict=False)
    end = next((n for n, (before, after) in enumerate(backwards) if n >= most or before != after), most)
    first = max(start - AROUND, 0)
    old, new = old[first : len(old) - max(end - AROUND, 0)], new[first : len(new) - max(end - AROUND, 0)]
    if len(old) + len(new) > DIFFERING:
        yield f"@ from line {first + 1} on: {len(old)} lines are now {len(new)}"
        return
    yield f"@ from line {first + 1} on"
    for line in list(unified_diff(old, new, n=AROUND, lineterm=""))[3:]:
        yield "@ …" if line[:1] == "@" else line


def fold_line(line: str, width: int) -> Iterator[str]:
    """A line for a terminal of this width (0 = no terminal): where it would break, it goes on behind a mark, so that no content stands
    at the left."""
    at, mark = 0, ""
    while width and (end := _end_of_room(line, at, max(width - 1 - len(mark) - bool(mark), 10))) < len(line):
        yield mark + line[at:end]
        at, mark = end, " " * 9 + "┆ "
    yield mark + line[at:]


def _end_of_room(line: str, at: int, room: int) -> int:
    """Where a piece that begins there has to end. Whatever is not ASCII may be two columns wide."""
    for end in range(at, len(line)):
        room -= 1 if line[end].isascii() else 2
        if room < 0:
            return end
    return len(line)


def plain(value: Any) -> str:
    """A value on one line: as it is if that is unmistakable, else as JSON, in ASCII if something in it cannot be seen."""
    if isinstance(value, str) and visible(value) == value and "\\" not in value and not value.startswith('"'):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return text if visible(text) == text else json.dumps(value)


def _content(file: ReferencedFile, whole: bool) -> Iterator[str]:
    if b"\0" in file.content:
        yield f"    (not a text; SHA-256 {file.digest})"
        return
    yield from _numbered(file.content, whole)
    if file.size > len(file.content):
        yield f"    (only the first {len(file.content)} bytes are shown)"


def _numbered(content: bytes, whole: bool) -> Iterator[str]:
    lines = _lines(content)
    left = 0 if whole else len(lines) - SHOWN
    for number, line in enumerate(lines[:SHOWN] if left > 0 else lines, 1):
        yield f"  {number:>6} │ {_line(line)}"
    if left > 0:
        yield f"    ({left} more lines: m shows them)"


def _lines(content: bytes) -> list[str]:
    lines = content.decode("utf-8", "backslashreplace").split("\n")
    return lines if lines[-1] else lines[:-1]


def _line(text: str) -> str:
    return visible(text, keep="\t")
