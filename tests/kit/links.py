"""Links between the pages of the project, and pages that code and prose name: each must lead to a file and a heading that exist.

Links to other sites are not followed.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pyromark

LINKED = ("docs", "README.md", "AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages whose links are followed."""
NAMING = (*LINKED, "src", "bench", "Makefile", "pyproject.toml")
"""Files and folders that name pages in their text."""
_OPTIONS = pyromark.Options.ENABLE_TABLES
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_NAMED = re.compile(r"(?P<path>docs/(?<![\w/.-]docs/)(?:[\w.-]+/)*[\w-]+\.md)(?:#(?P<anchor>[\w-]+))?")
_UNNAMED = re.compile(r"(?P<path>docs/(?<![\w/.-]docs/)decisions/[\w-]+)(?![\w/*-]|\.\w)")
_RECORD = re.compile(r"[Dd]ecisions? (?P<number>\d{1,4})\b")
_HTML_LINK = re.compile(r"""<(?:a|img)\b[^>]*?\b(?:href|src)\s*=\s*["']([^"']*)""")
_HTML_ANCHOR = re.compile(r"""<[a-z]+\b[^>]*?\b(?:id|name)\s*=\s*["']([^"']*)""")


def wrong_links(root: Path) -> list[str]:
    """Return `FILE: LINK: what is missing` for each wrong link and each page that is named and does not exist."""
    return [
        *(f"{_name(page, root)}: {wrong}" for page in _files(root, LINKED, (".md",)) for wrong in _wrong_links(page)),
        *(f"{_name(path, root)}: {wrong}" for path in _files(root, NAMING) for wrong in _wrong_names(path, root)),
    ]


def anchors(text: str) -> frozenset[str]:
    """Return the anchors of a page as GitHub makes them: of its headings, numbered where two are the same, and those in HTML."""
    counted: Counter[str] = Counter()
    names = set()
    for title in _headings(text):
        slug = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        names.add(f"{slug}-{counted[slug]}" if counted[slug] else slug)
        counted[slug] += 1
    return frozenset(names | {anchor for html in _html(text) for anchor in _HTML_ANCHOR.findall(html)})


def links(text: str) -> Iterator[str]:
    """Yield where the links and pictures of a page lead, as they are written; those in code are none."""
    for event in pyromark.events(text, options=_OPTIONS):
        match event:
            case {"Start": {"Link": {"dest_url": target}} | {"Image": {"dest_url": target}}}:
                yield target
    for html in _html(text):
        yield from _HTML_LINK.findall(html)


def _wrong_links(page: Path) -> Iterator[str]:
    for link in links(page.read_text(encoding="utf-8")):
        if _SCHEME.match(link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / unquote(name) if name else page
        if why := _why_wrong(target, unquote(anchor)):
            yield f"{link}: {why}"


def _wrong_names(path: Path, root: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8", errors="replace")
    for match in _NAMED.finditer(text):
        if why := _why_wrong(root / match["path"], match["anchor"] or ""):
            yield f"{match[0]}: {why}"
    for match in _UNNAMED.finditer(text):
        if not (root / match["path"]).is_dir():
            yield f"{match[0]}: name the file, with .md"
    for match in _RECORD.finditer(text):
        if not any((root / "docs/decisions").glob(f"{int(match['number']):04}-*.md")):
            yield f"{match[0]}: no such record; name the page"


def _why_wrong(target: Path, anchor: str) -> str:
    if not target.exists():
        return "no such file"
    if anchor and (target.suffix != ".md" or anchor not in _anchors_of(target.resolve())):
        return "no such heading"
    return ""


@cache
def _anchors_of(page: Path) -> frozenset[str]:
    return anchors(page.read_text(encoding="utf-8"))


def _headings(text: str) -> Iterator[str]:
    title: list[str] | None = None
    for event in pyromark.events(text, options=_OPTIONS):
        match event:
            case {"Start": {"Heading": _}}:
                title = []
            case {"End": {"Heading": _}}:
                yield "".join(title or ())
                title = None
            case {"Text": str(words)} | {"Code": str(words)} if title is not None:
                title.append(words)


def _html(text: str) -> Iterator[str]:
    for event in pyromark.events(text, options=_OPTIONS):
        match event:
            case {"Html": str(html)} | {"InlineHtml": str(html)}:
                yield html


def _files(root: Path, names: tuple[str, ...], suffixes: tuple[str, ...] = ()) -> list[Path]:
    """Return the files that git tracks, or could, below these names."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *names]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
    paths = [root / name for name in sorted(set(listed)) if name and (not suffixes or name.endswith(suffixes))]
    return [path for path in paths if path.is_file()]


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()
