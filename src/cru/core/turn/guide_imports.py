"""Imports in guides: `@path` brings another file along, as in Claude Code. Loaded when a guide has an `@` or a comment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from cru.core.base.files.regular import open_regular
from cru.core.base.values.messages import Span
from cru.core.turn.system_prompt import GUIDE_LIMIT, ImportJudge, guide_span, leads_out, read_guide

LEVELS = 5
"""A guide, and so many files less one that import one another below it (as Claude Code 2.1 does)."""
LIMIT_BYTES = 256 * 1024
"""Of all imported files of a prompt."""
_IMPORT = re.compile(r"(?:(?<=\s)|(?<=\*\*)|^)@((?:[^\s\\*]|\\ )+)", re.MULTILINE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
_TICKS = re.compile(r"`+")


class ImportState(Protocol):
    """seen: real paths that have been imported; size: their bytes"""

    seen: set[str]
    size: int


def expand_guide(
    path: Path, text: str, title: str, inside: Path | None, judge: ImportJudge, reading: ImportState
) -> Iterator[Span]:
    """The guide without comments, then each file that it imports, once, in the order of their mention."""
    if os.path.realpath(path) in reading.seen:
        return
    reading.seen.add(os.path.realpath(path))
    stripped = strip_comments(text)
    if stripped.strip():
        yield guide_span(path, title, stripped)
    yield from _imports(path, stripped, inside, judge, reading, 1)


def _imports(
    path: Path, text: str, inside: Path | None, judge: ImportJudge, reading: ImportState, level: int
) -> Iterator[Span]:
    if level >= LEVELS:
        return
    for target in find_imports(text):
        file = Path(os.path.normpath(os.path.join(path.parent, os.path.expanduser(target))))
        real = os.path.realpath(file)
        if real in reading.seen or not os.path.isfile(real):
            continue
        reading.seen.add(real)
        title = f"{file.name} of {file.parent}, imported by {path.name}"
        refusal = _refusal(file, inside, judge, reading)
        if refusal:
            yield guide_span(file, title, f"[@{target} {refusal}]")
            continue
        imported = strip_comments(read_guide(file, inside))
        reading.size += len(imported)
        if imported.strip():
            yield guide_span(file, title, imported)
            yield from _imports(file, imported, inside, judge, reading, level + 1)


def _refusal(file: Path, inside: Path | None, judge: ImportJudge, reading: ImportState) -> str:
    """Why this file is not imported, "" if it is."""
    if inside is not None and leads_out(file, inside):
        return "leads out of the project and is not imported"
    why = judge(str(file))
    if why:
        return f"is not imported: {why}"
    if reading.size + min(file.stat().st_size, GUIDE_LIMIT) > LIMIT_BYTES:
        return f"is not imported: the guides import more than {LIMIT_BYTES} bytes"
    with open(open_regular(file), "rb") as content:
        if b"\0" in content.read(8192):
            return "is not imported: it is no text"
    return ""


def find_imports(text: str) -> list[str]:
    """The paths behind `@`, each once; not what stands in code, and not what cannot be a path (`@someone`'s file is not there)."""
    paths = dict.fromkeys(
        match[1].replace("\\ ", " ").partition("#")[0] for match in _IMPORT.finditer(blank_code(text))
    )
    return [path for path in paths if path and (path[0].isalnum() or path[0] in "._/~-") and path != "/"]


def blank_code(text: str) -> str:
    """The same text with blanks in the place of code: fences, indented blocks, and what stands between backticks."""
    return "\n".join(_without_spans(paragraph) for paragraph in _paragraphs(text.split("\n")))


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """What is no block of code, paragraph by paragraph: backticks have no pair in another one."""
    fence, block = "", list[str]()
    in_list = is_after_blank = False
    for line in lines:
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
            continue
        if mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
            continue
        if not line.strip():
            yield "\n".join(block)
            block, is_after_blank = [], True
            continue
        is_indented = line.startswith(("    ", "\t"))
        in_list = bool(_ITEM.match(line)) or (in_list and (is_indented or not is_after_blank))
        if not (is_indented and is_after_blank and not in_list):
            block.append(line)
            is_after_blank = False
    yield "\n".join(block)


def _without_spans(text: str) -> str:
    """One paragraph: a run of backticks and the next one of the same length hold code. Linear, whatever a stranger writes."""
    runs = [match.span() for match in _TICKS.finditer(text)]
    following: dict[int, int] = {}
    pair: list[int] = [-1] * len(runs)
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        pair[number] = following.get(length, -1)
        following[length] = number
    parts, at, number = [], 0, 0
    while number < len(runs):
        if pair[number] < 0:
            number += 1
            continue
        end = runs[pair[number]][1]
        parts += [text[at : runs[number][0]], "`"]
        at, number = end, pair[number] + 1
    return "".join([*parts, text[at:]])


def strip_comments(text: str) -> str:
    """Without comments of HTML that begin a line: they are for people. Those within a line stay, and so does what stands in a fence."""
    if "<!--" not in text:
        return text
    kept: list[str] = []
    fence, is_open = "", False
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if not is_open and mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        if fence and not is_open:
            kept.append(line)
            continue
        rest, is_open, is_touched = _without_comment(line, is_open)
        if rest.strip() or not is_touched:
            kept.append(rest)
    return "\n".join(kept)


def _without_comment(line: str, is_open: bool) -> tuple[str, bool, bool]:
    """(what is left of a line, whether a comment goes on behind it, whether there was one)."""
    if not is_open and not line.lstrip(" ").startswith("<!--"):
        return line, False, False
    rest = line if is_open else line.lstrip(" ")[4:]
    _, end, behind = rest.partition("-->")
    return (behind, False, True) if end else ("", True, True)
