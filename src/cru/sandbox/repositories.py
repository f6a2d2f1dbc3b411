"""Repositories of git that commands can make or change: what in them would make a later git run a program.

A mount guards what exists at a command's start. A repository that a command makes, and one below the project's root, is looked at before
and after the command instead, and what has become dangerous in between is quarantined.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from cru.files.regular import read_regular
from cru.sandbox.git_settings import dangerous_settings, dangerous_steps
from cru.sandbox.own_places import OF_THE_SANDBOX
from cru.sandbox.profile import submodules

Risks: TypeAlias = dict[str, list[str]]
"""Files that git runs or obeys, with what in each of them is dangerous."""
FindLines: TypeAlias = Callable[[str, str, tuple[str, ...]], Iterator[tuple[int, str]]]
MOST_FOLDERS = 1000
"""Folders of a project that are looked at, those nearest to its root first."""
MOST_FILES = 1000
"""Files of one folder of git, or folders in it, that are looked at."""
LARGEST = 1 << 20
"""Bytes of a file that is read; a larger one is dangerous."""
PASSED = frozenset({".cache", ".tox", ".venv", "__pycache__", "node_modules"})
"""Folders in which nobody starts git."""
RACY = 50_000_000
"""Nanoseconds in which two changes of a folder may get the same time."""
SYSTEM = frozenset(OF_THE_SANDBOX)
SETTINGS = ("config", "config.worktree")
STEPS = "git-rebase-todo"
LINES: dict[str, FindLines] = {**dict.fromkeys(SETTINGS, dangerous_settings), STEPS: dangerous_steps}
"""Files in which single lines are dangerous."""


class _FolderContents(Struct, frozen=True):
    """What a folder holds. changed: when it last changed; seen: when it was listed, both in nanoseconds; folders, git: paths"""

    changed: int
    seen: int
    folders: tuple[str, ...]
    git: tuple[str, ...]
    is_repository: bool


_listings: dict[str, _FolderContents] = {}
"""Folders that were listed before, of all sessions of this process."""


def find_risks(roots: Sequence[str], git_folders: Sequence[str]) -> Risks:
    """Return what is dangerous in repositories below these roots, and in these folders of git."""
    links: list[str] = []
    owned = list(git_folders)
    for root in roots:
        # git goes into submodules by itself, however deep they lie
        named = (place for place in submodules(root) if os.path.lexists(place))
        for place in dict.fromkeys((*_find_repositories(root), *named)):
            (owned if os.path.isdir(place) and not os.path.islink(place) else links).append(place)
    trees, risks = tuple(roots), Risks()
    for folder in dict.fromkeys(owned):
        risks |= _risks_of(folder, trees)
    for link in links:
        if not _leads_to_own(link, owned):
            risks[link] = [_describe_link(link)]
    return risks


def new_risks(before: Risks, after: Risks) -> Risks:
    """Return what of `after` was not dangerous before."""
    fresh = {path: [text for text in texts if text not in before.get(path, ())] for path, texts in after.items()}
    return {path: texts for path, texts in fresh.items() if texts}


def without_lines(path: str, texts: Sequence[str], trees: tuple[str, ...]) -> bytes | None:
    """Return the file without its dangerous lines; None if it is dangerous as a whole."""
    find_lines = LINES.get(os.path.basename(path))
    if find_lines is None or os.path.islink(path):
        return None
    try:
        text = read_regular(path, LARGEST).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    numbers = {number for number, meaning in find_lines(text, os.path.dirname(path), trees) if meaning in texts}
    kept = [line for number, line in enumerate(text.split("\n")) if number not in numbers]
    return "\n".join(kept).encode("utf-8", "surrogateescape")


def _find_repositories(root: str) -> Iterator[str]:
    """Yield each `.git` below a root, and each folder that is a repository itself."""
    waiting, count = [root], 0
    while waiting and count < MOST_FOLDERS:
        level, waiting = waiting[: MOST_FOLDERS - count], []
        count += len(level)
        for folder in level:
            listing = _list(folder)
            if listing is None:
                continue
            waiting += listing.folders
            yield from listing.git
            if listing.is_repository:
                yield folder


def _list(folder: str) -> _FolderContents | None:
    """Return what a folder holds, as it is remembered if the folder has not changed; None if nobody can list it."""
    try:
        changed = os.stat(folder).st_ctime_ns
        known = _listings.get(folder)
        # two changes at one moment leave the same time, so one that is recent says nothing
        if known is not None and known.changed == changed and changed < known.seen - RACY:
            return known
        seen = time.time_ns()
        with os.scandir(folder) as entries:
            listing = _read_listing(list(entries), changed, seen)
    except OSError:
        return None
    if len(_listings) >= 4 * MOST_FOLDERS:
        _listings.clear()
    _listings[folder] = listing
    return listing


def _read_listing(entries: list[os.DirEntry[str]], changed: int, seen: int) -> _FolderContents:
    names = {entry.name for entry in entries}
    git = [entry.path for entry in entries if entry.name.casefold() == ".git"]
    folders = (
        entry.path
        for entry in entries
        if entry.name not in PASSED and entry.path not in SYSTEM and entry.is_dir(follow_symlinks=False)
    )
    return _FolderContents(
        changed, seen, tuple(sorted({*folders}.difference(git))), tuple(git), {"HEAD", "objects", "refs"} <= names
    )


def _risks_of(folder: str, trees: tuple[str, ...], common: str = "") -> Risks:
    """Return what is dangerous in a folder of git. common: the folder that it must share its settings with; "": none"""
    risks: Risks = {}
    steps = f"{folder}/rebase-merge"
    if os.path.islink(steps):
        risks[steps] = [_describe_link(steps)]
    for path in (*(f"{folder}/{name}" for name in SETTINGS), f"{steps}/{STEPS}"):
        if texts := _read_risks(path, folder, trees):
            risks[path] = texts
    shared = f"{folder}/commondir"
    if os.path.lexists(shared) and not _leads_to(shared, folder, common):
        risks[shared] = [_describe_link(shared)]
    for name, inner_common in (("worktrees", folder), ("modules", "")):
        for inner in _inner_folders(f"{folder}/{name}", is_deep=name == "modules"):
            risks |= (
                {inner: [_describe_link(inner)]} if os.path.islink(inner) else _risks_of(inner, trees, inner_common)
            )
    return risks | _risks_of_hooks(f"{folder}/hooks")


def _read_risks(path: str, folder: str, trees: tuple[str, ...]) -> list[str]:
    if os.path.islink(path):
        return [_describe_link(path)]
    try:
        text = read_regular(path, LARGEST).decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError:
        return [_describe_file(path)]
    return [meaning for _, meaning in LINES[os.path.basename(path)](text, folder, trees)]


def _risks_of_hooks(folder: str) -> Risks:
    if os.path.islink(folder):
        return {folder: [_describe_link(folder)]}
    try:
        names = sorted(os.listdir(folder))[:MOST_FILES]
    except OSError:
        return {}
    hooks = [f"{folder}/{name}" for name in names if not name.endswith(".sample")]
    return {hook: [_describe_file(hook)] for hook in hooks}


def _inner_folders(folder: str, *, is_deep: bool) -> Iterator[str]:
    """Yield the folders of git in `worktrees` or `modules`; names of submodules may have several parts."""
    waiting = [folder]
    for _ in range(MOST_FILES):
        if not waiting:
            return
        place = waiting.pop()
        if os.path.islink(place):
            yield place
            continue
        try:
            with os.scandir(place) as listing:
                entries = sorted(entry.path for entry in listing if entry.is_dir() or entry.is_symlink())
        except OSError:
            continue
        for inner in entries:
            if is_deep and not os.path.islink(inner) and not _is_of_git(inner):
                waiting.append(inner)
            else:
                yield inner


def _is_of_git(folder: str) -> bool:
    return any(os.path.lexists(f"{folder}/{name}") for name in ("HEAD", "config", "commondir"))


def _leads_to_own(link: str, git_folders: Sequence[str]) -> bool:
    """Return whether a `.git` file names a further work tree or a submodule of a repository that is looked at."""
    if os.path.islink(link):
        return False
    target = _read_link(link, "gitdir:")
    return any(
        target.startswith(f"{os.path.realpath(folder)}/{name}/")
        for folder in git_folders
        for name in ("worktrees", "modules")
    )


def _leads_to(link: str, folder: str, target: str) -> bool:
    return not os.path.islink(link) and bool(target) and _read_link(link, "", folder) == os.path.realpath(target)


def _read_link(link: str, mark: str, folder: str = "") -> str:
    """Return the folder that a file names, resolved; "" if it names none."""
    try:
        text = read_regular(link, LARGEST).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
    if not text.startswith(mark) or "\0" in text:
        return ""
    return os.path.realpath(os.path.join(folder or os.path.dirname(link), text.removeprefix(mark).strip()))


def _describe_link(path: str) -> str:
    """Return where a link, or a file that names a folder, leads."""
    if os.path.islink(path):
        return f"-> {os.readlink(path)}"
    try:
        return read_regular(path, LARGEST).decode("utf-8", "surrogateescape").strip()
    except OSError:
        return _describe_file(path)


def _describe_file(path: str) -> str:
    """Return what only this state of a file has."""
    try:
        status = os.lstat(path)
    except OSError as error:
        return str(error.errno)
    return f"{status.st_ino} {status.st_size} {status.st_ctime_ns} {stat.S_IMODE(status.st_mode):o}"
