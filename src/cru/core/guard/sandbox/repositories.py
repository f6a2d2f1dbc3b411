"""Repositories of git that commands can make or change: what in them would make a later git run a program.

A mount guards what exists at a command's start. A repository that a command makes, and one below the project's root, is looked at before
and after the command instead, and what has become dangerous in between is quarantined.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from cru.core.base.files import is_inside
from cru.core.base.files.regular import read_regular
from cru.core.guard.sandbox.git_settings import PASSED, dangerous_settings, dangerous_steps, dangerous_strategy
from cru.core.guard.sandbox.own_places import OF_THE_SANDBOX
from cru.core.guard.sandbox.profile import submodules

Risks: TypeAlias = dict[str, list[str]]
"""Files that git runs or obeys, with what in each of them is dangerous."""
FindLines: TypeAlias = Callable[[str, str, tuple[str, ...]], Iterator[tuple[int, str]]]
MOST_FOLDERS = 1000
"""Folders of a project that are looked at, those nearest to its root first."""
MOST_LATER = 20_000
"""The same of a project that has had fewer than MOST_FOLDERS: otherwise a command could make so many that others are not looked at."""
MOST_MODULES = 1000
"""Folders between a repository and its submodules that are looked at."""
LARGEST = 1 << 20
"""Bytes of a file that is read; a larger one is dangerous."""
RACY = 50_000_000
"""Nanoseconds in which two changes of a folder may get the same time."""
SYSTEM = frozenset(OF_THE_SANDBOX)
FILES = ("config", "config.worktree", "sequencer/opts", "rebase-merge/git-rebase-todo", "rebase-merge/strategy")
"""Files of a folder of git in which single lines are dangerous."""
LINES: dict[str, FindLines] = {
    **dict.fromkeys(("config", "config.worktree", "opts"), dangerous_settings),
    "git-rebase-todo": dangerous_steps,
    "strategy": dangerous_strategy,
}
"""What finds these lines, by the file's name."""


class _FolderContents(Struct, frozen=True):
    """What a folder holds. changed: when it last changed; seen: when it was listed, both in nanoseconds; folders, git: paths;
    links: those that may lead into a folder that is passed over"""

    changed: int
    seen: int
    folders: tuple[str, ...]
    git: tuple[str, ...]
    links: tuple[str, ...]
    is_repository: bool


class _RepositorySearch(Struct):
    """The search for repositories below one root. most: folders that are looked at, 0 before the first time; places: what was found;
    is_cut: whether there are more folders"""

    most: int = 0
    places: dict[str, None] = {}
    is_cut: bool = False


_listings: dict[str, _FolderContents] = {}
"""Folders that were listed before, of all sessions of this process."""
_searches: dict[str, _RepositorySearch] = {}
"""The searches of this process, by their roots."""


def find_risks(roots: Sequence[str], git_folders: Sequence[str]) -> Risks:
    """Return what is dangerous in repositories below these roots, and in these folders of git."""
    links: list[str] = []
    owned = list(git_folders)
    for root in roots:
        places = _find_repositories(root)
        # git goes into submodules by itself, however deep they lie
        parents = dict.fromkeys((root, *(os.path.dirname(place) for place in places)))
        named = (place for tree in parents for place in submodules(tree) if os.path.lexists(place))
        for place in dict.fromkeys((*places, *named)):
            (owned if os.path.isdir(place) and not os.path.islink(place) else links).append(place)
    trees, risks = tuple(roots), Risks()
    for folder in dict.fromkeys(owned):
        risks |= _risks_of(folder, trees)
    for link in links:
        risks |= _risks_of_link(link, owned, trees)
    return risks


def overfull_roots(roots: Sequence[str]) -> list[str]:
    """Return those of these roots below which commands have made so many folders that not all were looked at."""
    return [root for root in roots if (search := _searches.get(root)) and search.is_cut and search.most > MOST_FOLDERS]


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


def _find_repositories(root: str) -> list[str]:
    """Return each `.git` below a root, and each folder that is a repository itself or cannot be listed."""
    search = _searches.setdefault(root, _RepositorySearch())
    known = [place for place in search.places if _is_repository(place)]
    search.places = dict.fromkeys((*known, *_search(root, search)))
    search.most = search.most or (MOST_FOLDERS if search.is_cut else MOST_LATER)
    return list(search.places)


