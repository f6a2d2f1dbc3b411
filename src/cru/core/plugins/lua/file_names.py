"""What files are called in messages of Lua: by their whole names, as a person knows them."""

from __future__ import annotations

import re

LONGEST = 59
"""Bytes of a name that Lua writes whole; of a longer one it writes three dots and the last `KEPT`."""
KEPT = 56


class FileNames:
    """The names of files that are written otherwise than they are known."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def add(self, file: str, shown: str) -> None:
        """`shown` is to stand for this file, unless something already does. What may mean several files stays as it is."""
        if file in self._known:
            return
        for name in {file, _cut(file)}:
            if self._known.setdefault(name, shown) != shown:
                self._known[name] = name

    def restore(self, text: str) -> str:
        """A message or traceback with the names that were added."""
        file, _, line = text.rpartition(":")
        if file in self._known and line.isdecimal():
            return f"{self._known[file]}:{line}"  # the place of a function; each handler has one
        names = [name for name, shown in self._known.items() if name != shown and name in text]
        if not names:
            return text
        alternatives = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        return re.sub(rf"(?<![\w./-])(?:{alternatives})(?![\w.-])", lambda match: self._known[match[0]], text)


def _cut(file: str) -> str:
    data = file.encode("utf-8", "surrogateescape")
    return file if len(data) <= LONGEST else "..." + data[-KEPT:].decode("utf-8", "replace")
