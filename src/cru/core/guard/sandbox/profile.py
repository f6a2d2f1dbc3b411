"""What one agent's commands may see and change, as data: no back end is named here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

from msgspec import Struct

from cru.core.base.files import is_inside
from cru.core.base.files.regular import read_regular
from cru.core.base.files.search_path import follow_links
from cru.core.guard.places.git_runs import named_places, repository_folders
from cru.core.guard.places.gitlinks import find_gitlinks, is_tracked
from cru.core.guard.places.home_links import home_links, links_between
from cru.core.guard.rules.paths import PROTECTED_AT_HOME, PROTECTED_NAMES, PathRoots
from cru.core.guard.sandbox import SandboxSettings
from cru.core.guard.sandbox.home_places import hidden_at_home, hidden_homes, visible_at_home
from cru.core.guard.sandbox.own_places import (
    SHAPES,
    always_hidden,
    hidden_paths,
    is_visible,
    lies_in,
    readable_paths,
    writable_folders,
)
from cru.core.guard.sandbox.programs import visible_programs

SHELLS = (
    ".autoenv", ".config/mise", ".config/mise.toml", ".envrc", ".mise", ".mise.local.toml", ".mise.toml", "mise.local.toml", "mise.toml",
)  # fmt: skip
EDITORS = (
    ".devcontainer", ".devcontainer.json", ".dir-locals-2.el", ".dir-locals.el", ".exrc", ".fleet", ".idea", ".lvimrc", ".nvim.lua",
    ".nvimrc", ".vimrc", ".vscode", ".zed",
)  # fmt: skip
AGENTS = (
    ".agents", ".aider.conf.yml", ".amazonq", ".augment", ".clinerules", ".continue", ".continuerc.json", ".cursor", ".factory",
    ".github/agents", ".github/hooks", ".github/instructions", ".junie", ".kilocode", ".kiro", ".mcp.json", ".opencode", ".openhands",
    ".pi", ".qwen", ".roo", ".windsurf", "mcp.json", "opencode.json", "opencode.jsonc",
)  # fmt: skip
GUIDES = (
    ".cursorrules", ".github/copilot-instructions.md", ".windsurfrules", "AGENTS.md", "AGENTS.override.md", "CLAUDE.local.md",
    "CLAUDE.md", "CRUSH.md", "GEMINI.md",
)  # fmt: skip
"""Texts that agents obey. One that git tracks can be changed, since git would commit the old text on another branch otherwise."""
REPOSITORIES = (
    ".githooks", ".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath", ".husky", ".jj/repo/config.toml", ".pijul/config", ".sl/config",
    "_darcs/prefs/defaults",
)  # fmt: skip
GUARDS = (*sorted(PROTECTED_NAMES - {".git"}), *SHELLS, *EDITORS, *AGENTS, *REPOSITORIES)
"""Files and folders of a project that decide what runs later, or what may, but for GUIDES."""
GIT_GUARDS = ("commondir", "config", "config.worktree", "gitdir", "hooks")
"""The same in a folder of git."""
LONGEST_PATH = 4096
"""Bytes of a file of git that names a folder."""
MOST_MODULES = 1000
"""Folders of submodules that are looked at."""


class CommandLimits(Struct, frozen=True):
    """Of one command; 0: none. processes: at a time; the others of each process: bytes, seconds, bytes."""

    processes: int = 0
    memory: int = 0
    cpu: int = 0
    file_size: int = 0


class CacheLayer(Struct, frozen=True):
    """A folder that a command may change without a change outside.

    changes: where what is changed is kept
    work: what the kernel needs beside that
    source: the folder that is seen at the path before any change; "": the one that is there
    """

    path: str
    changes: str
    work: str
    source: str = ""


class Profile(Struct, frozen=True):
    """What a command may do. All paths are absolute and resolved, and exist; of two that lie in each other the inner one decides.

    root: of the project
    writable: what it may change; read_only: not that of it
    hidden: what it cannot see; readable: that of it all the same, and programs that the sandbox's own folders would mask, as they are named
    masked: what would be hidden if the sandbox's own folders did not hide it already
    temporary: the folder that is its /tmp
    network: whether it reaches any
    absent: guards that are not there, or links, and must not be put there
    folder: where it runs, "" for the root
    proxy: the socket of a proxy, which is its only network; "": there is none
    forwards: `localhost:8765`, …: ports of this machine that it reaches through the proxy as if they were its own
    caches: folders whose changes are kept apart; variables: what is set in its environment
    trees: the project and further folders in which repositories may be made or changed
    git_folders: the folders of git that belong to them
    """

    root: str
    writable: tuple[str, ...]
    read_only: tuple[str, ...]
    hidden: tuple[str, ...]
    readable: tuple[str, ...]
    temporary: str
    network: bool = False
    limits: CommandLimits = CommandLimits()
    absent: tuple[str, ...] = ()
    folder: str = ""
    proxy: str = ""
    forwards: tuple[str, ...] = ()
    caches: tuple[CacheLayer, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    trees: tuple[str, ...] = ()
    git_folders: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()


def make_profile(
    places: PathRoots,
    settings: SandboxSettings,
    temporary: str,
    readable: Iterable[str] = (),
    writable: Iterable[str] = (),
    sockets: Iterable[str] = (),
    path: str = "",
) -> Profile:
    """Look at the places of one agent, and return its profile.

    What a command can change is looked at for each command; what follows from it by the names of paths alone is computed once.

    readable, writable: further files that it may see, or change, although they lie in what is hidden
    sockets: what it must not reach
    path: the user's PATH
    """
    roots = [root for root in (*places.roots, *writable_folders(settings, places)) if os.path.isdir(root)]
    modules = [place for root in roots for place in submodules(root)]
    trees = [*roots, *map(os.path.dirname, modules)]
    git_folders = [folder for tree in trees for folder in (*_git_folders(tree), *repository_folders(tree))]
    opened = _real((*roots, *_outermost(git_folders)))
    homes = hidden_homes(places, roots)
    shut = _real((*always_hidden(places), *sockets))
    named = _real(hidden_paths(settings, places))
    at_home = _visible_at_home(homes, places, settings, (*shut, *named))
    programs = visible_programs(path, places, (*opened, *at_home), (*shut, *named), temporary, tuple(homes))
    shown = (*_real((*places.readable, *readable)), *at_home, *programs)
    more = _real(writable)
    at_home_hidden = (place for place in _real(hidden_at_home(homes)) if place not in at_home)
    hidden = tuple(dict.fromkeys((*homes, *_visible(shut, (*opened, *more, *shown)), *at_home_hidden, *named)))
    existing, absent = _sort_guards(_guards(places, roots, git_folders, modules), opened)
    absent += links_between(places.user_home, tuple(roots), PROTECTED_AT_HOME)
    read_only, between = _arrange(existing, opened, hidden)
    return Profile(
        root=places.root,
        writable=tuple(dict.fromkeys((*_real((*opened, *between)), *more))),
        read_only=read_only,
        hidden=hidden,
        masked=tuple(path for path in shut if path not in hidden),
        readable=shown,
        temporary=temporary,
        network=settings.reaches_network,
        limits=_limits(settings),
        trees=tuple(dict.fromkeys(roots)),
        git_folders=_outermost(git_folders),
        absent=absent,
    )


def _visible_at_home(
    homes: Sequence[str], places: PathRoots, settings: SandboxSettings, hidden: tuple[str, ...]
) -> tuple[str, ...]:
    """Return what commands see of homes: nothing that is hidden, or lies in that, and nothing through a link that leads there."""
    named = dict.fromkeys((*visible_at_home(homes, places), *readable_paths(settings, places)))
    return tuple(path for path in named if not lies_in(os.path.realpath(path), hidden))


def _guards(
    places: PathRoots, roots: Sequence[str], git_folders: Sequence[str], modules: Sequence[str]
) -> Iterator[str]:
    """Yield the places of all guards, whether or not they exist."""
    yield from (os.path.join(root, name) for root in roots for name in GUARDS)
    yield from (os.path.join(root, name) for root in roots for name in GUIDES if not is_tracked(root, name))
    yield from (os.path.join(folder, name) for folder in git_folders for name in GIT_GUARDS)
    yield from (os.path.join(root, ".git") for root in roots if os.path.isfile(os.path.join(root, ".git")))
    yield from filter(os.path.isfile, modules)
    yield from (place for root in roots for place in named_places(root))
    yield from home_links(places.user_home, tuple(roots), PROTECTED_AT_HOME)
    yield from _guards_in(tuple(roots), places.user_home, places.guarded)


def _sort_guards(guards: Iterable[str], opened: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the guards that exist, resolved, and those that are missing or are links, with the links on the way to guards.

    opened: folders that commands may change
    """
    existing, absent = dict[str, None](), dict[str, None]()
    folders = frozenset(opened)
    for guard in guards:
        if not os.path.lexists(guard):
            absent[guard] = None
            continue
        real = os.path.realpath(guard)
        if real == guard and os.path.exists(guard):
            existing[guard] = None
            continue
        absent |= dict.fromkeys(link for link, _ in follow_links(guard) if _depth(link, folders))
        # git changes the texts of branches, and a link to the whole project is only another name for it
        if real.endswith(GUIDES) or any(is_inside(folder, real) for folder in opened):
            continue
        if os.path.exists(real):
            existing[real] = None
        elif _depth(real, folders):
            absent[real] = None
    return tuple(existing), tuple(absent)


