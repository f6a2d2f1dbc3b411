"""The tables of names, with each name replaced by one that notes its first call and then does what it always did.

Both languages find the names of `cru` in these tables (core/api/names.py), so nobody passes by. The tables of this process are
changed: it is for tests/programs/cru_recording.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from cru.core.api.host import HOST, NamespaceError
from cru.core.api.names import CONSTANTS, INDEXED, NAMES
from cru.core.command_table import load_target

READ, ASSIGN = "[]", "[]="
DOOR = "recorded"


class Recorder:
    """Notes each name once, as a line `PLUGIN NAME`. The name `without` fails whoever calls it."""

    def __init__(self, file: Path, without: str = "") -> None:
        self._file, self._without = file, without
        self._seen: set[str] = set()

    def note(self, name: str) -> None:
        here = HOST.get(None)
        line = f"{here.plugin.name if here else '-'} {name}\n"
        if line not in self._seen:
            self._seen.add(line)
            with self._file.open("a") as file:
                file.write(line)
        if name == self._without:
            raise NamespaceError(f"cru.{name} was taken away")


class Recorded:
    """A function of the namespace that notes its calls. It shows the signature of the one behind it, which Lua goes by."""

    def __init__(self, name: str, function: Callable[..., Any], recorder: Recorder) -> None:
        self._name, self._function, self._recorder = name, function, recorder
        self.__code__, self.__defaults__ = function.__code__, function.__defaults__  # type: ignore[attr-defined]

    def __call__(self, *args: Any, **named: Any) -> Any:
        self._recorder.note(self._name)
        return self._function(*args, **named)


def record(recorder: Recorder) -> None:
    """Put the recorder into the tables."""
    targets = {**NAMES, **CONSTANTS}
    for name, (read, assign) in INDEXED.items():
        targets[name + READ] = read
        targets[name + ASSIGN] = assign
        INDEXED[name] = (f"cru.core.api.{DOOR}:{name}{READ}", f"cru.core.api.{DOOR}:{name}{ASSIGN}" if assign else "")
    for table in (NAMES, CONSTANTS):
        table.update({name: f"cru.core.api.{DOOR}:{name}" for name in table})
    door: Any = ModuleType(f"cru.core.api.{DOOR}")
    door.__getattr__ = lambda name: _behind(name, targets, recorder)
    sys.modules[door.__name__] = door


def _behind(name: str, targets: dict[str, str], recorder: Recorder) -> Any:
    if name not in targets:
        raise AttributeError(name)
    found = load_target(targets[name])
    if name not in CONSTANTS:
        return Recorded(name, found, recorder)
    recorder.note(name)
    return found
