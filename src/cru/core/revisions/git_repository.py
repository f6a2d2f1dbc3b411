"""A project's git repository, as far as its files tell: where it lies, what HEAD leads to, and whether it may convert contents. Git is not
run."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from cru.core.base.files.regular import read_regular

LARGEST_REFS, LARGEST_SETTINGS = 64 << 20, 4 << 20
"""Bytes of a file of a repository that is read."""


class GitPlaces(Struct, frozen=True):
    """Where a project's repository keeps what is looked at. own: of this work tree; common: of all of them"""

    top: Path
    own: Path
    common: Path


def find_git(root: Path) -> GitPlaces | None:
    """Return the repository around a folder, or None if there is none that can be used."""
    real = Path(os.path.realpath(root))
    for top in (real, *real.parents):
        mark = top / ".git"
        if mark.is_dir():
            return GitPlaces(top, mark, mark)
        if mark.is_file():
            return _linked(top, mark)
    return None


def _linked(top: Path, mark: Path) -> GitPlaces | None:
    """Return the places of a linked worktree, or of a submodule."""
    try:
        own = (top / _read_line(mark).removeprefix("gitdir:").strip()).resolve()
        named = own / "commondir"
        common = (own / _read_line(named)).resolve() if named.exists() else own
    except (OSError, UnicodeDecodeError):
        return None
    return GitPlaces(top, own, common) if (common / "objects").is_dir() else None


def read_head(places: GitPlaces) -> str:
    """Return what HEAD leads to, as far as files tell; "" if they do not."""
    try:
        head = _read_line(places.own / "HEAD")
        name = head.removeprefix("ref: ")
        if name == head:
            return head
        if (places.common / name).exists():
            return f"{name} {_read_line(places.common / name)}"
        packed = read_regular(places.common / "packed-refs", LARGEST_REFS).decode()
        return f"{name} {next((line for line in packed.splitlines() if line.endswith(f' {name}')), '')}"
    except (OSError, UnicodeDecodeError):
        return ""


def may_convert(places: GitPlaces, index: bytes) -> bool:
    """Return whether contents in this index may be stored in another form than they have in the work tree."""
    if b".gitattributes" in index or index[4:8] == b"\0\0\0\4":  # names are packed in version 4
        return True
    home = Path(os.environ.get("HOME", "/"))
    own = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    configs = (
        places.common / "config",
        places.own / "config.worktree",
        home / ".gitconfig",
        own / "config",
        Path("/etc/gitconfig"),
    )
    attributes = (
        places.top / ".gitattributes",
        places.common / "info/attributes",
        own / "attributes",
        Path("/etc/gitattributes"),
    )
    words = (b"autocrlf", b"attributesfile", b"include")
    return any(file.exists() for file in attributes) or any(
        w in read_settings(file).lower() for file in configs for w in words
    )


def read_settings(path: Path) -> bytes:
    """Return a file of settings of a repository that may belong to anyone; b"" if it is missing. Raises OSError."""
    try:
        return read_regular(path, LARGEST_SETTINGS)
    except FileNotFoundError:
        return b""


def _read_line(path: Path) -> str:
    """Return a file of one line, without its end. Raises OSError, UnicodeDecodeError."""
    return read_regular(path, LARGEST_SETTINGS).decode().strip()