@lru_cache(maxsize=SHAPES)
def _guards_in(roots: tuple[str, ...], user_home: str, guarded: frozenset[str]) -> tuple[str, ...]:
    """Return the guards of the user's home, and the further ones, that lie in these folders by their names."""
    at_home = [os.path.join(user_home, name.rstrip("/")) for name in PROTECTED_AT_HOME]
    return tuple(path for path in (*at_home, *guarded) if any(is_inside(path, root) for root in roots))


@lru_cache(maxsize=SHAPES)
def _visible(paths: tuple[str, ...], opened: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path for path in paths if is_visible(path, opened))


@lru_cache(maxsize=SHAPES)
def _arrange(
    guards: tuple[str, ...], opened: tuple[str, ...], hidden: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return which guards are mounted read-only, and the folders around them. All paths are resolved."""
    # a guard that lies in what is hidden, or is that itself, would show it
    shut, free = frozenset(hidden), frozenset(opened)
    read_only = tuple(path for path in guards if _depth(path, shut) < _depth(path, free))
    return read_only, tuple(holders(opened, (*read_only, *hidden)))


def _outermost(folders: Iterable[str]) -> tuple[str, ...]:
    """Return these folders without those that lie in another one."""
    outermost: list[str] = []
    for folder in sorted(set(folders)):
        if not outermost or not is_inside(folder, outermost[-1]):
            outermost.append(folder)
    return tuple(outermost)


def _limits(settings: SandboxSettings) -> CommandLimits:
    return CommandLimits(settings.processes, settings.memory_mb << 20, settings.cpu_seconds, settings.file_mb << 20)


def holders(opened: Sequence[str], shut: Sequence[str]) -> Iterator[str]:
    """The folders between what may be changed and what in it may not: whoever could move one away could make what is in it anew."""
    free, closed, seen = frozenset(opened), frozenset(shut), set[str]()
    for path in shut:
        folder = os.path.dirname(path)
        while folder not in seen and folder != "/" and (depth := _depth(folder, free)):
            seen.add(folder)
            if folder not in free and depth > _depth(folder, closed):
                yield folder
            folder = os.path.dirname(folder)


def _depth(path: str, folders: frozenset[str]) -> int:
    """Return the length of the innermost of these in which a resolved path lies, or which it is; 0: it lies in none."""
    while path not in folders:
        path, below = os.path.dirname(path), path
        if path == below:
            return 0
    return len(path)


def _real(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths if os.path.exists(path)))


def _git_folders(root: str) -> Iterator[str]:
    """Folders of git that a commit in this work tree changes, with those of its submodules."""
    git = os.path.join(root, ".git")
    if os.path.isdir(git) and not os.path.islink(git):
        yield git
        yield from _modules(os.path.join(git, "modules"))
        yield from _worktrees(git)
    elif os.path.isfile(git):
        yield from _folders_of_worktree(git)


def submodules(root: str) -> tuple[str, ...]:
    """Where those have their `.git`, if they have one. What git cannot read either has none."""
    try:
        return tuple(os.path.join(place, ".git") for place in find_gitlinks(root))
    except OSError:
        return ()


def _worktrees(git: str) -> Iterator[str]:
    """The folders of git of further work trees of a repository."""
    with suppress(OSError):
        yield from sorted(entry.path for entry in os.scandir(f"{git}/worktrees") if entry.is_dir(follow_symlinks=False))


def _modules(folder: str) -> Iterator[str]:
    for number, (path, folders, files) in enumerate(os.walk(folder)):
        if number >= MOST_MODULES:
            return
        if "HEAD" in files and "objects" in folders:
            folders[:] = [name for name in folders if name == "modules"]
            yield path


def _folders_of_worktree(link: str) -> Iterator[str]:
    """The repository that a worktree belongs to, if that says the same: a `.git` file may name any folder."""
    try:
        own = os.path.join(os.path.dirname(link), _read_path(link).removeprefix("gitdir:").strip())
        back = os.path.join(own, _read_path(f"{own}/gitdir"))
        common = os.path.realpath(os.path.join(own, _read_path(f"{own}/commondir")))
    except (OSError, ValueError):  # a path cannot have a zero byte
        return
    if os.path.realpath(back) == os.path.realpath(link) and is_inside(os.path.realpath(own), common):
        yield common
        yield from _worktrees(common)  # its own, too


def _read_path(file: str) -> str:
    """Raises OSError, also for a pipe; ValueError if it cannot be a path."""
    text = os.fsdecode(read_regular(file, LONGEST_PATH)).strip()
    if "\0" in text:
        raise ValueError(file)
    return text
