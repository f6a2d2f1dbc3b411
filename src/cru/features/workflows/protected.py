"""Files that a workflow protects: what its checks consist of. A change of one must be named before the workflow is done."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from cru.core.base.files.glob import matches_path, parse_path_glob
from cru.core.base.files.regular import open_regular

SKIPPED = frozenset((".git", ".hg", ".jj", "node_modules", ".venv", "__pycache__", ".tox", ".mypy_cache"))
MOST_LOOKED_AT = 50_000
"""Names in the project that are looked at; of a larger one the rest is not protected."""
MOST_NAMED = 10


def digest_protected(root: Path, globs: Sequence[str]) -> dict[str, str]:
    """Return path → SHA-256 of the files below `root` that these globs match. What cannot be read has the digest "unreadable"."""
    patterns = [parse_path_glob(glob) for glob in globs]
    digests = {}
    for path in _walk(root) if patterns else ():
        names = path.split("/")
        if any(matches_path(pattern, names) for pattern in patterns):
            digests[path.encode("utf-8", "backslashreplace").decode()] = _digest(root / path)  # it is kept as JSON
    return digests


def describe_changes(before: dict[str, str], now: dict[str, str], note: str) -> str:
    """Return why protected files keep a workflow from its end: those that changed and that the note does not name. "" if there are none."""
    changed = sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
    named = set(re.split(r"[^\w./\\-]+", note)) | {word.rstrip(".") for word in note.split()}
    unnamed = [
        path for path in changed if not ("/" in path and path in note) and not _is_named(path.rpartition("/")[2], named)
    ]
    if not unnamed:
        return ""
    more = f" and {len(unnamed) - MOST_NAMED} more" if len(unnamed) > MOST_NAMED else ""
    names = ", ".join(unnamed[:MOST_NAMED]) + more
    return f"files that the checks consist of were changed: {names}. Undo the change, or name each in `note` with the reason for it"


def _is_named(name: str, words: set[str]) -> bool:
    """Whether the name alone stands there as a word; a short one could be any word."""
    return name in words and (len(name) > 4 or "." in name)


def _walk(root: Path) -> Iterator[str]:
    count = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        place = os.path.relpath(folder, root)
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in sorted((*files, *links)):
            count += 1
            if count > MOST_LOOKED_AT:
                return
            yield name if place == "." else f"{place}/{name}"


def _digest(path: Path) -> str:
    try:
        if path.is_symlink():
            return f"link to {os.readlink(path)}"
        with os.fdopen(open_regular(path), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "unreadable"
