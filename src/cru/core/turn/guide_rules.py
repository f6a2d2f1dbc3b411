"""`.claude/rules/`: guides in small files; one with `paths` in its front matter is for the files that these globs name. Loaded where
there is such a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from cru.core.base.files.front_matter import BadFrontMatter, NoFrontMatter, read_front_matter
from cru.core.base.files.glob import BadGlob, SearchGlob, expand_braces, matches_search, parse_search_glob
from cru.core.turn.system_prompt import read_guide

MOST_FILES = 200
"""Of one folder of rules."""


class GuideRule(Struct, frozen=True):
    """globs: of the files that it is for, from the project root; (): it always counts"""

    path: Path
    text: str
    globs: tuple[SearchGlob, ...] = ()

    def covers(self, file: str) -> bool:
        """file: from the project root"""
        return any(matches_search(glob, file.split(os.sep)) for glob in self.globs)


def read_rules(folder: Path, inside: Path | None) -> list[GuideRule]:
    """The rules of a folder, by path; what cannot be read says so in its place."""
    return [rule for file in _files(folder) if (rule := _read_rule(file, inside)) is not None]


def _files(folder: Path) -> Iterator[Path]:
    files = []
    for at, folders, names in os.walk(folder):
        folders.sort()
        files += [Path(at, name) for name in sorted(names) if name.endswith(".md")]
        if len(files) > MOST_FILES:
            break
    yield from sorted(files)[:MOST_FILES]


def _read_rule(file: Path, inside: Path | None) -> GuideRule | None:
    text = read_guide(file, inside)
    if not text.strip():
        return None
    try:
        front = read_front_matter(text)
    except NoFrontMatter:
        return GuideRule(file, text)
    except BadFrontMatter as error:
        return GuideRule(file, f"{text}\n[the front matter of {file} cannot be read: {error}]")
    paths = front.keys.get("paths")
    listed = _split(paths) if isinstance(paths, str) else paths
    if not isinstance(listed, list):
        return GuideRule(file, front.body) if paths is None else GuideRule(file, f"{front.body}\n[{file}: bad `paths`]")
    try:
        globs = tuple(_glob(part) for pattern in listed for part in expand_braces(str(pattern)))
    except BadGlob as error:
        return GuideRule(file, f"{front.body}\n[{file}: `paths`: {error.message}]")
    return GuideRule(file, front.body, globs)


def _split(text: str) -> list[str]:
    """The patterns between commas; those in braces belong to a pattern."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "{") - (char == "}")
        if char == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def _glob(pattern: str) -> SearchGlob:
    """A bare name fits in any folder, as in .gitignore."""
    names = [name for name in pattern.removeprefix("./").split("/") if name]
    return parse_search_glob(names if "/" in pattern else ["**", *names])
