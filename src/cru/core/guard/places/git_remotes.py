"""Where git's settings lead a command over the network: to another machine, or to a repository here, whose hooks others may write."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence

from cru.core.base.files.regular import read_regular
from cru.core.guard.places.git_runs import LARGEST, plain_value

_SECTION = re.compile(r'\s*\[\s*([\w-]+)(?:\.([\w.-]+)|\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=\s*(.*))?")
_URL = re.compile(
    r"(?:https?|ssh|git|git\+ssh|ssh\+git)://(?:[^/@]*@)?(\[[^]/]*\]|[^/:@]+)(?::\d*)?(?:/.*)?", re.IGNORECASE
)
_SSH = re.compile(r"(?:[^/:@]+@)?(\[[^]/]*\]|[^/:@]+):(?!:).*")
_HERE = re.compile(r"localhost|.*\.localhost|127\..*|0[\da-fx.]*|\[.*\]|\d+", re.IGNORECASE)
"""Names and addresses of this machine, and what may be one."""
DEFAULT = "origin"


def leads_elsewhere(words: Sequence[str], files: Iterable[str]) -> bool:
    """Whether `git fetch …` or the like, in these words, reaches other machines only. files: of settings of git. Raises OSError."""
    remotes: dict[str, list[str]] = {}
    named: list[str] = []
    for section, name, key, value in (setting for file in files for setting in _read(file)):
        if section == "remote" and key in ("url", "pushurl"):
            remotes.setdefault(name, []).append(value)
        elif (section, key) in (("branch", "remote"), ("branch", "pushremote"), ("remote", "pushdefault")):
            named.append(value)
        elif section == "url" and not is_elsewhere(name):  # an address that begins with the value leads there
            return False
    if any(not is_elsewhere(url) for urls in remotes.values() for url in urls):
        return False
    places = [word for word in words[2:] if not word.startswith("-")][:1]
    if not places:
        return all(name in remotes for name in (DEFAULT, *named))
    return places[0] in remotes or is_elsewhere(places[0])


def is_elsewhere(address: str) -> bool:
    """Whether git takes it for the address of another machine."""
    match = _URL.fullmatch(address) or (_SSH.fullmatch(address) if "://" not in address else None)
    return match is not None and not _HERE.fullmatch(match[1]) and match[1].lower() != os.uname().nodename.lower()


def _read(file: str) -> Iterator[tuple[str, str, str, str]]:
    """(section, its name, key, value) of each line; nothing of a file that is not there. Raises OSError."""
    try:
        text = read_regular(file, LARGEST).decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotADirectoryError):
        return
    section = name = ""
    for line in re.sub(r"\\\r?\n", "", text).splitlines():
        if match := _SECTION.match(line):
            section, line = match[1].lower(), line[match.end() :]
            name = match[2] or re.sub(r"\\(.)", r"\1", match[3] or "")
        if (match := _KEY.match(line)) and section:
            yield section, name, match[1].lower(), plain_value(match[2] or "")