def _search(root: str, search: _RepositorySearch) -> Iterator[str]:
    waiting, seen, count = [root], {root}, 0
    most = search.most or MOST_FOLDERS
    while waiting and count < most:
        level, waiting = waiting[: most - count], waiting[most - count :]
        count += len(level)
        for folder in level:
            listing = _list(folder)
            if listing is None:
                if _is_shut(folder):
                    yield folder
                continue
            inner = [path for path in (*listing.folders, *_led_to(listing.links, root)) if path not in seen]
            seen.update(inner)
            waiting += inner
            yield from listing.git
            if listing.is_repository:
                yield folder
    search.is_cut = bool(waiting)


def _is_repository(place: str) -> bool:
    if os.path.basename(place).casefold() == ".git":
        return os.path.lexists(place)
    listing = _list(place)
    return listing is not None and listing.is_repository


def _led_to(links: Iterable[str], root: str) -> Iterator[str]:
    """Yield the folders below a root that only these links lead to."""
    for link in links:
        place = os.path.realpath(link)
        if is_inside(place, root) and os.path.isdir(place) and _is_passed(os.path.relpath(place, root)):
            yield place


def _is_passed(path: str) -> bool:
    """Return whether the way to this place leads through folders in which nothing is looked for."""
    return not (PASSED | {".git"}).isdisjoint(path.split("/"))


def _is_shut(folder: str) -> bool:
    """Return whether this is a folder that its owner, who is the user, cannot list: git may find a repository in it by its name."""
    try:
        return os.lstat(folder).st_uid == os.getuid() and not os.access(folder, os.R_OK | os.X_OK)
    except OSError:
        return False


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
    if len(_listings) >= 2 * MOST_LATER:
        _listings.clear()
    _listings[folder] = listing
    return listing


def _read_listing(entries: list[os.DirEntry[str]], changed: int, seen: int) -> _FolderContents:
    names = {entry.name for entry in entries}
    git = [entry.path for entry in entries if entry.name.casefold() == ".git"]
    links = (entry.path for entry in entries if entry.is_symlink() and _is_passed(os.readlink(entry.path)))
    folders = (
        entry.path
        for entry in entries
        if entry.name not in PASSED and entry.path not in SYSTEM and entry.is_dir(follow_symlinks=False)
    )
    # with `commondir` the rest may lie elsewhere
    is_repository = "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names)
    return _FolderContents(
        changed, seen, tuple(sorted({*folders}.difference(git))), tuple(git), tuple(links), is_repository
    )


def _risks_of(folder: str, trees: tuple[str, ...], common: str = "") -> Risks:
    """Return what is dangerous in a folder of git. common: the folder that it must share its settings with; "": none"""
    if _is_shut(folder):
        return {folder: ["it cannot be listed"]}
    risks: Risks = {}
    for state in (f"{folder}/rebase-merge", f"{folder}/sequencer"):
        if os.path.islink(state):
            risks[state] = [_describe_link(state)]
    for path in (f"{folder}/{name}" for name in FILES):
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
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError:
        return {folder: ["it cannot be listed"]}
    hooks = [f"{folder}/{name}" for name in names if not name.endswith(".sample")]
    return {hook: [_describe_file(hook)] for hook in hooks}


def _inner_folders(folder: str, *, is_deep: bool) -> Iterator[str]:
    """Yield the folders of git in `worktrees` or `modules`; names of submodules may have several parts."""
    waiting = [folder]
    for _ in range(MOST_MODULES):
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


def _risks_of_link(link: str, git_folders: Sequence[str], trees: tuple[str, ...]) -> Risks:
    """Return what is dangerous in what a `.git` file names: a further work tree or a submodule of a repository that is looked at."""
    target = "" if os.path.islink(link) else _read_link(link, "gitdir:")
    for folder in dict.fromkeys(map(os.path.realpath, git_folders)):
        if os.path.dirname(target) == f"{folder}/worktrees":
            return {}  # which was looked at with its repository
        if target.startswith((f"{folder}/worktrees/", f"{folder}/modules/")):
            return _risks_of(target, trees)
    return {link: [_describe_link(link)]}


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
