"""What git runs or obeys in a work tree although no name tells it: a repository that does not lie in `.git`, and files that its settings
name (`core.hooksPath`, `include.path`, filters, aliases, …), also the user's own settings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from cru.core.base.files import is_inside
from cru.core.base.files.regular import read_regular

LARGEST = 1 << 20
"""Bytes of a file of settings that is read; git itself reads more, and nobody writes more by hand."""
INCLUDES = 5
"""How deep files of settings may name others."""
_SECTION = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"(?:[^"\\]|\\.)*")?\s*\]')
_KEY = re.compile(r"\s*([A-Za-z][\w-]*)\s*=?\s*(.*)")
_RUN = re.compile(
    r"alias\..*|include(if)?\.path|core\.(hookspath|attributesfile|fsmonitor|sshcommand|pager|editor|askpass|gitproxy)|pager\..*"
    r"|filter\.(clean|smudge|process)|diff\.(external|textconv|command)|(merge|difftool|mergetool)\.(driver|cmd|path)"
    r"|credential\.helper|gpg\.program|sequence\.editor|sendemail\..*cmd|remote\.(uploadpack|receivepack)"
)
_FOLDERS = ("core.hookspath", "include.path", "includeif.path")
"""What these name need not be there yet."""
_READ = re.compile(
    r"core\.(attributesfile|excludesfile|hookspath)|include(if)?\.path|commit\.template|init\.templatedir|blame\.ignorerevsfile"
)
"""What names a file or a folder that git reads, or takes hooks from."""


def git_runs(path: str, root: str) -> str:
    """The place below the project's root in which this file lies and that git runs or obeys, in small letters; "" if it is none.
    Repositories in the project count, too."""
    top, file = root.rstrip("/") or "/", path.casefold()
    folder = os.path.dirname(path)
    while is_inside(folder, top):
        if folder == top or os.path.lexists(f"{folder}/.git"):
            for place in (*repository_folders(folder), *named_places(folder)):
                if file == place.casefold() or file.startswith(f"{place.casefold()}/"):
                    return os.path.relpath(place, root).casefold()
        if folder != top and _is_repository(folder):
            return os.path.relpath(folder, root).casefold()
        if folder == top:
            break
        folder = os.path.dirname(folder)
    return ""


def repository_folders(root: str) -> tuple[str, ...]:
    """Folders of the project in which git keeps its repository, other than `.git`."""
    own, common = _repository(root)
    return tuple(place for place in _inner((own, common), root) if place != f"{root.rstrip('/')}/.git")


def git_folder(root: str) -> str:
    """Where the repository of this work tree has its index; "" if there is none."""
    return _repository(root)[0]


def named_places(root: str) -> tuple[str, ...]:
    """Files and folders of the project that settings have git run or obey; they need not be there."""
    return _named_places(root, _stamps(root))


def user_places() -> tuple[str, ...]:
    """Return the files and folders that the user's own settings name and that git only reads, or runs as hooks."""
    return _user_places(_user_files(), *map(_changed, _user_files()))


@lru_cache(maxsize=16)
def _user_places(files: tuple[str, ...], *stamps: int) -> tuple[str, ...]:
    waiting, places = list(files), dict.fromkeys(files, INCLUDES)
    while waiting:
        file = waiting.pop()
        for key, value in _read_settings(file) if os.path.isfile(file) else ():
            if not _READ.fullmatch(key) or not value:
                continue
            place = os.path.join(os.path.dirname(file), os.path.expanduser(value))
            if place not in places and places[file]:
                places[place] = places[file] - 1
                waiting += [place] if key in _FOLDERS[1:] else []
    return tuple(places)


def _read_settings(file: str) -> Iterator[tuple[str, str]]:
    try:
        yield from _settings(read_regular(file, LARGEST).decode("utf-8", "surrogateescape"))
    except OSError:
        return


def _is_repository(folder: str) -> bool:
    """As git finds out itself."""
    return os.path.lexists(f"{folder}/HEAD") and os.path.isdir(f"{folder}/objects") and os.path.isdir(f"{folder}/refs")


def _stamps(root: str) -> tuple[int, ...]:
    """By which it is known that the repository is as it was."""
    own = (f"{root}/.git{name}" for name in ("", "/config", "/commondir", "/config.worktree"))
    return tuple(map(_changed, (*own, *_user_files())))


def _user_files() -> tuple[str, ...]:
    """Return the user's own settings of git, which hold for every repository. What they name relatively lies in each work tree."""
    if named := os.environ.get("GIT_CONFIG_GLOBAL"):
        return (named,)
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return (os.path.expanduser("~/.gitconfig"), f"{config}/git/config")


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=16)
def _named_places(root: str, stamps: tuple[int, ...]) -> tuple[str, ...]:
    own, common = _repository(root)
    files = [f"{common}/config", f"{own}/config.worktree", *_user_files()]
    return _inner((place for file in files for place in _named(file, root, INCLUDES)), root)


def _repository(root: str) -> tuple[str, str]:
    """The folder of this work tree, and the one that all of them share; "" if there is none."""
    own = _linked(root, f"{root}/.git", "gitdir:") if os.path.isfile(f"{root}/.git") else f"{root}/.git"
    return own, (_linked(own, f"{own}/commondir", "") if os.path.exists(f"{own}/commondir") else own)


def _inner(places: Iterable[str], root: str) -> tuple[str, ...]:
    real = (os.path.realpath(place) for place in places if place)
    return tuple(dict.fromkeys(place for place in real if place.startswith(f"{root.rstrip('/')}/")))


def _linked(folder: str, file: str, mark: str) -> str:
    """The folder that a file names, "" if it names none."""
    try:
        text = read_regular(file, LARGEST).decode("utf-8", "surrogateescape").strip()
    except OSError:
        return ""
    return os.path.normpath(os.path.join(folder, text.removeprefix(mark).strip())) if text.startswith(mark) else ""


def _named(file: str, root: str, levels: int) -> Iterator[str]:
    """The files and folders that settings of a repository name as what is run or obeyed."""
    for key, value in _read_settings(file):
        if not _RUN.fullmatch(key):
            continue
        if key in _FOLDERS:
            base = root if key == "core.hookspath" else os.path.dirname(file)
            place = os.path.join(base, os.path.expanduser(value))
            yield place
            if key != "core.hookspath" and levels:
                yield from _named(place, root, levels - 1)
            continue
        if key.startswith("alias.") and not value.startswith("!"):  # it stands for words of git
            continue
        for word in value.lstrip("!").replace("'", " ").replace(";", " ").split():
            place = os.path.join(root, os.path.expanduser(word))
            if os.path.isfile(place):
                yield place


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """(section.key in small letters, value) of each line; the name of a subsection is left out."""
    section = ""
    for line in re.sub(r"\\\r?\n", "", text).splitlines():
        if match := _SECTION.match(line):
            section, line = match[1].lower(), line[match.end() :]
        if (match := _KEY.match(line)) and section:
            yield f"{section}.{match[1].lower()}", plain_value(match[2])


def plain_value(value: str) -> str:
    """Without quotes, escapes and remarks."""
    out, quoted, chars = "", False, iter(value)
    for char in chars:
        if char == "\\":
            out += next(chars, "")
        elif char == '"':
            quoted = not quoted
        elif char in "#;" and not quoted:
            break
        else:
            out += char
    return out.strip()
