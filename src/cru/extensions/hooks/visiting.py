"""Hooks of a user that run a file of the project they stand in: whoever wrote that file decides what they do."""

from __future__ import annotations

import os
from collections.abc import Iterator

from cru.extensions.hooks.dialect import About
from cru.extensions.hooks.entry import Entry
from cru.extensions.hooks.named import CODE, PLAIN, TOKEN, WRITES, expanded, is_inside
from cru.permissions.commands import read
from cru.permissions.programs import KEYWORDS

BEGINNINGS = ("/", "./", "../")
"""Of a word that means a file and nothing else; a project must not stop a user's hook by giving a file the name of one of its words."""


def visited(entry: Entry, about: About) -> str:
    """The first file of the project that the entry runs by its path, "" if there is none. In a project that the user's own home lies in,
    everything is the user's."""
    root = os.path.realpath(about.root)
    if any(os.path.commonpath((root, os.path.realpath(home))) == root for home in (about.user_home, about.home)):
        return ""
    folders = [str(about.cwd / entry.cwd), str(about.root)]
    for word in dict.fromkeys(_words(entry, about)):
        if word.startswith(BEGINNINGS) and "\0" not in word:
            for path in (os.path.join(folder, word) for folder in folders):
                if is_inside(path, about) and os.path.isfile(path):
                    return os.path.normpath(path)
    return ""


def _words(entry: Entry, about: About) -> Iterator[str]:
    """Words that may be run. What is only given to programs such as `cat` or `grep` is read, unless it may go on to an interpreter."""
    yield from (expanded(value, about) for value in entry.env.values())
    if entry.kind != "command" or entry.args is not None:
        yield from (expanded(word, about) for word in (entry.command, *(entry.args or ())))
        return
    text = expanded(WRITES.sub(lambda match: match[1] or " ", entry.command), about)
    seen = read(text)
    programs = [next((word for word in part if "=" not in word), "") for part in seen.parts]
    names = [os.path.basename(program) for program in programs]
    goes_on = bool(seen.opaque) or any(name.rstrip("0123456789.") in CODE or name in (".", "source") for name in names)
    for part, name in zip(seen.parts, names, strict=True):
        if goes_on or name not in PLAIN | KEYWORDS:
            yield from part
    if goes_on:
        yield from TOKEN.findall(text)
